//! `caulk clips`: hands over to `caulk-clips`, a package of its own.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::{env, io};

use anyhow::anyhow;

use crate::cli::ClipsArgs;

/// The command of the package.
const COMMAND: &str = "caulk-clips";

/// Why there is no such command; [`crate::exit`] knows it.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{COMMAND}` is not installed\nhint: install it: `pip install /path/to/caulk/caulk-clips`, or `cargo xtask develop --clips` \
     in caulk's source tree"
)]
pub(crate) struct NotInstalled;

/// Becomes `caulk-clips`: the one beside this command, or else the first on the path.
///
/// # Errors
/// [`NotInstalled`], or why it cannot be started.
pub(crate) fn run(args: &ClipsArgs) -> anyhow::Result<i32> {
    let programs = beside().into_iter().chain([COMMAND.into()]);
    for program in programs {
        let error = Command::new(&program).args(&args.words).exec();
        if error.kind() != io::ErrorKind::NotFound {
            let program = program.display().to_string();
            return Err(anyhow!(error).context(format!("failed to start `{program}`")));
        }
    }
    Err(NotInstalled.into())
}

/// Where the same environment has it, links followed or not.
fn beside() -> Vec<PathBuf> {
    let Ok(exe) = env::current_exe() else { return Vec::new() };
    let real = exe.canonicalize().ok();
    [Some(exe), real].into_iter().flatten().map(|exe| exe.with_file_name(COMMAND)).collect()
}
