//! The test programs, compiled.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::program::written;

pub(crate) const C: &str = include_str!("program.c");
pub(crate) const CC: &str = include_str!("program.cc");

/// The program in C; its folder stays for as long as the tests run.
pub(crate) fn compiled() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let built = BUILT.get_or_init(|| build("cc", "program.c", C, &[]).expect("Debian's `gcc` builds it"));
    &built.1
}

/// Builds a program.
///
/// # Errors
/// What the compiler says, or that there is none.
pub(crate) fn build(
    compiler: &str,
    name: &str,
    text: &str,
    options: &[&str],
) -> Result<(TempDir, PathBuf), String> {
    let (folder, source) = written(name, text);
    let path = folder.path().join("program");
    let mut command = Command::new(compiler);
    command.args(["-O1", "-fno-builtin", "-rdynamic", "-pthread"]).args(options);
    let built = command.arg("-o").args([&path, &source]).arg("-ldl").output();
    let built = built.map_err(|error| format!("`{compiler}` cannot be started: {error}"))?;
    if built.status.success() {
        Ok((folder, path))
    } else {
        Err(String::from_utf8_lossy(&built.stderr).into())
    }
}

/// Says what was not tried, and why.
#[expect(clippy::print_stdout, reason = "what was skipped is said")]
pub(crate) fn skipped(what: &str, why: &str) {
    println!("skipped: {what}: {}", why.trim());
}
