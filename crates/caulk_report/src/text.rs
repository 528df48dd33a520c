//! The report as text for a terminal: how it ended, whether memory grows, what to change, in this order.

use std::collections::BTreeSet;

use caulk_core::wire::NoteCode;
use caulk_core::{Bytes, Note, Series, Severity, State, Verdict};

use crate::outlook::{Outlook, outlook};
use crate::page::{Page, Tone};
use crate::{Report, death, findings, headline, words};

/// Further series that grow.
const SERIES: usize = 4;
/// Lines of a report that is not written in full.
const LINES: usize = 60;
/// Resident memory that grows so many times as fast as the bytes in use is told beside them.
const FASTER: f64 = 1.1;

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Colour the text with ANSI sequences.
    pub color: bool,
    /// Columns of a line; kept between 40 and 160.
    pub width: usize,
    /// Write every finding with its flow and its evidence, and every note.
    pub full: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { color: false, width: 100, full: false }
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
    findings::write(&mut page, report, options.full);
    let mut end = page.part();
    footer(&mut end, report, options.full);
    let room = if options.full { usize::MAX } else { LINES.saturating_sub(page.lines() + 1 + end.lines()) };
    notes(&mut page, report, room);
    page.gap();
    page.add(&end, usize::MAX);
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
    let died_of_memory = death::out_of_memory(report);
    if let Some(end) = &end {
        page.prose((Tone::Plain, ""), end.tone, &end.sentence);
        if !end.detail.is_empty() {
            page.prose((Tone::Plain, "  "), Tone::Plain, &end.detail);
        }
    }
    let over = !report.running;
    let decided = outlook(&report.verdicts);
    let head = headline::headline(decided, over, died_of_memory, &report.findings);
    page.prose((Tone::Plain, ""), head.tone, &head.sentence);
    for detail in head.details.iter().filter(|detail| !detail.is_empty()) {
        page.prose((Tone::Plain, "  "), Tone::Plain, detail);
    }
}

/// Other series that grow: workers, the GPU, open files.
fn others(page: &mut Page, report: &Report) {
    let decided = outlook(&report.verdicts);
    let shown = decided.verdict();
    if shown.is_some_and(|shown| shown.series == Series::Fds) {
        memory(page, report);
    }
    let grows = |verdict: &&Verdict| verdict.state == State::Grows && Some(*verdict) != shown;
    // What the process says of bytes in use is not repeated with the pages that they lie on, unless these grow faster.
    let told = |verdict: &&Verdict| {
        let faster = |shown: &Verdict| {
            shown.process == verdict.process && verdict.bytes_per_unit > FASTER * shown.bytes_per_unit
        };
        matches!(verdict.series, Series::Rss | Series::Pss)
            && matches!(decided, Outlook::Grows(shown) if !faster(shown))
    };
    for verdict in report.verdicts.iter().filter(grows).filter(|verdict| !told(verdict)).take(SERIES) {
        let per = words::Per::of(verdict.unit);
        let rate = words::rate(verdict.series, verdict.bytes_per_unit * per.factor);
        let subject = words::subject(&verdict.process, verdict.series);
        let why = match verdict.series {
            Series::Rss if shown.is_some_and(|shown| shown.series == Series::PrivatePages) => {
                ", with pages of files that the kernel takes back"
            }
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
        // The GPU and open files have other limits.
        let limit = |verdict: &Verdict| verdict.limit.map(|limit| limit.kind);
        let own_end = shown.is_none_or(|shown| limit(shown) != limit(verdict));
        if let Some(forecast) = headline::forecast(verdict, !report.running).filter(|_| own_end) {
            page.prose((Tone::Plain, "  "), Tone::Plain, &forecast);
        }
    }
}

/// What memory does while something else ends the program first.
fn memory(page: &mut Page, report: &Report) {
    let of_memory = |verdict: &&Verdict| verdict.series != Series::Fds;
    let verdicts: Vec<Verdict> = report.verdicts.iter().filter(of_memory).cloned().collect();
    let decided = outlook(&verdicts);
    // Memory that grows is listed with the other series.
    if !matches!(decided, Outlook::Grows(_) | Outlook::Unknown) {
        let head = headline::headline(decided, !report.running, false, &[]);
        page.prose((Tone::Plain, "  "), Tone::Plain, &head.sentence);
    }
}

/// Pages that are taken faster than bytes in use grow, and of which it is open whether they are taken for good.
fn pages_so_far(page: &mut Page, report: &Report) {
    let Outlook::Grows(shown) = outlook(&report.verdicts) else { return };
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
    let suspects = report.findings.iter().filter(|finding| finding.severity > Severity::Info);
    let suspects: BTreeSet<_> = suspects
        .map(|finding| match finding.sites.first() {
            Some(site) => (site.file.as_str(), site.line),
            None => (finding.holder.as_str(), 0),
        })
        .collect();
    let suspects = suspects.len();
    let advice = match (suspects, death::out_of_memory(report)) {
        (0, true) => "No container or line is known that held the memory when it died.".to_owned(),
        (1, true) => "What held memory when it died:".to_owned(),
        (_, true) => "What held memory when it died, the most harmful first:".to_owned(),
        (2.., _) => format!("{suspects} places to change, the most harmful first:"),
        _ => return,
    };
    page.prose((Tone::Plain, ""), Tone::Plain, &advice);
}

/// Writes the problems and the notes for which there is room, in lines.
fn notes(page: &mut Page, report: &Report, room: usize) {
    let problems = report.problems.iter().map(|problem| ("problem: ", Tone::Warn, problem));
    // The first line says it.
    let known = |note: &&Note| note.code == NoteCode::MemoryError && death::out_of_memory(report);
    let notes = report.notes.iter().filter(|note| !known(note));
    let notes = notes.map(|note| ("note: ", Tone::Strong, &note.text));
    let mut shown: Vec<&str> = Vec::new();
    let mut left_out = 0;
    let mut part = page.part();
    for (label, tone, text) in problems.chain(notes) {
        if shown.contains(&text.as_str()) {
            continue;
        }
        shown.push(text);
        let mut note = page.part();
        note.prose((tone, label), Tone::Plain, text);
        // One line is left for the gap, and one for how many are left out.
        if left_out > 0 || part.lines() + note.lines() + 2 > room {
            left_out += 1;
        } else {
            part.add(&note, usize::MAX);
        }
    }
    if left_out > 0 {
        let noun = if part.lines() == 0 { "note" } else { "more note" };
        part.line(&[(Tone::Quiet, &words::count(left_out, noun))]);
    }
    if part.lines() > 0 {
        page.gap();
        page.add(&part, usize::MAX);
    }
}

fn footer(page: &mut Page, report: &Report, full: bool) {
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
    let above = |peak: u64| report.info.limits.budget_bytes.is_some_and(|budget| peak > budget);
    let files =
        |peak| if above(peak) { ", with pages of files, which the budget does not count" } else { "" };
    let peak = summary.peak_bytes.map(|peak| format!("peak {} resident{shared}{}", Bytes(peak), files(peak)));
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
    page.prose((Tone::Plain, ""), Tone::Quiet, &line);
    if !report.folder.is_empty() {
        page.prose((Tone::Plain, ""), Tone::Quiet, &format!("recording: {}", report.folder));
        let more = !report.findings.is_empty() || !report.notes.is_empty();
        if more && !full {
            let command = format!("flow and evidence of all findings: caulk report {} --full", report.folder);
            page.prose((Tone::Plain, ""), Tone::Quiet, &command);
        }
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
