//! The report as text for a terminal: how it ended, whether memory grows, what to change, in this order.

use caulk_core::{Bytes, Finding, Series, Severity, State, Verdict};

use crate::headline::{self, Outlook};
use crate::page::{Page, Tone};
use crate::{Report, death, finding, words};

/// Findings shown in full, and pieces of advice shown in short; the JSON report has all.
const MOST: usize = 8;
/// Resident memory that grows so many times as fast as the bytes in use is told beside them.
const FASTER: f64 = 1.1;

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Colour the text with ANSI sequences.
    pub color: bool,
    /// Columns of a line; kept between 40 and 160.
    pub width: usize,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { color: false, width: 100 }
    }
}

/// The whole report.
pub fn text(report: &Report, options: &TextOptions) -> String {
    let mut page = Page::new(options.color, options.width);
    page.rule("caulk");
    lives(&mut page, report);
    answer(&mut page, report);
    others(&mut page, report);
    pages_so_far(&mut page, report);
    places(&mut page, report);
    findings(&mut page, report);
    notes(&mut page, report);
    footer(&mut page, report);
    page.finish()
}

/// What became of each life, where there were several.
fn lives(page: &mut Page, report: &Report) {
    if report.lives.is_empty() {
        return;
    }
    let restarts = match report.lives.len() - 1 {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        restarts => format!("{restarts} times"),
    };
    page.prose((Tone::Plain, ""), Tone::Plain, &format!("Started again {restarts}."));
    for (number, life) in (1..).zip(&report.lives) {
        page.prose((Tone::Quiet, &format!("  life {number}: ")), Tone::Plain, &life.text());
    }
}

fn answer(page: &mut Page, report: &Report) {
    let end = death::end(report);
    let died_of_memory = death::out_of_memory(report.info.death.as_ref());
    if let Some(end) = &end {
        page.prose((Tone::Plain, ""), end.tone, &end.sentence);
        if !end.detail.is_empty() {
            page.prose((Tone::Plain, "  "), Tone::Plain, &end.detail);
        }
    }
    let over = !report.running;
    let decided = headline::outlook(&report.verdicts);
    let head = headline::headline(decided, over, died_of_memory, &report.findings);
    page.prose((Tone::Plain, ""), head.tone, &head.sentence);
    for detail in head.details.iter().filter(|detail| !detail.is_empty()) {
        page.prose((Tone::Plain, "  "), Tone::Plain, detail);
    }
}

/// Other series that grow: workers, the GPU, open files.
fn others(page: &mut Page, report: &Report) {
    let decided = headline::outlook(&report.verdicts);
    let shown = match decided {
        Outlook::Unknown => None,
        Outlook::Grows(verdict)
        | Outlook::Retains(verdict)
        | Outlook::MapsFiles(verdict)
        | Outlook::GrowsWithin(verdict)
        | Outlook::Undecided(verdict)
        | Outlook::Steady(verdict) => Some(verdict),
    };
    let grows = |verdict: &&Verdict| verdict.state == State::Grows && Some(*verdict) != shown;
    // What the process says of bytes in use is not repeated with the pages that they lie on, unless these grow faster.
    let told = |verdict: &&Verdict| {
        let faster = |shown: &Verdict| {
            shown.process == verdict.process && verdict.bytes_per_unit > FASTER * shown.bytes_per_unit
        };
        matches!(verdict.series, Series::Rss | Series::Pss)
            && matches!(decided, Outlook::Grows(shown) if !faster(shown))
    };
    for verdict in report.verdicts.iter().filter(grows).filter(|verdict| !told(verdict)).take(MOST) {
        let per = words::Per::of(verdict.unit);
        let rate = words::rate(verdict.series, verdict.bytes_per_unit * per.factor);
        let subject = words::subject(&verdict.process, verdict.series);
        let why = match verdict.series {
            Series::Rss | Series::Pss if shown.is_some_and(|shown| shown.process == verdict.process) => {
                ", with the pages that the allocator keeps around what stays"
            }
            _ => "",
        };
        page.prose(
            (Tone::Plain, "  "),
            Tone::Plain,
            &format!("{subject} grows by {rate} per {}{why}.", per.name),
        );
        // A GPU has an end of its own, which may come first.
        let own_end =
            (verdict.series == Series::CudaAllocated).then(|| headline::forecast(verdict, !report.running));
        if let Some(forecast) = own_end.flatten() {
            page.prose((Tone::Plain, "  "), Tone::Plain, &forecast);
        }
    }
}

