//! Exit codes. `caulk run` ends with the command's own, except for these.

use caulk_diff::Incomparable;
use caulk_supervise::LaunchError;
use caulk_verify::ChecklistError;

use crate::cli::Command;
use crate::commands::clips::NotInstalled;

/// `--fail-on-leak`: a leak was found and the command itself succeeded.
pub(crate) const LEAK_FOUND: i32 = 3;

/// caulk itself failed; as `env`, `nohup` and `timeout` say it. (126: the command cannot be executed, 127: it is not
/// found; clap ends with 2 where arguments are wrong.)
pub(crate) const FAILED: i32 = caulk_supervise::EXIT_FAILED;

/// `clips`: the package is not installed; as a shell says it.
pub(crate) const NOT_FOUND: i32 = caulk_supervise::EXIT_NOT_FOUND;

/// All is well.
pub(crate) const SUCCESS: i32 = 0;

/// `check`: findings that are more than advice.
pub(crate) const FOUND: i32 = 1;

/// `check`, `rule`, `rules`: wrong arguments or settings, or caulk itself failed; as other linters say it.
pub(crate) const UNUSABLE: i32 = 2;

/// `verify`: a required check is undecided. `diff`: the runs cannot be compared. `heal`: memory cannot be judged.
pub(crate) const UNDECIDED: i32 = 3;

/// `verify`: the command failed. `heal`: so did the unedited command, or its output cannot be compared.
pub(crate) const COMMAND_FAILED: i32 = 4;

/// After Ctrl-C, as in a shell.
pub(crate) const INTERRUPTED: i32 = 130;

/// The exit code for an error.
pub(crate) fn code(command: &Command, error: &anyhow::Error) -> i32 {
    match command {
        Command::Check(_) | Command::Rule(_) | Command::Rules(_) | Command::Server(_) => UNUSABLE,
        Command::Clips(_) if error.is::<NotInstalled>() => NOT_FOUND,
        Command::Diff(_) if error.is::<Incomparable>() => UNDECIDED,
        Command::Verify(_) if error.is::<ChecklistError>() => UNUSABLE,
        _ => error.downcast_ref::<LaunchError>().map_or(FAILED, LaunchError::exit_code),
    }
}

/// The exit code for a command that ended with `own`, where a leak was found that should make caulk fail.
pub(crate) fn after_run(own: i32, leak: bool) -> i32 {
    if leak && own == SUCCESS { LEAK_FOUND } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: i32, leak: bool, code: i32) {
        assert_eq!(after_run(own, leak), code);
    }

    #[test]
    fn a_leak_fails_only_what_succeeded() {
        check(0, true, LEAK_FOUND);
        check(0, false, 0);
        check(1, true, 1);
        check(137, true, 137);
    }
}
