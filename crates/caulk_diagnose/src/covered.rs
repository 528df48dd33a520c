//! How much of a run the readings of bytes in use cover: "does not grow" holds only for the part that was read.

use caulk_core::wire::{Boundary, Message};
use caulk_core::{Recording, Sample, State};
use caulk_growth::Judgement;

use crate::baselines::{Baselines, open};
use crate::process::Process;
use crate::units::Scale;

/// Part of the run that readings must cover.
const COVERED: f64 = 0.8;
/// A program tidies up at its end for so long, in seconds, at any rate.
const ENDING: f64 = 2.0;
/// The end may lie so many usual distances of boundaries after the last of them: the last epoch ends without one.
const BEYOND: f64 = 2.0;

/// The judgement, left open where it says that bytes in use do not grow and they were not read for long enough.
pub(crate) fn or_open(
    recording: &Recording,
    process: &Process<'_>,
    scale: Scale,
    baselines: &Baselines,
    judgement: Judgement,
) -> Judgement {
    if !matches!(judgement.state, State::Flat | State::Sawtooth | State::Plateaus) {
        return judgement;
    }
    let Some(missed) = Missed::of(recording, process, scale) else { return judgement };
    let text = format!(
        "does not grow as far as it was read, for {:.0} of {:.0} seconds: {}",
        missed.read,
        missed.run,
        missed.why()
    );
    let units = (missed.run - missed.read) / scale.seconds.filter(|seconds| *seconds > 0.0).unwrap_or(1.0);
    open(&judgement, baselines.count_of(units), &text)
}

/// A run of which too much was not read, in seconds from the first reading on.
struct Missed {
    read: f64,
    run: f64,
    /// Boundaries since the last reading, which had none.
    unread: usize,
}

impl Missed {
    fn of(recording: &Recording, process: &Process<'_>, scale: Scale) -> Option<Self> {
        let is_read = |boundary: &&Boundary| boundary.malloc_bytes > 0;
        let first = process.of_unit(scale.unit).find(is_read)?.time_ns;
        let looks = looks(recording, process);
        // What other boundaries read, and what was counted from outside, is read as well.
        let counted = looks.iter().rfind(|look| look.counted.is_some()).map_or(0, |look| look.time_ns);
        let last = process.boundaries.iter().copied().rfind(is_read)?.time_ns.max(counted);
        let end = looks.last().map_or(0, |look| look.time_ns).max(process.seen_until()?);
        let seconds = |until: u64| until.saturating_sub(first) as f64 / 1e9;
        let (read, run) = (seconds(last), seconds(end));
        let unread = process.boundaries.iter().filter(|boundary| boundary.time_ns > last).count();
        let usual = if unread > 0 { 0.0 } else { BEYOND * scale.spacing * scale.seconds.unwrap_or(0.0) };
        (read < COVERED * run && run - read > ENDING.max(usual)).then_some(Self { read, run, unread })
    }

    fn why(&self) -> String {
        match self.unread {
            0 => "nothing after that was a boundary; `caulk.epoch()` or `caulk.step()` in the loop that ran then gives readings"
                .into(),
            unread => format!(
                "what malloc has in use was too dear to be asked at the last {unread} boundaries; with the heap sampler \
                 (without `--no-heap`) it is counted at each"
            ),
        }
    }
}

/// What was seen of the process from outside; nothing where its identifier has belonged to several programs.
fn looks<'a>(recording: &'a Recording, process: &Process<'_>) -> Vec<&'a Sample> {
    let pid = process.record.pid;
    let begins = recording.events.iter().filter(|event| event.pid == pid);
    if begins.filter(|event| matches!(event.message, Message::Hello(_))).count() > 1 {
        return Vec::new();
    }
    recording.samples.iter().filter(|sample| sample.pid == pid).collect()
}
