//! One life of a command, recorded.

use caulk_supervise::Outcome;

use crate::recorder::{Recorded, Recorder};

/// Runs the command once, from its start to its end, and returns what was recorded of it.
///
/// # Errors
/// If it could not be started; then nothing is recorded.
pub(crate) fn live(
    options: &caulk_supervise::Options,
    mut recorder: Recorder,
) -> anyhow::Result<(Recorded, Outcome)> {
    match caulk_supervise::run(options, &mut recorder) {
        Ok(outcome) => Ok((recorder.finish(&outcome), outcome)),
        Err(error) => {
            recorder.discard();
            Err(error.into())
        }
    }
}
