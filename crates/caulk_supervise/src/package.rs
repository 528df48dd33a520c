//! Where the Python package lies that goes with this executable.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};

/// Environment variable with the folder `caulk` of the Python package, for layouts that are not known.
pub const PACKAGE_VARIABLE: &str = "CAULK_PACKAGE";

/// File name of the heap sampler.
const SAMPLER: &str = "libcaulk_preload.so";

/// Folders next to `bin` that hold `python3.X`.
const LIBRARIES: [&str; 4] = ["lib", "lib64", "local/lib", "local/lib64"];

/// Folders of `python3.X`, and of `python3` on Debian, that hold packages.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// Finds the folder `caulk` of the Python package for the executable `exe`.
///
/// In this order: the variable [`PACKAGE_VARIABLE`]; the prefix into which a wheel was installed
/// (`<prefix>/bin/caulk` and `<prefix>/lib/python3.X/site-packages/caulk`), links followed or not; the checkout in
/// whose `target` folder the executable was built.
pub fn find_package(exe: &Path) -> Option<Utf8PathBuf> {
    if let Some(set) = env::var_os(PACKAGE_VARIABLE).filter(|set| !set.is_empty()) {
        return package_at(PathBuf::from(set));
    }
    let real = fs::canonicalize(exe).unwrap_or_else(|_| exe.to_path_buf());
    installed(exe).or_else(|| installed(&real)).or_else(|| checkout(&real))
}

/// The heap sampler of a package, or of the build that made `exe`; `None` where there is none.
pub fn find_sampler(package: &Utf8Path, exe: &Path) -> Option<Utf8PathBuf> {
    let installed = package.join(SAMPLER);
    let built = || Utf8PathBuf::from_path_buf(fs::canonicalize(exe).ok()?.with_file_name(SAMPLER)).ok();
    [Some(installed), built()].into_iter().flatten().find(|library| library.is_file())
}

/// The package in the prefix to whose `bin` the executable belongs.
fn installed(exe: &Path) -> Option<Utf8PathBuf> {
    let prefix = exe.parent()?.parent()?;
    let in_library = LIBRARIES.iter().find_map(|library| {
        let library = prefix.join(library);
        let mut pythons: Vec<_> = fs::read_dir(&library)
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with("python3") || name.starts_with("pypy3"))
            .collect();
        pythons.sort_unstable();
        let folders = pythons.iter().flat_map(|python| PACKAGES.map(|packages| (python, packages)));
        folders
            .map(|(python, packages)| library.join(python).join(packages).join("caulk"))
            .find_map(package_at)
    });
    // `pip install --target` puts packages beside `bin`.
    in_library.or_else(|| package_at(prefix.join("caulk")))
}

/// The package of the source tree around the executable.
fn checkout(exe: &Path) -> Option<Utf8PathBuf> {
    exe.ancestors().skip(1).find_map(|folder| {
        let package = folder.join("python/caulk");
        folder.join("Cargo.toml").exists().then(|| package_at(package)).flatten()
    })
}

/// The folder itself, absolute, if it holds what injection needs.
fn package_at(folder: PathBuf) -> Option<Utf8PathBuf> {
    if !folder.join("_inject/sitecustomize.py").is_file() {
        return None;
    }
    Utf8PathBuf::from_path_buf(std::path::absolute(folder).ok()?).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    /// Makes a package at `package` and an executable at `exe` in an empty folder, and looks for the one by the other.
    fn check(package: &str, exe: &str, found: bool) {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (package, exe) = (root.join(package), root.join(exe));
        fs::create_dir_all(package.join("_inject")).unwrap();
        fs::write(package.join("_inject/sitecustomize.py"), "").unwrap();
        fs::write(root.join("Cargo.toml"), "").unwrap();
        fs::create_dir_all(exe.parent().unwrap()).unwrap();
        fs::write(&exe, "").unwrap();
        let expected = found.then(|| Utf8PathBuf::from_path_buf(package).unwrap());
        assert_eq!(find_package(&exe), expected, "{}", exe.display());
    }

    #[test]
    fn a_wheel_has_it_beside_its_bin() {
        check("venv/lib/python3.12/site-packages/caulk", "venv/bin/caulk", true);
        check("usr/local/lib/python3.11/dist-packages/caulk", "usr/local/bin/caulk", true);
        check("usr/lib/python3/dist-packages/caulk", "usr/bin/caulk", true);
        check("venv/share/caulk", "venv/bin/caulk", false);
    }

    #[test]
    fn a_checkout_has_it_above_its_target() {
        check("python/caulk", "target/debug/caulk", true);
        check("python/caulk", "target/x86_64-unknown-linux-gnu/release/caulk", true);
    }

    #[test]
    fn a_link_in_another_bin_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let package = root.join("pipx/venvs/caulk/lib/python3.11/site-packages/caulk");
        fs::create_dir_all(package.join("_inject")).unwrap();
        fs::write(package.join("_inject/sitecustomize.py"), "").unwrap();
        let exe = root.join("pipx/venvs/caulk/bin/caulk");
        fs::create_dir_all(exe.parent().unwrap()).unwrap();
        fs::write(&exe, "").unwrap();
        fs::create_dir_all(root.join("bin")).unwrap();
        std::os::unix::fs::symlink(&exe, root.join("bin/caulk")).unwrap();
        assert_eq!(find_package(&root.join("bin/caulk")), Utf8PathBuf::from_path_buf(package).ok());
    }
}
