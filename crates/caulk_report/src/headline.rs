//! The answer in one sentence: which of the verdicts decides, and how it reads.
//!
//! Bytes in use decide wherever a process can tell them; resident memory speaks only for processes that cannot.

use std::cmp::Reverse;

use caulk_core::{
    Confidence, Finding, Group, LeakClass, ProcessRef, Scope, Series, Severity, State, Verdict,
};

use crate::page::Tone;
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

impl Outlook<'_> {
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
    let beside = [Series::MappedFiles, Series::Fds, Series::Threads, Series::Children];
    let counted = |verdict: &&Verdict| !beside.contains(&verdict.series);
    let witness = |verdict: &&Verdict| counted(verdict) && trusted(verdict, verdicts);
    let first = |state: State| {
        let of_state = verdicts.iter().filter(witness).filter(|verdict| verdict.state == state);
        of_state.min_by(|a, b| {
            let key = |verdict: &Verdict| (Reverse(lead(&verdict.process)), preference(verdict.series));
            key(a).cmp(&key(b)).then(b.bytes_per_unit.total_cmp(&a.bytes_per_unit))
        })
    };
    if let Some(verdict) = first(State::Grows) {
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
        Series::Shm => 2,
        Series::Pss => 3,
        Series::Rss => 4,
        Series::MappedFiles => 5,
        Series::Fds => 6,
        Series::Threads => 7,
        Series::Children => 8,
    }
}

/// The sentence, and the lines of figures below it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Headline {
    pub(crate) tone: Tone,
    pub(crate) sentence: String,
    pub(crate) details: Vec<String>,
}

/// Puts an outlook into words. `over`: the run has ended. `findings`: the most harmful first.
pub(crate) fn headline(
    outlook: Outlook<'_>,
    over: bool,
    out_of_memory: bool,
    findings: &[Finding],
) -> Headline {
    let suspects: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity > Severity::Info).collect();
    // Files, threads and processes that pile up do not explain memory, but for threads that were seen to hold some;
    // segments of shared memory do, and a profiler.
    let bytes = |finding: &Finding| {
        finding.growth.as_ref().is_some_and(|growth| match growth.series {
            Series::Fds | Series::Children => false,
            Series::Threads => growth.bytes_per_unit > 0.0,
            _ => true,
        })
    };
    let explains = |finding: &&Finding| finding.class.group() != Group::Resource || bytes(finding);
    let of_memory: Vec<&Finding> = suspects.iter().copied().filter(explains).collect();
    let (tone, sentence, verdict) = match outlook {
        Outlook::Grows(verdict) => {
            let per = Per::of(verdict.unit);
            let rate = words::rate(verdict.series, verdict.bytes_per_unit * per.factor);
            let subject = words::subject(&verdict.process, verdict.series);
            (
                Tone::Bad,
                format!(
                    "{subject} grows by {rate} per {}{}.",
                    per.name,
                    blame(verdict, &of_memory, findings)
                ),
                verdict,
            )
        }
        Outlook::Retains(verdict) => {
            let (pages, no_leak) = whose_pages(&verdict.process, findings);
            let why = match more_and_more(&suspects) {
                None => format!("{no_leak}{pages}"),
                Some(what) => format!("{pages}; {what}"),
            };
            (Tone::Warn, kept(verdict, &why), verdict)
        }
        Outlook::MapsFiles(verdict) => {
            let why =
                "no leak, these are pages of mapped files, which the kernel takes back when memory is short";
            (Tone::Warn, kept(verdict, why), verdict)
        }
        Outlook::GrowsWithin(verdict) => {
            let subject = words::subject(&verdict.process, verdict.series);
            (Tone::Warn, format!("{subject} grows within each epoch and is freed at its end."), verdict)
        }
        Outlook::Undecided(verdict) => (Tone::Warn, undecided(verdict, &of_memory), verdict),
        Outlook::Steady(verdict) => {
            let subject = words::subject(&verdict.process, verdict.series);
            let why = match verdict.state {
                State::Plateaus => ": it rose while warming up, then stopped",
                State::Sawtooth => ": it rises and comes back to where it was",
                _ => "",
            };
            let tone = if suspects.is_empty() { Tone::Good } else { Tone::Warn };
            let but = more_and_more(&suspects).map_or_else(String::new, |what| format!(", but {what}"));
            (tone, format!("{subject} does not grow{why}{but}."), verdict)
        }
        Outlook::Unknown => {
            let sentence = "Nothing can be said about memory: too little was measured.".into();
            return Headline { tone: Tone::Warn, sentence, details: Vec::new() };
        }
    };
    let mut details = vec![figures(verdict)];
    if matches!(outlook, Outlook::Grows(_)) && !out_of_memory {
        details.extend(forecast(verdict, over));
    }
    if !verdict.text.is_empty() && !matches!(outlook, Outlook::Steady(_)) {
        details.push(words::sentence_case(&verdict.text));
    }
    Headline { tone, sentence, details }
}

