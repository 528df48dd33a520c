//! What the Rust tests of the agent link against: the library of the Python that PyO3 finds.
//!
//! The wheel needs neither library nor headers. A test program does, as it has no interpreter around it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::console::{self, failure};
use crate::process::Cmd;
use crate::python::installed_by_apt;

/// In the order in which PyO3 looks.
const NAMES: [&str; 2] = ["python", "python3"];
/// Where the dynamic linker looks by itself.
const SYSTEM: [&str; 3] = ["/lib", "/usr/lib", "/usr/local/lib"];
const PROBE: &str = "import json, sys, sysconfig as s; print(json.dumps(dict(\
    version='%d.%d' % sys.version_info[:2], folder=s.get_config_var('LIBDIR') or '', \
    name=s.get_config_var('LDLIBRARY') or '', multiarch=s.get_config_var('MULTIARCH') or '')))";

#[derive(Debug, Deserialize)]
struct Library {
    version: String,
    folder: PathBuf,
    name: String,
    multiarch: String,
}

/// Makes sure that the library is there; returns its folder if the dynamic linker needs it.
pub(crate) fn prepare() -> anyhow::Result<Option<PathBuf>> {
    let Some(library) = NAMES.iter().find_map(|name| probe(name)) else {
        return Ok(None);
    };
    if library.path().is_none() {
        let package = format!("libpython{}-dev", library.version);
        console::note(format!("{} is missing: Rust tests of the agent link against it", library.name));
        installed_by_apt(&[&package])?;
    }
    match library.path() {
        Some(path) => Ok(library_folder(&path)),
        None => Err(failure(
            format!("no `{}` for the Python on PATH", library.name),
            "put a Python with its shared library first on PATH (Debian: `apt-get install python3-dev`)",
        )),
    }
}

fn probe(program: &str) -> Option<Library> {
    serde_json::from_str(&Cmd::new(program).args(["-I", "-c", PROBE]).read().ok()?).ok()
}

impl Library {
    fn path(&self) -> Option<PathBuf> {
        let folders = [self.folder.clone(), self.folder.join(&self.multiarch)];
        folders.into_iter().map(|folder| folder.join(&self.name)).find(|path| path.exists())
    }
}

fn library_folder(library: &Path) -> Option<PathBuf> {
    let folder = library.parent()?;
    (!SYSTEM.iter().any(|system| folder.starts_with(system))).then(|| folder.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_its_own_are_told_to_the_linker() {
        assert_eq!(library_folder(Path::new("/usr/lib/x86_64-linux-gnu/libpython3.11.so")), None);
        assert_eq!(library_folder(Path::new("/opt/py/lib/libpython3.12.so")), Some("/opt/py/lib".into()));
    }

    #[test]
    fn a_library_is_looked_for_below_the_multiarch_folder_too() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let multiarch = folder.path().join("some-linux-gnu");
        std::fs::create_dir(&multiarch).expect("new folder");
        std::fs::write(multiarch.join("libpython3.11.so"), "").expect("new file");
        let library = Library {
            version: "3.11".into(),
            folder: folder.path().into(),
            name: "libpython3.11.so".into(),
            multiarch: "some-linux-gnu".into(),
        };
        assert_eq!(library.path(), Some(multiarch.join("libpython3.11.so")));
    }
}
