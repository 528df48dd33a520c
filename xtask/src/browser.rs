//! What tests of pages need beside a browser: axe-core, which judges how accessible a page is. It is downloaded from npm and
//! verified; nothing of it is part of a product.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::console::{self, failure};
use crate::debian::hex;
use crate::process::Cmd;
use crate::workspace::Workspace;

const VERSION: &str = "4.14.1";
/// Of the archive as npm has it.
const SHA256: &str = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745";
const FOLDER: &str = "target/axe-core";

/// The script to run in a page; `None` where it cannot be had, and the tests report that.
pub(crate) fn axe(workspace: &Workspace) -> Option<PathBuf> {
    let script = workspace.path(FOLDER).join(VERSION).join("package/axe.min.js");
    if script.is_file() {
        return Some(script);
    }
    match download(workspace) {
        Ok(()) => Some(script).filter(|script| script.is_file()),
        Err(error) => {
            console::note(format!("axe-core {VERSION} is missing, and its tests are skipped: {error:#}"));
            None
        }
    }
}

fn download(workspace: &Workspace) -> anyhow::Result<()> {
    let folder = workspace.path(FOLDER).join(VERSION);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let package = format!("axe-core@{VERSION}");
    Cmd::new("npm").args(["pack", "--silent", &package]).folder(&folder).read()?;
    let archive = folder.join(format!("axe-core-{VERSION}.tgz"));
    let bytes = fs::read(&archive).with_context(|| format!("failed to read `{}`", archive.display()))?;
    if hex(&Sha256::digest(&bytes)) != SHA256 {
        return Err(failure(
            format!("axe-core {VERSION} is not what it was"),
            format!("its SHA-256 was {SHA256}"),
        ));
    }
    Cmd::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder).arg("package/axe.min.js").run()
}
