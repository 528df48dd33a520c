//! All rows of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::State;
use serde::Serialize;

use crate::comparable::{check, unit_name};
use crate::{Incomparable, MedianOfRepeats, Quantity, RowChange, RunFacts, Trend};

/// Rows of containers, and of lines.
const MOST: usize = 20;

/// Two groups of runs compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Names of the runs in A,
    pub a: Vec<String>,
    /// ... and in B.
    pub b: Vec<String>,
    /// What memory does in each run of A,
    pub a_states: Vec<&'static str>,
    /// ... and of B.
    pub b_states: Vec<&'static str>,
    /// Unit of growth; empty if no run was judged.
    pub unit: &'static str,
    /// The rows: growth first, then peaks and time, containers and lines by their change.
    pub rows: Vec<RowChange>,
}

impl Difference {
    /// Whether memory grows faster in B by more than so many bytes per unit, beyond doubt.
    pub fn grows_faster_by(&self, bytes: f64) -> bool {
        let growth = self.rows.iter().filter(|row| matches!(row.kind, "growth" | "GPU growth"));
        let mut growth = growth.filter(|row| row.trend == Trend::Higher);
        growth.any(|row| row.change.is_some_and(|change| change > bytes))
    }
}

/// Compares groups of runs of one program.
///
/// # Errors
/// [`Incomparable`] if they differ in program, version or unit.
pub fn diff(a: &[RunFacts], b: &[RunFacts]) -> Result<Difference, Incomparable> {
    let unit = check(a, b)?.map_or("", unit_name);
    let rate = format!("bytes per {}", if unit.is_empty() { "unit" } else { unit });
    let slope = |run: &RunFacts| run.memory.map(|(.., slope)| slope);
    let plain = |value: Option<f64>| value.map(|value| Quantity { value, interval: None });
    let mut rows = vec![
        row("growth", &rate, a, b, slope),
        row("GPU growth", &rate, a, b, |run| run.gpu),
        row("host peak", "bytes", a, b, |run| plain(run.host_peak)),
        row("GPU peak", "bytes", a, b, |run| plain(run.gpu_peak)),
        row("time per step", "seconds", a, b, |run| plain(run.seconds_per_step)),
    ];
    rows.retain(|row| row.a.is_some() || row.b.is_some());
    rows.extend(named("container", &rate, a, b, containers));
    rows.extend(named("line", "bytes", a, b, lines));
    let names = |runs: &[RunFacts]| runs.iter().map(|run| run.name.clone()).collect();
    let states = |runs: &[RunFacts]| {
        let state =
            |run: &RunFacts| run.memory.map_or("not judged", |(state, ..): (State, _, _, _)| state.as_str());
        runs.iter().map(state).collect()
    };
    Ok(Difference { a: names(a), b: names(b), a_states: states(a), b_states: states(b), unit, rows })
}

fn row(
    kind: &'static str,
    unit: &str,
    a: &[RunFacts],
    b: &[RunFacts],
    of: impl Fn(&RunFacts) -> Option<Quantity>,
) -> RowChange {
    let side = |runs: &[RunFacts]| MedianOfRepeats::of(runs.iter().filter_map(&of));
    RowChange::of(kind, String::new(), unit.to_owned(), side(a), side(b))
}

type Named = BTreeMap<String, Quantity>;

fn containers(run: &RunFacts) -> Named {
    run.containers.iter().map(|container| (container.holder.clone(), container.rate)).collect()
}

/// By function, since an edit elsewhere in the file moves lines.
fn lines(run: &RunFacts) -> Named {
    let mut all = Named::new();
    for line in &run.lines {
        let name = format!("{}  {}", line.file, line.function);
        let sum = all.entry(name).or_insert(Quantity { value: 0.0, interval: Some([0.0, 0.0]) });
        sum.value += line.live.value;
        let added = sum.interval.zip(line.live.interval);
        sum.interval = added.map(|(sum, own)| [sum[0] + own[0], sum[1] + own[1]]);
    }
    all
}

