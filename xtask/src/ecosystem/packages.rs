//! The packages that are checked: pinned by version and hash, fetched once, unpacked without being built.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

use crate::console::{OrHint, failure};
use crate::environment::Tools;
use crate::process::Cmd;

const PINNED: &str = include_str!("packages.toml");
const FETCH: &str = include_str!("fetch.py");

/// One package.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    /// As the index calls it.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Source distribution or wheel.
    file: String,
    /// Of the file, in hexadecimal digits.
    sha256: String,
}

/// Python sources of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Files with the extension `py`.
    pub(crate) files: usize,
    /// Their lines.
    pub(crate) lines: usize,
}

/// The packages named, or all.
pub(crate) fn chosen(only: &[String]) -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Pinned {
        package: Vec<Package>,
    }
    let mut packages = toml::from_str::<Pinned>(PINNED).context("packages.toml is not as expected")?.package;
    if let Some(unknown) = only.iter().find(|name| !packages.iter().any(|package| package.name == **name)) {
        let names: Vec<_> = packages.iter().map(|package| package.name.as_str()).collect();
        return Err(failure(format!("no package `{unknown}`"), format!("there are: {}", names.join(", "))));
    }
    packages.retain(|package| only.is_empty() || only.contains(&package.name));
    Ok(packages)
}

impl Package {
    /// Fetches and unpacks it below `cache` unless it is there; returns its folder.
    pub(crate) fn fetch(&self, tools: &Tools, cache: &Path) -> anyhow::Result<PathBuf> {
        let folder = cache.join(format!("{}-{}", self.name, self.version));
        if folder.exists() {
            return Ok(folder);
        }
        fs::create_dir_all(cache).with_context(|| format!("failed to make `{}`", cache.display()))?;
        // Under another name first: a folder that is there is whole.
        let partial = folder.with_extension("partial");
        fetch(tools).arg("get").arg(&partial).args([&self.name, &self.file, &self.sha256]).run().or_hint(
            format!("failed to fetch `{}`", self.file),
            "it needs the Python package index; try again",
        )?;
        fs::rename(&partial, &folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        Ok(folder)
    }
}

/// Prints the entry of packages.toml for a version.
pub(crate) fn pin(tools: &Tools, name: &str, version: &str) -> anyhow::Result<String> {
    fetch(tools).args(["pin", name, version]).read()
}

fn fetch(tools: &Tools) -> Cmd {
    tools.command("python").args(["-c", FETCH])
}

/// Counts what lies below a folder.
pub(crate) fn size(folder: &Path) -> anyhow::Result<Size> {
    let mut size = Size::default();
    for entry in fs::read_dir(folder).with_context(|| format!("failed to list `{}`", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            let below = self::size(&path)?;
            size = Size { files: size.files + below.files, lines: size.lines + below.lines };
        } else if path.extension().is_some_and(|extension| extension == "py") {
            let text = fs::read(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
            size.files += 1;
            size.lines += String::from_utf8_lossy(&text).lines().count();
        }
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn packages_are_pinned_in_order_and_chosen_by_name() {
        let all = chosen(&[]).unwrap();
        assert!(all.iter().map(|package| &package.name).is_sorted());
        assert!(all.iter().all(|package| package.sha256.len() == 64));
        assert_eq!(chosen(&["timm".into()]).unwrap()[0].name, "timm");
        assert!(chosen(&["left-pad".into()]).unwrap_err().to_string().contains("`left-pad`"));
    }

    #[test]
    fn lines_of_python_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("a.py"), "x\ny\n").unwrap();
        fs::write(folder.path().join("sub/b.py"), "z\n").unwrap();
        fs::write(folder.path().join("notes.txt"), "z\n").unwrap();
        assert_eq!(size(folder.path()).unwrap(), Size { files: 2, lines: 3 });
    }
}