/// What becomes more beside the memory of a program that holds its own.
fn more_and_more(suspects: &[&Finding]) -> Option<String> {
    let growth = suspects.iter().find_map(|finding| finding.growth.as_ref())?;
    let what = match growth.series {
        Series::Children => "its child processes become more",
        Series::Fds => "its open files become more",
        Series::Threads => "its threads become more",
        _ => return None,
    };
    let per = Per::of(growth.unit);
    let take = (growth.series == Series::Children && growth.bytes_per_unit > 0.0).then(|| {
        format!(", and take {} more per {}", words::bytes(growth.bytes_per_unit * per.factor), per.name)
    });
    Some(format!("{what}{}", take.unwrap_or_default()))
}

/// Whose the pages are: the allocator's where it was seen to have as much more that is free. What that means comes second,
/// where nothing else becomes more.
fn whose_pages(process: &ProcessRef, findings: &[Finding]) -> (&'static str, &'static str) {
    let keeps =
        |finding: &Finding| finding.class == LeakClass::AllocatorFragmentation && of(process, finding);
    if findings.iter().any(keeps) {
        ("the allocator keeps pages", "no leak in the program, ")
    } else {
        let why = "memory that was set aside before is touched now, or an allocator of a library's own (as in polars, \
                   pyarrow) holds more, which does not say what it has in use";
        (why, "")
    }
}

/// The tree is all processes.
fn of(process: &ProcessRef, finding: &Finding) -> bool {
    process.role == "tree" || (&process.role, process.index) == (&finding.process.role, finding.process.index)
}

/// The sentence about resident memory that grows though memory in use does not.
fn kept(verdict: &Verdict, why: &str) -> String {
    let per = Per::of(verdict.unit);
    let rate = words::rate(verdict.series, verdict.bytes_per_unit * per.factor);
    format!("Memory in use does not grow, but resident memory does, by {rate} per {}: {why}.", per.name)
}

/// A part of the growth that is proved, though it is too small to be harmful.
fn proved_part(verdict: &Verdict, findings: &[Finding]) -> Option<String> {
    let mut proved = findings.iter().filter(|finding| {
        finding.confidence == Confidence::Proved
            && finding.scope == Scope::Run
            && of(&verdict.process, finding)
    });
    proved.find_map(|finding| {
        let growth = finding.growth.as_ref().filter(|growth| growth.bytes_per_unit > 0.0)?;
        let site = finding.sites.first()?;
        if (growth.series, growth.unit) != (verdict.series, verdict.unit) {
            return None;
        }
        let per = Per::of(growth.unit);
        let part = words::bytes(growth.bytes_per_unit * per.factor);
        Some(format!(
            "; {}:{} surely adds {part} of that, and what adds the rest was not found",
            site.file, site.line
        ))
    })
}

/// The line to look at, in the first sentence already. `suspects`: those of `findings` that explain memory.
fn blame(verdict: &Verdict, suspects: &[&Finding], findings: &[Finding]) -> String {
    let Some(first) = suspects.first() else {
        if let Some(part) = proved_part(verdict, findings) {
            return part;
        }
        // The whole tree is judged where nobody looked inside.
        let outside = verdict.process.role == "tree";
        let why = if outside {
            "; from outside no line can be named"
        } else {
            ", and nothing was found that explains it"
        };
        return why.into();
    };
    let place = match first.sites.first() {
        Some(site) => format!("{}:{}", site.file, site.line),
        None if !first.holder.is_empty() => format!("`{}`", first.holder),
        None => return String::new(),
    };
    let kind = if first.sites.is_empty() { "what grows" } else { "the line" };
    let growth = |finding: &Finding| finding.growth.as_ref().map_or(0.0, |growth| growth.bytes_per_unit);
    // What is worse comes first, whichever is more.
    let most = suspects.iter().all(|other| growth(other) <= growth(first));
    match (first.confidence, suspects.len()) {
        (Confidence::Proved, 1) => format!("; {kind} is {place}"),
        (Confidence::Proved, _) if most => format!("; {kind} that adds most is {place}"),
        (Confidence::Proved, _) => format!("; {kind} that surely adds to it is {place}"),
        (Confidence::Suspected, _) => format!("; perhaps {kind} is {place}"),
        _ => format!("; most likely {kind} is {place}"),
    }
}

