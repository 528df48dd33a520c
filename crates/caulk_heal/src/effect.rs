//! What edits did to growth: the verdicts and findings of a run before and of one with the edits.

use caulk_core::{Finding, Growth, Series, State, Verdict, VerdictUnit};

use crate::candidate::EditCandidate;

/// The part of its growth by which an edit must lower the whole.
const SHARE: f64 = 0.9;

/// What was measured of one run.
#[derive(Debug, Clone, Copy)]
pub struct Measure<'a> {
    /// What every series does.
    pub verdicts: &'a [Verdict],
    /// What was found.
    pub findings: &'a [Finding],
}

/// Growth of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Per unit.
    pub value: f64,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// What a unit is.
    pub unit: VerdictUnit,
    /// What the series does.
    pub state: State,
}

impl Slope {
    fn of(verdict: &Verdict) -> Self {
        Self {
            value: verdict.bytes_per_unit,
            interval: verdict.interval,
            unit: verdict.unit,
            state: verdict.state,
        }
    }
}

/// What an edit did.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Its growth is gone, or down by its share.
    Helped,
    /// The report still has the leak.
    Nothing,
    /// It cannot be decided, for this reason.
    Open(String),
}

/// The effect of each of some edits that were applied together.
pub fn effects(edits: &[&EditCandidate], before: Measure<'_>, after: Measure<'_>) -> Vec<Effect> {
    let effect = |edit: &&EditCandidate| {
        if after.findings.iter().any(|finding| edit.is_about(finding)) {
            return Effect::Nothing;
        }
        let Some(now) = slope(edit, after) else {
            return Effect::Open("the series was not measured with the edit".into());
        };
        let Some(then) = slope(edit, before) else {
            return Effect::Open("the series was not measured without the edit".into());
        };
        match now.state {
            State::Undecided => Effect::Open("too few boundaries to judge growth with the edit".into()),
            State::Grows if now.unit != then.unit => {
                Effect::Open("the two runs were measured in different units".into())
            }
            State::Grows if !fell(then, now, share(edits, edit)) => Effect::Nothing,
            State::Flat | State::Plateaus | State::Sawtooth | State::Grows | State::GrowsWithinEpoch => {
                Effect::Helped
            }
        }
    };
    edits.iter().map(effect).collect()
}

/// Whether growth fell by a share, beyond the intervals of both.
fn fell(then: Slope, now: Slope, share: f64) -> bool {
    let apart = match (then.interval, now.interval) {
        (Some([low, _]), Some([_, high])) => high < low,
        _ => true,
    };
    apart && then.value - now.value >= SHARE * share.min(then.value)
}

/// What all edits of a series together should take away from it.
fn share(edits: &[&EditCandidate], of: &EditCandidate) -> f64 {
    let same = |edit: &&&EditCandidate| edit.process == of.process && series(edit) == series(of);
    let rate = |growth: &Growth| growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit);
    edits.iter().filter(same).filter_map(|edit| edit.growth.as_ref()).map(rate).sum()
}

fn series(edit: &EditCandidate) -> Series {
    edit.growth.as_ref().map(|growth| growth.series).unwrap_or_default()
}

/// Growth of the series in which a leak shows; resident memory if nothing else was judged.
fn slope(edit: &EditCandidate, measure: Measure<'_>) -> Option<Slope> {
    let of = |wanted: Series| {
        let same = |verdict: &&Verdict| {
            let process = &verdict.process;
            verdict.series == wanted
                && (&process.role, process.index) == (&edit.process.role, edit.process.index)
        };
        measure.verdicts.iter().find(same)
    };
    of(series(edit)).or_else(|| of(Series::Rss)).map(Slope::of)
}
