//! Exit codes. `caulk run` ends with the command's own, except for these.

use caulk_supervise::LaunchError;

/// `--fail-on-leak`: a leak was found and the command itself succeeded.
pub(crate) const LEAK_FOUND: i32 = 3;

/// caulk itself failed; as `env`, `nohup` and `timeout` say it. (126: the command cannot be executed, 127: it is not
/// found; clap ends with 2 where arguments are wrong.)
pub(crate) const FAILED: i32 = caulk_supervise::EXIT_FAILED;

/// The reader of caulk's output has gone: no failure.
pub(crate) const SUCCESS: i32 = 0;

/// The exit code for an error.
pub(crate) fn code(error: &anyhow::Error) -> i32 {
    error.downcast_ref::<LaunchError>().map_or(FAILED, LaunchError::exit_code)
}
