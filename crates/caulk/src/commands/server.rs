//! `caulk server`: findings in an editor.

use super::check::directory;
use crate::{exit, server};

/// Serves an editor on standard input and output.
///
/// # Errors
/// If the editor does not speak the protocol.
pub(crate) fn run() -> anyhow::Result<i32> {
    server::run(&directory()?)?;
    Ok(exit::SUCCESS)
}
