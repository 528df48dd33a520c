//! Requirements of tests beside Rust and Python: allocators and OpenMP runtimes that the heap sampler must get along with,
//! compilers, programs to run it in and under, a browser. Missing ones are installed if possible.

use std::env;
use std::path::{Path, PathBuf};

use crate::console;
use crate::process::Cmd;
use crate::python::installed_by_apt;

/// Library and Debian's package of it.
const LIBRARIES: [(&str, &str); 4] = [
    ("libjemalloc.so.2", "libjemalloc2"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("libmimalloc.so.2", "libmimalloc2.0"),
    ("libomp.so.5", "libomp5"),
];

/// Program, by its name or where Debian has it, and Debian's package of it.
const PROGRAMS: [(&str, &str); 5] = [
    ("/usr/bin/python3", "python3"),
    ("c++", "g++"),
    ("chromium", "chromium"),
    ("musl-gcc", "musl-tools"),
    ("valgrind", "valgrind"),
];

/// Tries to have them all. The tests report what they left out.
pub(crate) fn prepare() {
    let known = Cmd::new(loader_cache()).arg("-p").read().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let missing: Vec<_> = missing(&known, &folders).collect();
    if missing.is_empty() {
        return;
    }
    console::note(format!("{} missing: tests run with them", missing.join(", ")));
    if installed_by_apt(&missing).is_err() {
        console::note("they cannot be installed here: those tests are skipped");
    }
}

/// Not on everybody's path.
fn loader_cache() -> &'static str {
    if Path::new("/sbin/ldconfig").is_file() { "/sbin/ldconfig" } else { "ldconfig" }
}

fn missing(known: &str, folders: &[PathBuf]) -> impl Iterator<Item = &'static str> {
    let has_library = |library: &str| known.split_whitespace().any(|word| word == library);
    // A name that is a whole path stays one behind whatever folder.
    let has_program = |program: &str| folders.iter().any(|folder| folder.join(program).is_file());
    let libraries = LIBRARIES.into_iter().filter(move |(library, _)| !has_library(library));
    let programs = PROGRAMS.into_iter().filter(move |(program, _)| !has_program(program));
    libraries.chain(programs).map(|(_, package)| package)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_the_loader_or_the_path_knows_is_not_missing() {
        let known = "2 libs found in cache\n\tlibjemalloc.so.2 (libc6,x86-64) => /usr/lib/libjemalloc.so.2\n";
        let folder = tempfile::tempdir().unwrap();
        for program in ["c++", "valgrind"] {
            std::fs::write(folder.path().join(program), "").unwrap();
        }
        let folders = [folder.path().to_owned()];
        let missing: Vec<_> = missing(known, &folders).filter(|package| *package != "python3").collect();
        assert_eq!(missing, ["libtcmalloc-minimal4", "libmimalloc2.0", "libomp5", "chromium", "musl-tools"]);
    }
}
