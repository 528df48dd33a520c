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
    let mut failed = None;
    for program in places() {
        let mut command = Command::new(&program);
        caulk_supervise::as_found(command.args(&args.words));
        let error = command.exec();
        if error.kind() != io::ErrorKind::NotFound {
            let program = program.display();
            failed = failed.or_else(|| Some(anyhow!(error).context(format!("failed to start `{program}`"))));
        }
    }
    Err(failed.unwrap_or_else(|| NotInstalled.into()))
}

/// Files that may be it: where the same environment has it, links followed or not, then in the folders of the path.
fn places() -> Vec<PathBuf> {
    let exe = env::current_exe().ok();
    let real = exe.as_ref().and_then(|exe| exe.canonicalize().ok());
    let beside = [exe, real].into_iter().flatten().map(|exe| exe.with_file_name(COMMAND));
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(COMMAND));
    beside.chain(on_path).filter(|place| place.is_file()).collect()
}
