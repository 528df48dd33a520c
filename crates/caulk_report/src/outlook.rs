//! Which of the verdicts decides: the growth that reaches its limit first.
//!
//! Bytes in use decide wherever a process can tell them; resident memory speaks only for processes that cannot.

use std::cmp::{Ordering, Reverse};

use caulk_core::{ProcessRef, Series, State, Verdict};

use crate::words::{self, Per};

/// What the verdicts say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outlook<'a> {
    /// Memory grows for the whole run.
    Grows(&'a Verdict),
    /// Memory in use does not grow, resident memory does: retention, no leak.
    Retains(&'a Verdict),
    /// Nor does what grows belong to the allocator: these are pages of files that are mapped.
    MapsFiles(&'a Verdict),
    /// Memory grows inside each epoch and is freed at its end.
    GrowsWithin(&'a Verdict),
    /// Too early to say.
    Undecided(&'a Verdict),
    /// Memory does not grow.
    Steady(&'a Verdict),
    /// Nothing was measured that could be judged.
    Unknown,
}

impl<'a> Outlook<'a> {
    /// Name for programs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Grows(_) => "grows",
            Self::Retains(_) => "retains",
            Self::MapsFiles(_) => "maps-files",
            Self::GrowsWithin(_) => "grows-within-epoch",
            Self::Undecided(_) => "undecided",
            Self::Steady(_) => "steady",
            Self::Unknown => "unknown",
        }
    }

    /// The verdict that decides; `None` if nothing could be judged.
    pub const fn verdict(&self) -> Option<&'a Verdict> {
        match self {
            Self::Grows(verdict)
            | Self::Retains(verdict)
            | Self::MapsFiles(verdict)
            | Self::GrowsWithin(verdict)
            | Self::Undecided(verdict)
            | Self::Steady(verdict) => Some(verdict),
            Self::Unknown => None,
        }
    }

    /// A few words for a table: `grows 16.5 MB per epoch`, `steady`.
    pub fn brief(&self) -> String {
        match self {
            Self::Grows(verdict) => {
                let per = Per::of(verdict.unit);
                format!(
                    "grows {} per {}",
                    words::rate(verdict.series, verdict.bytes_per_unit * per.factor),
                    per.name
                )
            }
            Self::Retains(_) => "steady; pages kept".into(),
            Self::MapsFiles(_) => "steady; files mapped".into(),
            Self::GrowsWithin(_) => "grows within epochs".into(),
            Self::Undecided(_) => "undecided".into(),
            Self::Steady(_) => "steady".into(),
            Self::Unknown => "not known".into(),
        }
    }
}

/// The verdict that decides.
pub fn outlook(verdicts: &[Verdict]) -> Outlook<'_> {
    // What allocators keep for later use is no growth of the program's.
    let beside = [
        Series::CudaReserved,
        Series::PinnedPool,
        Series::MappedFiles,
        Series::Fds,
        Series::Threads,
        Series::Children,
    ];
    let counted = |verdict: &&Verdict| !beside.contains(&verdict.series);
    let witness = |verdict: &&Verdict| counted(verdict) && trusted(verdict, verdicts);
    let first = |state: State| {
        let of_state = verdicts.iter().filter(witness).filter(|verdict| verdict.state == state);
        of_state.min_by(|a, b| before(a, b))
    };
    let grows = verdicts.iter().filter(witness).chain(ending(verdicts));
    if let Some(verdict) = grows.filter(|verdict| verdict.state == State::Grows).min_by(|a, b| sooner(a, b)) {
        return Outlook::Grows(verdict);
    }
    if let Some(verdict) = first(State::GrowsWithinEpoch) {
        return Outlook::GrowsWithin(verdict);
    }
    // The training process decides whether the question is open: a helper that lived for two epochs does not.
    let leading = verdicts.iter().filter(witness).map(|verdict| lead(&verdict.process)).max();
    let open = first(State::Undecided).filter(|verdict| Some(lead(&verdict.process)) == leading);
    let steady = [State::Flat, State::Sawtooth, State::Plateaus].into_iter().filter_map(first);
    let steady = steady.min_by_key(|verdict| (Reverse(lead(&verdict.process)), preference(verdict.series)));
    let retained = verdicts.iter().filter(counted).find(|verdict| verdict.state == State::Grows);
    match (open, retained, steady) {
        (Some(open), _, Some(steady)) if preference(steady.series) < preference(open.series) => {
            retained.map_or(Outlook::Steady(steady), |verdict| retention(verdict, verdicts))
        }
        (Some(open), ..) => Outlook::Undecided(open),
        (None, Some(retained), _) => retention(retained, verdicts),
        (None, None, Some(steady)) => Outlook::Steady(steady),
        (None, None, None) => first(State::Undecided).map_or(Outlook::Unknown, Outlook::Undecided),
    }
}

/// Growth that is no memory, yet ends the program at another limit: open files.
fn ending(verdicts: &[Verdict]) -> impl Iterator<Item = &Verdict> {
    verdicts.iter().filter(|verdict| verdict.series == Series::Fds && verdict.oom_in_s.is_some())
}

/// What reaches its limit first leads; without a forecast the order is that of [`before`].
fn sooner(a: &Verdict, b: &Verdict) -> Ordering {
    let end = |verdict: &Verdict| verdict.oom_in_s.map_or(f64::INFINITY, |[early, _]| early);
    end(a).total_cmp(&end(b)).then_with(|| before(a, b))
}

/// The training process comes before what serves it, what is in use before what is resident, fast growth before slow.
fn before(a: &Verdict, b: &Verdict) -> Ordering {
    let key = |verdict: &Verdict| (Reverse(lead(&verdict.process)), preference(verdict.series));
    key(a).cmp(&key(b)).then(b.bytes_per_unit.total_cmp(&a.bytes_per_unit))
}

/// Whose the pages are that a process keeps beyond what it has in use.
fn retention<'a>(resident: &'a Verdict, all: &[Verdict]) -> Outlook<'a> {
    let of_files = all.iter().any(|other| {
        other.series == Series::MappedFiles
            && other.process == resident.process
            && other.bytes_per_unit > 0.5 * resident.bytes_per_unit
    });
    if of_files { Outlook::MapsFiles(resident) } else { Outlook::Retains(resident) }
}

