//! The verdicts on one process's series, with what they were reached by.

use caulk_core::{Series, State, Verdict};
use caulk_growth::Within;

use crate::units::Scale;
use crate::within;

/// What one process's series do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) scale: Option<Scale>,
    /// Growth per unit that matters, in bytes.
    pub(crate) least: f64,
    /// Bytes that were left of the host's memory in the end.
    pub(crate) room: Option<f64>,
    /// Whether memory grows is open because of what fills up.
    pub(crate) fills: bool,
    /// Bytes in use rise by what is mapped beside the allocators.
    pub(crate) is_mapped: bool,
    /// The verdict on them as on readings with noise, by which they do not grow: exact ones show small growth for certain.
    pub(crate) with_noise: Option<Verdict>,
    /// They rise within epochs, and from one to the next they do not, or it is open whether they do.
    pub(crate) within: Option<Within>,
    /// Growth per unit that matters of series on GPUs, in bytes.
    pub(crate) least_on_gpu: Vec<(Series, f64)>,
}

impl Judged {
    pub(crate) fn in_use(&self) -> Option<&Verdict> {
        self.series(Series::InUse)
    }

    pub(crate) fn series(&self, series: Series) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.series == series)
    }

    /// Growth per unit that matters in this kind of memory, in bytes.
    pub(crate) fn least_of(&self, series: Series) -> f64 {
        let on_gpu = self.least_on_gpu.iter().find(|(known, _)| *known == series);
        on_gpu.map_or(self.least, |(_, least)| *least)
    }

    /// The verdicts as they are told: what does not grow from epoch to epoch, and was seen to rise within each of them, or to
    /// be `full` within one, says so.
    pub(crate) fn told(mut self, full: bool) -> Vec<Verdict> {
        let level = |state| matches!(state, State::Flat | State::Sawtooth | State::Plateaus);
        let in_use = self.verdicts.iter_mut().find(|verdict| verdict.series == Series::InUse);
        let in_use = in_use.filter(|verdict| verdict.state != State::Grows);
        match (in_use, self.within) {
            (Some(verdict), Some(within)) => within::tell(verdict, within),
            (Some(verdict), None) if full && level(verdict.state) => {
                verdict.state = State::GrowsWithinEpoch;
                verdict.text = "level at the ends of epochs, far higher within them".into();
            }
            _ => {}
        }
        self.verdicts
    }

    /// The fastest growth that the process's memory shows, where it grows.
    pub(crate) fn ceiling(&self) -> Option<f64> {
        let grows = |verdict: &&Verdict| verdict.state == State::Grows;
        self.in_use().filter(grows)?;
        let counted = |verdict: &&Verdict| matches!(verdict.series, Series::InUse | Series::Rss);
        let rates = self.verdicts.iter().filter(grows).filter(counted).map(|verdict| verdict.bytes_per_unit);
        rates.max_by(f64::total_cmp)
    }

    /// Leaves open whether memory grows, for so many boundaries: the bytes in use, and the pages that they lie in.
    pub(crate) fn postpone(&mut self, more: u32, text: &str) {
        let rises = |verdict: &&mut Verdict| {
            verdict.series == Series::InUse
                || (verdict.series == Series::Rss && verdict.state == State::Grows)
        };
        for verdict in self.verdicts.iter_mut().filter(rises) {
            verdict.state = State::Undecided;
            verdict.more_needed = Some(more);
            verdict.oom_in_s = None;
            verdict.text = text.into();
        }
    }

    /// Memory lasts longer than its growth tells: only so large a part of that goes on.
    pub(crate) fn slow_down(&mut self, part: f64) {
        for verdict in
            self.verdicts.iter_mut().filter(|verdict| matches!(verdict.series, Series::InUse | Series::Rss))
        {
            let lasts = part * verdict.bytes_per_unit >= self.least;
            verdict.oom_in_s = verdict.oom_in_s.filter(|_| lasts).map(|span| span.map(|until| until / part));
        }
    }

    /// Lets resident memory decide: what grows lies with an allocator that does not say what it has in use.
    pub(crate) fn leave_to_resident(&mut self) {
        let in_use = self.verdicts.iter_mut().find(|verdict| verdict.series == Series::InUse);
        if let Some(verdict) = in_use {
            verdict.state = State::Undecided;
            verdict.interval = None;
            verdict.text = "what a library's own allocator has in use is not in it".into();
        }
    }

    /// Do the bytes in use grow by less than is asked of readings with noise?
    pub(crate) fn is_small(&self) -> bool {
        self.with_noise.is_some()
    }

    /// Takes back that memory grows, where that is little and what grows is known and harmless.
    pub(crate) fn leave_small(&mut self) {
        let in_use = self.verdicts.iter_mut().find(|verdict| verdict.series == Series::InUse);
        if let Some((verdict, with_noise)) = in_use.zip(self.with_noise.take()) {
            *verdict = with_noise;
        }
    }

    pub(crate) fn in_use_state(&self) -> Option<State> {
        self.in_use().map(|verdict| verdict.state)
    }
}
