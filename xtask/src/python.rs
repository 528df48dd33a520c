//! Finds a Python interpreter to build the environment on, or names what to install if there is none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::console::{self, OrHint, failure};
use crate::process::Cmd;

/// Oldest supported CPython, as in `requires-python` of `pyproject.toml`.
const OLDEST: (u32, u32) = (3, 10);
/// Newest CPython for which the pinned torch has wheels.
const NEWEST: (u32, u32) = (3, 14);
/// Tried in this order where the caller names none.
const NAMES: [&str; 7] =
    ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python"];
const PROBE: &str = "import importlib.util as u, json, platform, sys; print(json.dumps(dict(\
    executable=sys.executable, version=sys.version_info[:2], implementation=platform.python_implementation(), \
    venv=all(u.find_spec(m) for m in ('venv', 'ensurepip')))))";

/// An interpreter that answered.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Python {
    /// `sys.executable`.
    pub(crate) executable: PathBuf,
    /// Major and minor version.
    pub(crate) version: (u32, u32),
    implementation: String,
    venv: bool,
}

/// The interpreter that the caller named, or the first one that will do, able to make virtual environments.
pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<Python> {
    let python = match named {
        Some(path) => named_python(path)?,
        None => match first_usable() {
            Some(python) => python,
            None => installed_by_apt(&["python3", "python3-venv"]).and_then(|()| {
                first_usable().ok_or_else(|| failure("Debian's python3 is too old", NO_PYTHON_HINT))
            })?,
        },
    };
    with_venv(python)
}

const NO_PYTHON_HINT: &str = "install CPython 3.10 to 3.14 with its venv module (Debian, Ubuntu: \
    `apt-get install python3 python3-venv`), or name one with `--python PATH`";

fn named_python(path: &Path) -> anyhow::Result<Python> {
    let python = probe(path.as_os_str())
        .or_hint(format!("`{}` is no Python that runs", path.display()), NO_PYTHON_HINT)?;
    if python.is_usable() {
        return Ok(python);
    }
    let (major, minor) = python.version;
    Err(failure(
        format!(
            "`{}` is {} {major}.{minor}; CPython 3.10 to 3.14 is needed",
            path.display(),
            python.implementation
        ),
        NO_PYTHON_HINT,
    ))
}

fn first_usable() -> Option<Python> {
    let found: Vec<_> = NAMES.iter().filter_map(|name| probe(name).ok()).filter(Python::is_usable).collect();
    found.iter().find(|python| python.venv).or(found.first()).cloned()
}

fn probe(program: impl Into<OsString>) -> anyhow::Result<Python> {
    // `-I`: neither the caller's folder nor variables may decide what the probe imports.
    Ok(serde_json::from_str(&Cmd::new(program).args(["-I", "-c", PROBE]).read()?)?)
}

impl Python {
    fn is_usable(&self) -> bool {
        self.implementation == "CPython" && (OLDEST..=NEWEST).contains(&self.version)
    }

    /// Debian splits `ensurepip` off into a separate package, named after the version.
    fn debian_package(&self) -> String {
        let (major, minor) = self.version;
        format!("python{major}.{minor}-venv")
    }
}

fn with_venv(python: Python) -> anyhow::Result<Python> {
    if python.venv {
        return Ok(python);
    }
    let package = python.debian_package();
    console::note(format!("{} has no venv module", python.executable.display()));
    if python.executable.starts_with("/usr/bin") {
        installed_by_apt(&[&package])?;
        let again = probe(&python.executable)?;
        if again.venv {
            return Ok(again);
        }
    }
    Err(failure(
        format!(
            "`{}` cannot make virtual environments: `venv` or `ensurepip` is missing",
            python.executable.display()
        ),
        format!("install `{package}` (Debian, Ubuntu), or name another Python with `--python PATH`"),
    ))
}

/// Installs Debian packages, which takes root; otherwise names those to install.
pub(crate) fn installed_by_apt(packages: &[&str]) -> anyhow::Result<()> {
    let list = packages.join(" ");
    if !(Cmd::new("apt-get").arg("--version").works() && is_root()) {
        return Err(failure(
            format!("missing on this machine: {list}"),
            format!("as root on Debian or Ubuntu: `apt-get install {list}`"),
        ));
    }
    console::step(format!("installing {list} from Debian"));
    let hint = format!("install {list} by hand, then run this again");
    Cmd::new("apt-get").args(["update", "--quiet"]).run().or_hint("apt-get update failed", &hint)?;
    Cmd::new("apt-get")
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(packages.iter().copied())
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
        .or_hint(format!("apt-get could not install {list}"), &hint)
}

fn is_root() -> bool {
    // SAFETY: `geteuid` has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fake(answer: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python");
        std::fs::write(&path, format!("#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        (folder, path)
    }

    fn check(answer: &str, expected: &str) {
        let (_folder, path) = fake(answer);
        let error = find(Some(&path)).unwrap_err().to_string().replace(path.to_str().unwrap(), "PYTHON");
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn an_old_python_is_refused_with_its_version() {
        let answer =
            r#"{"executable": "/x/python", "version": [3, 9], "implementation": "CPython", "venv": true}"#;
        check(answer, "`PYTHON` is CPython 3.9; CPython 3.10 to 3.14 is needed");
    }

    #[test]
    fn another_implementation_is_refused() {
        let answer =
            r#"{"executable": "/x/python", "version": [3, 11], "implementation": "PyPy", "venv": true}"#;
        check(answer, "`PYTHON` is PyPy 3.11");
    }

    #[test]
    fn something_else_is_no_python() {
        check("hello", "`PYTHON` is no Python that runs");
    }

    #[test]
    fn without_ensurepip_the_debian_package_is_named() {
        let answer =
            r#"{"executable": "/x/python", "version": [3, 12], "implementation": "CPython", "venv": false}"#;
        let (_folder, path) = fake(answer);
        let error = find(Some(&path)).unwrap_err();
        let hints: Vec<_> = console::hints(&error).collect();
        assert!(hints[0].contains("python3.12-venv"), "{hints:?}");
    }

    #[test]
    fn a_real_python_is_found() {
        let python = find(None).unwrap();
        assert!(python.is_usable() && python.venv);
    }
}