/// Resident memory is a witness only where the same process cannot tell what it has in use, and the tree's where no
/// process can. What is in use is told, too, where it is open but may well be level: then nothing speaks of growth.
fn trusted(verdict: &Verdict, all: &[Verdict]) -> bool {
    let may_be_level = |verdict: &Verdict| verdict.interval.is_some_and(|[low, _]| low <= 0.0);
    match verdict.series {
        Series::Rss | Series::Pss => !all.iter().any(|other| {
            other.series == Series::InUse
                && (other.state != State::Undecided || may_be_level(other))
                && (other.process == verdict.process || verdict.process.role == "tree")
        }),
        _ => true,
    }
}

/// The training process and its ranks come before what serves them.
fn lead(process: &ProcessRef) -> u8 {
    match process.role.as_str() {
        "main" | "" | "rank" => 2,
        "tree" | "worker" => 1,
        _ => 0,
    }
}

fn preference(series: Series) -> u8 {
    match series {
        Series::InUse => 0,
        Series::CudaAllocated => 1,
        Series::CudaRest => 2,
        Series::Shm => 3,
        Series::Pss => 4,
        Series::PrivatePages => 5,
        Series::Rss => 6,
        Series::CudaReserved => 7,
        Series::PinnedPool => 8,
        Series::MappedFiles => 9,
        Series::Fds => 10,
        Series::Threads => 11,
        Series::Children => 12,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use caulk_core::VerdictUnit;

    use super::*;

    pub(crate) fn verdict(role: &str, series: Series, state: State) -> Verdict {
        Verdict {
            process: ProcessRef { role: role.into(), index: 0, count: 1 },
            series,
            state,
            unit: VerdictUnit::Epoch,
            bytes_per_unit: 1e6,
            bytes_per_epoch: Some(1e6),
            interval: None,
            level: 0.95,
            boundaries: 8,
            warmup: 0,
            more_needed: None,
            last: 1e9,
            boundary_units: 1.0,
            unit_steps: None,
            unit_seconds: None,
            limit: None,
            oom_in_s: None,
            text: String::new(),
        }
    }

    fn check(verdicts: &[(&str, Series, State)], expected: fn(&Outlook<'_>) -> bool) {
        let verdicts: Vec<_> =
            verdicts.iter().map(|(role, series, state)| verdict(role, *series, *state)).collect();
        let decided = outlook(&verdicts);
        assert!(expected(&decided), "{decided:?}");
    }

    #[test]
    fn bytes_in_use_overrule_resident_memory() {
        check(
            &[("main", Series::Rss, State::Grows), ("main", Series::InUse, State::Flat)],
            |outlook| matches!(outlook, Outlook::Retains(verdict) if verdict.series == Series::Rss),
        );
    }

    #[test]
    fn pages_of_files_are_not_the_allocators() {
        check(
            &[
                ("main", Series::Rss, State::Grows),
                ("main", Series::InUse, State::Flat),
                ("main", Series::MappedFiles, State::Grows),
            ],
            |outlook| matches!(outlook, Outlook::MapsFiles(verdict) if verdict.series == Series::Rss),
        );
    }

    #[test]
    fn resident_memory_decides_where_nothing_better_is_known() {
        check(&[("main", Series::Rss, State::Grows)], |outlook| matches!(outlook, Outlook::Grows(_)));
        let open = [("main", Series::InUse, State::Undecided), ("main", Series::Rss, State::Grows)];
        check(&open, |outlook| matches!(outlook, Outlook::Grows(_)));
    }

    #[test]
    fn resident_memory_does_not_decide_what_bytes_in_use_leave_open_and_level() {
        let mut in_use = verdict("main", Series::InUse, State::Undecided);
        in_use.interval = Some([-2e5, 3e6]);
        let verdicts = [verdict("main", Series::Rss, State::Grows), in_use];
        let decided = outlook(&verdicts);
        assert!(matches!(decided, Outlook::Undecided(open) if open.series == Series::InUse), "{decided:?}");
    }

    #[test]
    fn a_worker_that_grows_is_growth() {
        let verdicts = [("main", Series::InUse, State::Flat), ("worker", Series::Pss, State::Grows)];
        check(
            &verdicts,
            |outlook| matches!(outlook, Outlook::Grows(verdict) if verdict.process.role == "worker"),
        );
    }

    #[test]
    fn a_short_lived_helper_leaves_nothing_open() {
        let verdicts = [("main", Series::InUse, State::Flat), ("other", Series::Rss, State::Undecided)];
        check(&verdicts, |outlook| matches!(outlook, Outlook::Steady(_)));
    }

    #[test]
    fn open_files_are_not_memory() {
        check(&[("main", Series::Fds, State::Grows)], |outlook| *outlook == Outlook::Unknown);
        let verdicts = [("main", Series::Fds, State::Grows), ("main", Series::InUse, State::Flat)];
        check(&verdicts, |outlook| matches!(outlook, Outlook::Steady(_)));
    }

    #[test]
    fn an_open_question_stays_open() {
        check(&[("main", Series::InUse, State::Undecided)], |outlook| {
            matches!(outlook, Outlook::Undecided(_))
        });
        check(&[], |outlook| *outlook == Outlook::Unknown);
    }

    #[test]
    fn the_limit_that_is_reached_first_leads() {
        let mut verdicts = ["main", "rank"].map(|role| verdict(role, Series::InUse, State::Grows)).to_vec();
        verdicts.push(verdict("main", Series::CudaAllocated, State::Grows));
        verdicts.push(verdict("main", Series::Fds, State::Grows));
        let leads = |verdicts: &[Verdict]| match outlook(verdicts) {
            Outlook::Grows(verdict) => verdict.series,
            other => panic!("{other:?}"),
        };
        assert_eq!(leads(&verdicts), Series::InUse);
        verdicts[0].oom_in_s = Some([9e3, 1e4]);
        verdicts[3].oom_in_s = Some([8e3, 8e3]);
        assert_eq!(leads(&verdicts), Series::Fds);
        verdicts[2].oom_in_s = Some([1e3, 1e4]);
        assert_eq!(leads(&verdicts), Series::CudaAllocated);
    }
}