fn undecided(verdict: &Verdict, suspects: &[&Finding]) -> String {
    let per = Per::of(verdict.unit);
    let start = match suspects {
        [] => "Whether memory grows is not decided yet",
        _ => "Memory seems to grow, but it is too early to be sure",
    };
    match verdict.more_needed {
        Some(more) if more > 0 => {
            format!("{start}: {} needed.", per.more(f64::from(more) * verdict.boundary_units))
        }
        _ => format!("{start}."),
    }
}

/// What a verdict rests on, in figures.
pub(crate) fn figures(verdict: &Verdict) -> String {
    let per = Per::of(verdict.unit);
    let series = verdict.series;
    let units = |boundaries: u32| f64::from(boundaries) * verdict.boundary_units;
    let mut parts = Vec::new();
    if verdict.boundaries > 0 {
        let level = words::amount(series, verdict.last);
        let warmup = match verdict.warmup {
            0 => String::new(),
            warmup => format!(" ({} of warm-up not counted)", per.part(units(warmup))),
        };
        let all = per.units(units(verdict.boundaries + verdict.warmup));
        parts.push(format!("{level} {} after {all}{warmup}", words::measure(series)));
    }
    let interval = verdict.interval.map(|interval| interval.map(|bound| bound * per.factor));
    // Before anything is known, an interval as wide as the memory itself says nothing.
    let says = |[low, high]: &[f64; 2]| {
        let known = verdict.state != State::Undecided || high - low <= verdict.last;
        low.is_finite() && high.is_finite() && known
    };
    if let Some(interval) = interval.filter(says) {
        let rate = match verdict.state {
            State::Grows | State::Undecided => words::range(series, interval),
            _ => format!("at most {}", words::rate(series, interval[1].max(0.0))),
        };
        parts.push(format!("{rate} per {} with {:.0} % confidence", per.name, verdict.level * 100.0));
    }
    parts.join("; ")
}

/// When which limit is reached.
pub(crate) fn forecast(verdict: &Verdict, over: bool) -> Option<String> {
    let (limit, [early, late]) = (verdict.limit?, verdict.oom_in_s?);
    let limit = words::limit(limit);
    if early <= 0.0 && late <= 0.0 {
        return Some(format!("It has reached {limit}."));
    }
    let time = words::span([early, late]);
    let per = Per::of(verdict.unit);
    let epochs =
        verdict.unit_seconds.filter(|unit_s| *unit_s > 0.0 && late.is_finite() && per.name == "epoch");
    let epochs = epochs.map(|unit_s| {
        let [early, late] = [early, late].map(|until_s| words::rough(until_s / unit_s));
        if early == late {
            format!(" (about {late} more epochs)")
        } else {
            format!(" ({early} to {late} more epochs)")
        }
    });
    let epochs = epochs.unwrap_or_default();
    Some(if over {
        format!("Had it gone on, it would have reached {limit} after {time} more{epochs}.")
    } else {
        format!("Going on like this it reaches {limit} in {time}{epochs}.")
    })
}

#[cfg(test)]
mod tests {
    use caulk_core::{Growth, Site, SiteRole, VerdictUnit};

    use super::*;

    fn verdict(role: &str, series: Series, state: State) -> Verdict {
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
    fn what_is_seen_from_outside_alone_was_not_searched_in_vain() {
        let of = |role| blame(&verdict(role, Series::Rss, State::Grows), &[], &[]);
        assert_eq!(of("tree"), "; from outside no line can be named");
        assert_eq!(of("main"), ", and nothing was found that explains it");
    }

    #[test]
    fn what_is_proved_is_named_however_small_it_is() {
        let growth = |per_unit| Growth::of_bytes(VerdictUnit::Epoch, Series::InUse, per_unit, Some(per_unit));
        let site = Site {
            role: SiteRole::Grows,
            file: "a.py".into(),
            line: 9,
            end_line: 9,
            column: 1,
            function: String::new(),
            text: String::new(),
            cell: None,
        };
        let finding = Finding {
            severity: Severity::Info,
            confidence: Confidence::Proved,
            process: ProcessRef { role: "main".into(), index: 0, count: 1 },
            sites: vec![site],
            growth: Some(growth(20.0 * 1024.0)),
            ..Finding::of(LeakClass::LossKeptWithGraph)
        };
        let told = |finding: &Finding| {
            blame(&verdict("main", Series::InUse, State::Grows), &[], std::slice::from_ref(finding))
        };
        assert_eq!(
            told(&finding),
            "; a.py:9 surely adds 20.0 KB of that, and what adds the rest was not found"
        );
        let suspected = Finding { confidence: Confidence::Suspected, ..finding.clone() };
        assert_eq!(told(&suspected), ", and nothing was found that explains it");
        let elsewhere = Finding { process: ProcessRef::default(), ..finding };
        assert_eq!(told(&elsewhere), ", and nothing was found that explains it");
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
}
