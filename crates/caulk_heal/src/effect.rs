//! What edits did to growth: the verdicts and findings of a run before and of one with the edits.

use caulk_core::{Finding, Growth, Series, State, Verdict, VerdictUnit};

use crate::candidate::EditCandidate;

/// The part of its growth by which an edit must lower the whole: what a container keeps is known within 20 %.
const SHARE: f64 = 0.8;

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
            State::Undecided
                if now.unit == then.unit && known(then, now) && fell(then, now, share(edits, edit)) =>
            {
                Effect::Helped
            }
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

/// Whether both rates have an interval.
fn known(then: Slope, now: Slope) -> bool {
    then.interval.is_some() && now.interval.is_some()
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

#[cfg(test)]
mod tests {
    use caulk_core::{Fix, LeakClass, ProcessRef, Remedy, Settled, Severity, Site, SiteRole};

    use super::*;

    fn site(line: u32) -> Site {
        Site {
            role: SiteRole::Grows,
            file: "a.py".into(),
            line,
            end_line: line,
            column: 1,
            function: "f".into(),
            text: format!("line {line}"),
            cell: None,
        }
    }

    fn edit(line: u32, bytes_per_unit: f64) -> EditCandidate {
        EditCandidate {
            class: LeakClass::UnboundedHistory,
            site: site(line),
            holder: String::new(),
            process: ProcessRef::main(),
            growth: Some(Growth::of_bytes(VerdictUnit::Epoch, Series::InUse, bytes_per_unit, None)),
            remedy: Remedy::from(Fix {
                applicability: caulk_core::Applicability::Unsafe,
                description: String::new(),
                edits: Vec::new(),
            }),
        }
    }

    fn verdict(state: State, bytes_per_unit: f64) -> Verdict {
        let interval = Some([bytes_per_unit * 0.9, bytes_per_unit * 1.1]);
        Verdict {
            process: ProcessRef::main(),
            series: Series::InUse,
            state,
            unit: VerdictUnit::Epoch,
            bytes_per_unit,
            bytes_per_epoch: None,
            interval,
            level: 0.95,
            boundaries: 8,
            warmup: 1,
            more_needed: None,
            boundary_units: 1.0,
            last: 0.0,
            unit_steps: None,
            unit_seconds: None,
            limit: None,
            oom_in_s: None,
            text: String::new(),
        }
    }

    fn finding(line: u32) -> Finding {
        let class = LeakClass::UnboundedHistory;
        Finding::new(Settled { sites: vec![site(line)], severity: Severity::Error, ..Settled::of(class) })
    }

    /// The effects of edits on growth of 100 bytes per epoch.
    fn after(
        edits: &[EditCandidate],
        state: State,
        bytes_per_unit: f64,
        findings: &[Finding],
    ) -> Vec<Effect> {
        let (before, after) = ([verdict(State::Grows, 100.0)], [verdict(state, bytes_per_unit)]);
        let edits: Vec<&EditCandidate> = edits.iter().collect();
        let before = Measure { verdicts: &before, findings: &[] };
        effects(&edits, before, Measure { verdicts: &after, findings })
    }

    #[test]
    fn growth_that_is_gone_or_down_by_its_share_is_help() {
        assert_eq!(after(&[edit(1, 100.0)], State::Flat, 0.0, &[]), [Effect::Helped]);
        assert_eq!(after(&[edit(1, 60.0)], State::Grows, 40.0, &[]), [Effect::Helped]);
        assert_eq!(after(&[edit(1, 60.0)], State::Grows, 51.0, &[]), [Effect::Helped]);
        assert_eq!(after(&[edit(1, 60.0)], State::Grows, 53.0, &[]), [Effect::Nothing]);
        assert_eq!(
            after(&[edit(1, 5.0)], State::Grows, 95.0, &[]),
            [Effect::Nothing],
            "within the intervals"
        );
    }

    #[test]
    fn a_leak_that_is_reported_again_was_not_helped() {
        let both = [edit(1, 50.0), edit(2, 50.0)];
        assert_eq!(after(&both, State::Flat, 0.0, &[finding(2)]), [Effect::Helped, Effect::Nothing]);
    }

    #[test]
    fn an_undecided_run_helps_only_if_its_interval_is_below_that_of_before() {
        assert_eq!(after(&[edit(1, 100.0)], State::Undecided, 5.0, &[]), [Effect::Helped]);
        let effects = after(&[edit(1, 100.0)], State::Undecided, 50.0, &[]);
        assert!(matches!(effects[..], [Effect::Open(_)]), "{effects:?}");
    }
}
