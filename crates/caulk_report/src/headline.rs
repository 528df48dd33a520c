//! The answer in one sentence, and the figures that it rests on.

use caulk_core::{
    Cause, Confidence, Finding, Group, Growth, LeakClass, ProcessRef, Series, Severity, State, Verdict,
};

use crate::explained::{Explained, of};
use crate::outlook::Outlook;
use crate::page::Tone;
use crate::words::{self, Per, WIDE};

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
    let of_memory: Vec<&Finding> =
        suspects.iter().copied().filter(|finding| explains_memory(finding)).collect();
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
                    blame(verdict, &suspects_of(verdict, &suspects), findings)
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
            let pages = "pages of mapped files, which the kernel takes back when memory is short";
            let why = match more_and_more(&suspects) {
                None => format!("no leak, these are {pages}"),
                Some(what) => format!("these are {pages}; {what}"),
            };
            (Tone::Warn, kept(verdict, &why), verdict)
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
    if verdict.series == Series::PrivatePages {
        details.push(COPIED.to_owned());
    }
    if matches!(outlook, Outlook::Grows(_)) {
        details.extend(forecast(verdict, over).filter(|_| !out_of_memory));
        details.extend(Explained::of(verdict, findings).detail(verdict));
    }
    if !verdict.text.is_empty() && !matches!(outlook, Outlook::Steady(_)) {
        details.push(words::sentence_case(&verdict.text));
    }
    Headline { tone, sentence, details }
}

/// Why private pages grow beside mapped files.
const COPIED: &str = "A page of a file that is mapped for copy-on-write (`mode=\"c\"`, `mmap.ACCESS_COPY`) is the process's own once it is written \
                      to, and stays until the mapping is closed. Copy the part that is changed (`window = data[a:b].copy()`), and map \
                      the file to be read (`mode=\"r\"`).";

/// Files, threads and processes that pile up do not explain memory, but for threads that were seen to hold some; segments
/// of shared memory do, and a profiler.
fn explains_memory(finding: &Finding) -> bool {
    let bytes = |growth: &Growth| match growth.series {
        Series::Fds | Series::Children => false,
        Series::Threads => growth.bytes_per_unit > 0.0,
        _ => true,
    };
    finding.class.group() != Group::Resource || finding.growth.as_ref().is_some_and(bytes)
}

/// The findings that may explain what grows: those of the GPU come first if its memory leads.
fn suspects_of<'a>(verdict: &Verdict, suspects: &[&'a Finding]) -> Vec<&'a Finding> {
    let of_series =
        |finding: &&Finding| finding.growth.as_ref().is_some_and(|growth| growth.series == verdict.series);
    if verdict.series == Series::Fds {
        return suspects.iter().copied().filter(of_series).collect();
    }
    let mut suspects: Vec<&Finding> =
        suspects.iter().copied().filter(|finding| explains_memory(finding)).collect();
    if matches!(verdict.series, Series::CudaAllocated | Series::CudaRest) {
        suspects.sort_by_key(|finding| !of_series(finding));
    }
    suspects
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
    let of_gpus =
        |finding: &Finding| matches!(finding.cause, Cause::GpuPieces { .. } | Cause::PinnedPool { .. });
    let keeps = |finding: &Finding| {
        finding.class == LeakClass::AllocatorFragmentation && !of_gpus(finding) && of(process, finding)
    };
    if findings.iter().any(keeps) {
        ("the allocator keeps pages", "no leak in the program, ")
    } else {
        let why = "memory that was set aside before is touched now, or an allocator of a library's own (as in polars, \
                   pyarrow) holds more, which does not say what it has in use";
        (why, "")
    }
}

/// The sentence about resident memory that grows though memory in use does not.
fn kept(verdict: &Verdict, why: &str) -> String {
    let per = Per::of(verdict.unit);
    let rate = words::rate(verdict.series, verdict.bytes_per_unit * per.factor);
    format!("Memory in use does not grow, but resident memory does, by {rate} per {}: {why}.", per.name)
}

/// The line to look at, in the first sentence already. `suspects`: those of `findings` that explain memory.
fn blame(verdict: &Verdict, suspects: &[&Finding], findings: &[Finding]) -> String {
    let Some(first) = suspects.first() else {
        if let Some(part) = Explained::of(verdict, findings).part(verdict) {
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
    let per = Per::of(verdict.unit);
    let epochs =
        verdict.unit_seconds.filter(|unit_s| *unit_s > 0.0 && late.is_finite() && per.name == "epoch");
    let epochs = epochs.map(|unit_s| {
        let [early, late] = [early, late].map(|until_s| words::rough(until_s / unit_s));
        if early == late {
            format!(" (about {late} more epochs)")
        } else if late > WIDE * early.max(1) {
            format!(" (at least {early} more epochs)")
        } else {
            format!(" ({early} to {late} more epochs)")
        }
    });
    let epochs = epochs.unwrap_or_default();
    Some(if over {
        format!("Had it gone on, it would have reached {limit} after {}{epochs}.", words::more([early, late]))
    } else {
        format!("Going on like this it reaches {limit} in {}{epochs}.", words::span([early, late]))
    })
}

#[cfg(test)]
mod tests {
    use caulk_core::{Growth, Settled, Site, SiteRole, VerdictUnit};

    use super::*;
    use crate::outlook::tests::verdict;

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
        let finding = Settled {
            severity: Severity::Info,
            confidence: Confidence::Proved,
            process: ProcessRef { role: "main".into(), index: 0, count: 1 },
            sites: vec![site],
            growth: Some(growth(20.0 * 1024.0)),
            ..Settled::of(LeakClass::LossKeptWithGraph)
        };
        let told = |finding: &Settled| {
            let findings = [Finding::new(finding.clone())];
            blame(&verdict("main", Series::InUse, State::Grows), &[], &findings)
        };
        assert_eq!(told(&finding), "; a.py:9 adds 20.0 KB of that");
        let suspected = Settled { confidence: Confidence::Suspected, ..finding.clone() };
        assert_eq!(told(&suspected), ", and nothing was found that explains it");
        let elsewhere = Settled { process: ProcessRef::default(), ..finding };
        assert_eq!(told(&elsewhere), ", and nothing was found that explains it");
    }
}
