//! Licences and sources of what a workspace brings in.

use crate::console::{self, OrHint};
use crate::process::Cmd;
use crate::workspace::Workspace;

/// Licences and sources of what a workspace brings in.
pub(crate) fn dependencies(workspace: &Workspace, manifest: &str) -> anyhow::Result<()> {
    if !Cmd::cargo().args(["deny", "--version"]).works() {
        console::note("cargo-deny is not installed: licences and sources of dependencies not checked");
        return Ok(());
    }
    console::step("licences and sources of dependencies");
    let deny =
        ["deny", "--log-level", "error", "--manifest-path", manifest, "check", "--config", "deny.toml"];
    Cmd::cargo()
        .args(deny.into_iter().chain(["bans", "licenses", "sources"]))
        .folder(workspace.root())
        .run()
        .or_hint("a dependency is not allowed", "see deny.toml for the reason")
}
