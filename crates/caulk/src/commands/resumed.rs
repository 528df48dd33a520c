//! `caulk verify --checkpoint --resume-cmd`: does the command continue from the checkpoints of the first run?

use std::ffi::OsString;

use anyhow::Context;
use caulk_core::EndingKind;
use caulk_guard::{Resume, choose};
use caulk_supervise::{Checkpoints, Options};

use super::guarded::checkpoints;
use super::live::live;
use super::recording;
use crate::cli::{RunArgs, VerifyArgs};
use crate::printer::Printer;
use crate::{assemble, exit};

/// A restart that is to be tried after the run.
pub(crate) struct Trial {
    resume: Resume,
    /// With the checkpoints that are older than the run.
    checkpoints: Checkpoints,
}

impl Trial {
    /// The one that was asked for; made before the run, so that older checkpoints are known.
    ///
    /// # Errors
    /// A command or a pattern that is none.
    pub(crate) fn of(args: &VerifyArgs) -> anyhow::Result<Option<Self>> {
        let Some(command) = &args.resume_cmd else { return Ok(None) };
        let resume = Resume::parse(command).context("`--resume-cmd` is no command")?;
        let checkpoints = checkpoints(args.checkpoint.as_deref(), &args.command)?;
        Ok(Some(Self { resume, checkpoints }))
    }

    /// Whether the command makes a step from the newest checkpoint and does not fail: one epoch of it, or all.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn goes_on(
        &self,
        args: &RunArgs,
        options: &Options,
        id: &str,
        printer: Printer,
    ) -> anyhow::Result<bool> {
        let found = self.checkpoints.find();
        let newest = choose(&found, None).map(|checkpoint| checkpoint.path.as_str());
        let Some(words) = self.resume.words(newest).filter(|_| newest.is_some()) else { return Ok(false) };
        let command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let options = Options { command: command.clone(), epochs: Some(1), ..options.clone() };
        let recorder = recording::begin_life(args, &command, None, id, 2, printer);
        let (recorded, outcome) = live(&options, recorder)?;
        let report = assemble::ended(vec![recorded])?;
        let well = outcome.exit_code == exit::SUCCESS
            || report.ending.is_some_and(|ending| ending.kind == EndingKind::StoppedByCaulk);
        Ok(well && report.summary.steps.is_some())
    }
}
