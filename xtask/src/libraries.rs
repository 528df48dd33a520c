//! Other allocators and OpenMP runtimes, beside which the tests of the heap sampler run: what is missing is installed where
//! that is possible.

use std::path::Path;

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

/// Tries to have them all. The tests say what they had to leave out.
pub(crate) fn prepare() {
    let known = Cmd::new(loader_cache()).arg("-p").read().unwrap_or_default();
    let missing: Vec<_> = missing(&known).collect();
    if missing.is_empty() {
        return;
    }
    console::note(format!("{} missing: the heap sampler is tested beside them", missing.join(", ")));
    if installed_by_apt(&missing).is_err() {
        console::note("they cannot be installed here: those tests are skipped");
    }
}

/// Not on everybody's path.
fn loader_cache() -> &'static str {
    if Path::new("/sbin/ldconfig").is_file() { "/sbin/ldconfig" } else { "ldconfig" }
}

fn missing(known: &str) -> impl Iterator<Item = &'static str> {
    let is_there = |library: &str| known.split_whitespace().any(|word| word == library);
    LIBRARIES.into_iter().filter(move |(library, _)| !is_there(library)).map(|(_, package)| package)
}

#[test]
fn a_library_that_the_loader_knows_is_not_missing() {
    let known = "2 libs found in cache\n\tlibjemalloc.so.2 (libc6,x86-64) => /usr/lib/libjemalloc.so.2\n";
    assert_eq!(missing(known).collect::<Vec<_>>(), ["libtcmalloc-minimal4", "libmimalloc2.0", "libomp5"]);
}
