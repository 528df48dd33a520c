//! Which systems a wheel runs on, by the versions of the symbols that all its libraries and commands need.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

use crate::console::failure;
use crate::environment::Tools;

/// Newest tag that a published wheel may have: glibc of Debian 10, RHEL 8, Ubuntu 18.10.
const PUBLISHED: (u32, u32) = (2, 28);

/// The answer of `auditwheel show --json`.
#[derive(Debug, Deserialize)]
struct Shown {
    overall_tag: String,
    external_libs: serde_json::Map<String, serde_json::Value>,
}

/// Gives the wheel the tag that its symbols allow, and returns its new path.
///
/// # Errors
/// If it needs libraries that other systems lack.
pub(crate) fn tagged(tools: &Tools, wheel: &Path) -> anyhow::Result<PathBuf> {
    let shown = tools.command("auditwheel").args(["show", "--json"]).arg(wheel).read()?;
    let shown: Shown =
        serde_json::from_str(&shown).context("failed to read the answer of `auditwheel show`")?;
    if !shown.external_libs.is_empty() {
        let libraries: Vec<_> = shown.external_libs.keys().map(String::as_str).collect();
        return Err(failure(
            format!("the wheel needs {}, which other systems may lack", libraries.join(", ")),
            "link them statically, or load them when they are there",
        ));
    }
    let name = tools
        .command("wheel")
        .args(["tags", "--remove", "--platform-tag", &shown.overall_tag])
        .arg(wheel)
        .read()?;
    Ok(wheel.with_file_name(name.trim()))
}

/// Whether a wheel of this name runs wherever published wheels must run; the glibc that it needs if not.
pub(crate) fn newer_glibc(name: &str) -> Option<(u32, u32)> {
    let (_, tag) = name.split_once("manylinux_")?;
    let mut numbers = tag.split('_').map(str::parse);
    let glibc = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (glibc > PUBLISHED).then_some(glibc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_names_the_glibc() {
        assert_eq!(newer_glibc("caulk-0.2.0-cp310-abi3-manylinux_2_28_x86_64.whl"), None);
        assert_eq!(newer_glibc("caulk-0.2.0-cp310-abi3-manylinux_2_17_x86_64.manylinux2014.whl"), None);
        assert_eq!(newer_glibc("caulk-0.2.0-cp310-abi3-manylinux_2_35_x86_64.whl"), Some((2, 35)));
    }
}