/// Pages that are taken faster than bytes in use grow, and of which it is open whether they are taken for good.
fn pages_so_far(page: &mut Page, report: &Report) {
    let Outlook::Grows(shown) = headline::outlook(&report.verdicts) else { return };
    let faster = |verdict: &&Verdict| {
        verdict.series == Series::Rss
            && verdict.state == State::Undecided
            && verdict.process == shown.process
            && verdict.interval.is_some_and(|[low, _]| low > FASTER * shown.bytes_per_unit)
    };
    if let Some(verdict) = report.verdicts.iter().find(faster).filter(|_| shown.series == Series::InUse) {
        let per = words::Per::of(verdict.unit);
        let rate = words::rate(verdict.series, verdict.bytes_per_unit * per.factor);
        let subject = words::subject(&verdict.process, verdict.series);
        let text = format!(
            "{subject} gains {rate} per {} so far, faster than what is in use grows ({}).",
            per.name, verdict.text
        );
        page.prose((Tone::Plain, "  "), Tone::Plain, &text);
    }
}

/// How many places there are to look at.
fn places(page: &mut Page, report: &Report) {
    let suspects = report.findings.iter().filter(|finding| finding.severity > Severity::Info).count();
    let advice = match (suspects, death::out_of_memory(report.info.death.as_ref())) {
        (0, true) => "No container or line is known that held the memory when it died.".to_owned(),
        (1, true) => "What held memory when it died:".to_owned(),
        (_, true) => "What held memory when it died, the most harmful first:".to_owned(),
        (2.., _) => format!("{suspects} places to change, the most harmful first:"),
        _ => return,
    };
    page.prose((Tone::Plain, ""), Tone::Plain, &advice);
}

fn findings(page: &mut Page, report: &Report) {
    let (advice, leaks): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|finding| finding.severity == Severity::Info);
    for leak in leaks.iter().take(MOST) {
        page.gap();
        finding::full(page, leak, &report.excerpts);
    }
    more(page, leaks.len(), "finding");
    for advice in advice.iter().take(MOST) {
        page.gap();
        finding::short(page, advice);
    }
    more(page, advice.len(), "piece of advice");
}

fn more(page: &mut Page, all: usize, what: &str) {
    if all > MOST {
        page.gap();
        page.line(&[(
            Tone::Quiet,
            &format!("... and {} more ({what}); see them with --format json", all - MOST),
        )]);
    }
}

fn notes(page: &mut Page, report: &Report) {
    let problems = report.problems.iter().map(|problem| ("problem: ", Tone::Warn, problem));
    let notes = report.notes.iter().map(|note| ("note: ", Tone::Strong, &note.text));
    let mut said: Vec<&str> = Vec::new();
    for (label, tone, text) in problems.chain(notes) {
        if said.contains(&text.as_str()) {
            continue;
        }
        if said.is_empty() {
            page.gap();
        }
        page.prose((tone, label), Tone::Plain, text);
        said.push(text);
    }
}

fn footer(page: &mut Page, report: &Report) {
    let summary = &report.summary;
    let epochs = summary.epochs.filter(|epochs| *epochs > 0).map(|epochs| words::count(epochs, "epoch"));
    let steps = summary.steps.filter(|steps| *steps > 0).map(|steps| words::count(steps, "step"));
    let passed: Vec<String> = epochs.into_iter().chain(steps).collect();
    let duration = words::seconds(summary.duration_s);
    let mut parts = vec![match passed.as_slice() {
        [] => duration,
        passed => format!("{} in {duration}", passed.join(", ")),
    }];
    let shared = if summary.processes > 1 { " (pages that processes share counted in each)" } else { "" };
    let peak = summary.peak_bytes.map(|peak| format!("peak {} resident{shared}", Bytes(peak)));
    let tree = (summary.processes > 0).then(|| processes(summary.processes));
    let last = if report.running { "now" } else { "at the end" };
    let in_use = summary.in_use_at_end_bytes.map(|bytes| format!("{} in use {last}", Bytes(bytes)));
    parts.extend(peak.into_iter().chain(in_use).chain(tree));
    if let Some(cost_s) = summary.cost_s.filter(|cost_s| *cost_s > 0.0) {
        let pause = summary.longest_pause_s.filter(|pause_s| *pause_s >= 0.001);
        let pause =
            pause.map_or(String::new(), |pause_s| format!(", at most {} at once", words::seconds(pause_s)));
        parts.push(format!("caulk took {} of CPU time in the program{pause}", words::seconds(cost_s)));
    }
    let line = parts.join("; ");
    page.gap();
    page.prose((Tone::Plain, ""), Tone::Quiet, &line);
    if !report.folder.is_empty() {
        page.prose((Tone::Plain, ""), Tone::Quiet, &format!("recording: {}", report.folder));
    }
}

/// How many there were in the whole run. Where there are many, some may have lived for less than the time between two
/// looks.
fn processes(number: u32) -> String {
    match number {
        1 => "1 process".into(),
        2..10 => format!("{number} processes in all"),
        _ => format!("at least {number} processes in all"),
    }
}