/// Rows of what has a name. A run in which it was not found counts as 0.
fn named(
    kind: &'static str,
    unit: &str,
    a: &[RunFacts],
    b: &[RunFacts],
    of: impl Fn(&RunFacts) -> Named,
) -> Vec<RowChange> {
    let sides = [a, b].map(|runs| runs.iter().map(&of).collect::<Vec<Named>>());
    let names: BTreeSet<&String> = sides.iter().flatten().flat_map(Named::keys).collect();
    let measured = |runs: &[Named], name: &str| {
        let none = Quantity { value: 0.0, interval: Some([0.0, 0.0]) };
        let found = runs.iter().any(|run| run.contains_key(name));
        let quantities = runs.iter().map(|run| run.get(name).copied().unwrap_or(none));
        if found { MedianOfRepeats::of(quantities) } else { Some(MedianOfRepeats::none(runs.len())) }
    };
    let mut rows: Vec<RowChange> = names
        .into_iter()
        .map(|name| {
            let [a, b] = [&sides[0], &sides[1]].map(|runs| measured(runs, name));
            RowChange::of(kind, name.clone(), unit.to_owned(), a, b)
        })
        .collect();
    rows.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    rows.truncate(MOST);
    rows
}

#[cfg(test)]
mod tests {
    use caulk_core::{Series, VerdictUnit};

    use super::*;
    use crate::ContainerGrowth;

    fn run(slope: f64, peak: f64) -> RunFacts {
        let quantity = Quantity { value: slope, interval: Some([slope - 1.0, slope + 1.0]) };
        RunFacts {
            name: format!("run-{slope}"),
            program: "train.py".into(),
            version: "0.1.0".into(),
            memory: Some((State::Grows, Series::InUse, VerdictUnit::Epoch, quantity)),
            gpu: None,
            host_peak: Some(peak),
            gpu_peak: None,
            seconds_per_step: None,
            containers: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn check(a: &[RunFacts], b: &[RunFacts], kind: &str, change: f64, trend: Trend) {
        let difference = diff(a, b).expect("comparable");
        let row = difference.rows.iter().find(|row| row.kind == kind).expect("a row");
        assert_eq!((row.change, row.trend), (Some(change), trend), "{row:?}");
    }

    #[test]
    fn a_change_needs_intervals_that_do_not_touch() {
        check(&[run(4.0, 9.0)], &[run(20.0, 9.0)], "growth", 16.0, Trend::Higher);
        check(&[run(20.0, 9.0)], &[run(4.0, 9.0)], "growth", -16.0, Trend::Lower);
        check(&[run(4.0, 9.0)], &[run(5.0, 9.0)], "growth", 1.0, Trend::Unclear);
        check(&[run(4.0, 9.0)], &[run(4.0, 99.0)], "host peak", 90.0, Trend::Unclear);
        let repeats = [1.0, 2.0, 3.0].map(|peak| run(4.0, peak));
        check(&repeats, &[5.0, 6.0, 7.0].map(|peak| run(4.0, peak)), "host peak", 4.0, Trend::Higher);
    }

    #[test]
    fn a_container_that_is_gone_has_no_growth() {
        let rate = Quantity { value: 8.0, interval: Some([7.0, 9.0]) };
        let leaky =
            RunFacts { containers: vec![ContainerGrowth { holder: "seen".into(), rate }], ..run(8.0, 1.0) };
        check(&[leaky], &[run(0.0, 1.0)], "container", -8.0, Trend::Lower);
    }

    #[test]
    fn a_limit_is_passed_beyond_doubt_alone() {
        let grows =
            |a: f64, b: f64| diff(&[run(a, 1.0)], &[run(b, 1.0)]).expect("comparable").grows_faster_by(5.0);
        assert!(grows(0.0, 8.0));
        assert!(!grows(0.0, 4.0) && !grows(8.0, 0.0) && !grows(7.0, 8.0));
    }

    #[test]
    fn runs_of_other_programs_are_refused() {
        let other = RunFacts { program: "other.py".into(), ..run(1.0, 1.0) };
        let later = RunFacts { version: "9.0.0".into(), ..run(1.0, 1.0) };
        let mut by_step = run(1.0, 1.0);
        by_step.memory =
            by_step.memory.map(|(state, series, _, slope)| (state, series, VerdictUnit::Steps, slope));
        let refused = |b: RunFacts| diff(&[run(1.0, 1.0)], &[b]).expect_err("incomparable").to_string();
        assert!(refused(other).contains("`other.py`"));
        assert!(refused(later).contains("caulk 9.0.0"));
        assert!(refused(by_step).contains("per step"));
        assert_eq!(diff(&[], &[]), Err(Incomparable::Empty));
    }
}
