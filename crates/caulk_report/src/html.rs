//! The report as a page for a browser: the same words as in the text, and what [`caulk_html`] draws from the recording.

use caulk_core::{
    Applicability, Bytes, Comparison, Finding, LineUse, Pinned, Recording, Series, Severity, Site, SiteRole,
    StackUse, State, Verdict, VerdictUnit,
};
use caulk_html::{
    Excerpt, FindingCard, Forecast, Hunk, Level, LineRow, Mood, PageAnswer, PageInput, Row, SourceLine,
    VerdictRow,
};

use crate::chain::chain;
use crate::evidence::evidence_text;
use crate::message::message;
use crate::outlook::{Outlook, outlook};
use crate::page::Tone;
use crate::words::{self, Per, sentence_case};
use crate::{Excerpts, Report, advice, change, death, finding, headline};

/// What a page shows beside the report.
#[derive(Debug, Clone, Copy)]
pub struct Details<'a> {
    /// What the report was made from.
    pub recording: &'a Recording,
    /// The heap by line.
    pub lines: &'a [LineUse],
    /// The heap by stack.
    pub stacks: &'a [StackUse],
    /// What changed between the first and the last census.
    pub changes: &'a [Comparison],
    /// Source of the lines of the heap.
    pub excerpts: &'a Excerpts,
    /// The page contains source.
    pub with_source: bool,
}

/// The page: one file that needs nothing else, of at most [`caulk_html::MOST_BYTES`].
pub fn html(report: &Report, details: &Details<'_>) -> String {
    let decided = outlook(&report.verdicts);
    let verdict = decided.verdict();
    let unit = details.stacks.first().map(|stack| stack.unit);
    let unit = unit.or_else(|| details.lines.first().map(|line| line.unit)).unwrap_or(VerdictUnit::Epoch);
    let per = Per::of(unit);
    caulk_html::html(&PageInput {
        title: report.info.id.clone(),
        command: report.info.target.command.join(" "),
        banners: banners(report),
        answer: answer(report, decided),
        figures: figures(report, verdict),
        about: about(report),
        recording: details.recording,
        gpus: &report.gpus,
        level: verdict.and_then(level),
        forecast: verdict.and_then(|verdict| forecast(verdict, report)),
        verdicts: report.verdicts.iter().map(|verdict| verdict_row(verdict, report)).collect(),
        findings: cards(report, details.with_source),
        lines: details.lines.iter().map(|line| line_row(line, details)).collect(),
        per: (per.name, per.factor),
        changes: details.changes,
        stacks: details.stacks,
        notes: report.notes.iter().map(|note| note.text.clone()).collect(),
        lives: report.lives.iter().map(crate::Life::text).collect(),
    })
}

const fn mood(tone: Tone) -> Mood {
    match tone {
        Tone::Bad => Mood::Bad,
        Tone::Warn => Mood::Warn,
        Tone::Good => Mood::Good,
        _ => Mood::Plain,
    }
}

/// What to know before reading.
fn banners(report: &Report) -> Vec<String> {
    let mut banners = Vec::new();
    if report.running {
        banners.push("The run continues: this is what was recorded so far.".to_owned());
    } else if !report.info.complete {
        banners.push("The recording is truncated: this page shows what there is.".to_owned());
    }
    banners.extend(report.problems.iter().map(|problem| sentence_case(problem)));
    banners
}

fn answer(report: &Report, decided: Outlook<'_>) -> PageAnswer {
    let head = headline::headline(decided, !report.running, death::out_of_memory(report), &report.findings);
    let end = death::end(report).map(|end| (mood(end.tone), format!("{} {}", end.sentence, end.detail)));
    PageAnswer {
        mood: mood(head.tone),
        ended: end.map(|(mood, text)| (mood, text.trim().to_owned())),
        brief: decided.brief(),
        sentence: head.sentence,
        details: head.details.into_iter().filter(|detail| !detail.is_empty()).collect(),
    }
}

fn figures(report: &Report, verdict: Option<&Verdict>) -> Vec<Row> {
    let summary = &report.summary;
    let mut rows = Vec::new();
    if let Some(verdict) = verdict {
        let label = format!("{}, last", words::measure(verdict.series));
        rows.push(Row::new(
            sentence_case(&label).trim_end_matches('.'),
            words::amount(verdict.series, verdict.last),
        ));
        if let Some(span) = verdict.oom_in_s.filter(|[early, _]| *early > 0.0) {
            rows.push(Row::new("Until the limit", words::span(span)));
        }
    }
    let size = |bytes: u64| Bytes(bytes).to_string();
    rows.extend(summary.peak_bytes.map(|bytes| Row::new("Peak, resident", size(bytes))));
    rows.extend(summary.epochs.map(|epochs| Row::new("Epochs", epochs.to_string())));
    rows.extend(summary.steps.map(|steps| Row::new("Steps", steps.to_string())));
    rows.push(Row::new("Run time", words::seconds(summary.duration_s)));
    rows.push(Row::new("Processes", summary.processes.to_string()));
    let leaks = report.findings.iter().filter(|finding| finding.severity > Severity::Info).count();
    rows.push(Row::new("Places to change", leaks.to_string()));
    rows
}

pub(crate) fn about(report: &Report) -> Vec<Row> {
    let info = &report.info;
    let texts = [
        ("Started", info.started.clone()),
        ("Ended", words::ending(info, report.running)),
        ("Host", info.target.host.clone()),
        ("Directory", info.target.directory.clone()),
        ("Recording", report.folder.clone()),
        ("Recorded by", format!("caulk {}", info.caulk)),
        ("Time caulk took in the program", report.summary.cost_s.map(words::seconds).unwrap_or_default()),
    ];
    texts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(label, text)| Row::new(label, text))
        .collect()
}

/// The line through the readings of the deciding verdict, if the length of its unit is known.
fn level(verdict: &Verdict) -> Option<Level> {
    let unit_s = match verdict.unit {
        VerdictUnit::Seconds => 1.0,
        _ => verdict.unit_seconds.filter(|seconds| *seconds > 0.0)?,
    };
    let is_known = verdict.state != State::Undecided && verdict.boundaries > 1;
    is_known.then(|| Level {
        process: verdict.process.clone(),
        series: verdict.series,
        last: verdict.last,
        slope: verdict.bytes_per_unit / unit_s,
        interval: verdict
            .interval
            .filter(|interval| interval.iter().all(|end| end.is_finite()))
            .map(|interval| interval.map(|end| end / unit_s)),
        text: match interval(verdict) {
            text if text.is_empty() => rate(verdict),
            text => format!("{} ({text})", rate(verdict)),
        },
    })
}

fn rate(verdict: &Verdict) -> String {
    let per = Per::of(verdict.unit);
    format!("{} per {}", words::rate(verdict.series, verdict.bytes_per_unit * per.factor), per.name)
}

/// The interval of a rate; empty if nothing is known of it.
fn interval(verdict: &Verdict) -> String {
    let per = Per::of(verdict.unit);
    let known = verdict.interval.filter(|interval| interval.iter().all(|end| end.is_finite()));
    known.map(|ends| words::range(verdict.series, ends.map(|end| end * per.factor))).unwrap_or_default()
}

fn forecast(verdict: &Verdict, report: &Report) -> Option<Forecast> {
    (verdict.state == State::Grows).then_some(())?;
    Some(Forecast {
        limit: verdict.limit?,
        name: sentence_case(&words::limit(verdict.limit?)).trim_end_matches('.').to_owned(),
        until_s: verdict.oom_in_s?,
        text: headline::forecast(verdict, !report.running)?,
    })
}

fn verdict_row(verdict: &Verdict, report: &Report) -> VerdictRow {
    VerdictRow {
        process: owner(&verdict.process),
        series: series(verdict.series).into(),
        state: verdict.state.as_str().into(),
        rate: rate(verdict),
        interval: interval(verdict),
        last: words::amount(verdict.series, verdict.last),
        forecast: forecast(verdict, report).map(|forecast| forecast.text).unwrap_or_default(),
    }
}

/// Name of a series, as a heading.
const fn series(series: Series) -> &'static str {
    match series {
        Series::InUse => "memory in use",
        Series::Rss => "resident memory",
        Series::Pss => "private memory",
        Series::CudaAllocated => "GPU memory",
        Series::CudaReserved => "GPU memory reserved by torch",
        Series::CudaRest => "GPU memory outside torch",
        Series::PinnedPool => "pinned host memory",
        Series::Shm => "shared memory",
        Series::MappedFiles => "mapped files",
        Series::PrivatePages => "private pages",
        Series::Fds => "open files",
        Series::Threads => "threads",
        Series::Children => "child processes",
    }
}

fn owner(process: &caulk_core::ProcessRef) -> String {
    match (process.role.as_str(), words::owner(process)) {
        (_, Some(owner)) => owner,
        ("tree", None) => "all processes together".into(),
        (_, None) => "main process".into(),
    }
}

/// Findings as cards: leaks before advice, as in the text.
pub(crate) fn cards(report: &Report, with_source: bool) -> Vec<FindingCard> {
    let (advice, leaks): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|finding| finding.severity == Severity::Info);
    leaks.into_iter().chain(advice).map(|finding| card(finding, &report.excerpts, with_source)).collect()
}

fn card(finding: &Finding, excerpts: &Excerpts, with_source: bool) -> FindingCard {
    let mut rows = Vec::new();
    rows.extend(
        finding
            .growth
            .as_ref()
            .map(|growth| Row::new("grows", finding::rate(growth, finding::noun(finding)))),
    );
    rows.extend(words::owner(&finding.process).map(|owner| Row::new("process", owner)));
    rows.extend(finding::pinned(finding).map(|pinned| Row::new("pins", pinned)));
    rows.extend(finding::made_at(finding).map(|lines| Row::new("made at", lines)));
    let code = |text: &str| if with_source { text.trim().to_owned() } else { String::new() };
    let place =
        |file: &str, line: u32, text: &str| format!("{file}:{line}  {}", code(text)).trim_end().to_owned();
    let fix = advice::fix(finding);
    let fix = fix.as_ref();
    let hunks =
        fix.filter(|_| with_source).map(|fix| change::hunks(&fix.edits, excerpts)).unwrap_or_default();
    let hunk = |hunk: change::Hunk| Hunk {
        file: hunk.file,
        line: hunk.line,
        removed: hunk.removed,
        added: hunk.added,
    };
    let graph = |pinned: &Pinned| {
        format!("{}, {}", words::count(pinned.graph_nodes, "node"), Bytes(pinned.saved_bytes))
    };
    let graph = finding.pinned.as_ref().filter(|pinned| pinned.graph_nodes > 0).map(graph);
    FindingCard {
        severity: finding::severity(finding.severity).1,
        confidence: finding::sure(finding.confidence),
        class: finding.class.to_string(),
        message: what(finding),
        excerpts: finding.sites.iter().map(|site| excerpt(site, excerpts, with_source)).collect(),
        holder: finding.holder.clone(),
        path: finding.holder_path.clone(),
        elements: elements(finding),
        graph: graph.unwrap_or_default(),
        rows,
        flow: chain(finding)
            .iter()
            .map(|step| Row::new(place(&step.file, step.line, &step.text), step.note.as_str()))
            .collect(),
        // The source as evidence quotes statements.
        evidence: finding
            .evidence
            .iter()
            .filter(|one| with_source || one.kind() != "source")
            .map(|one| Row::new(one.kind().replace('-', " "), evidence_text(one)))
            .collect(),
        twins: finding.twins.iter().map(|twin| place(&twin.file, twin.line, &twin.text)).collect(),
        fix: fix.map(|fix| sentence_case(&fix.description)).unwrap_or_default(),
        is_unsafe: fix.is_some_and(|fix| fix.applicability == Applicability::Unsafe),
        hunks: hunks.into_iter().map(hunk).collect(),
    }
}

/// What is wrong.
fn what(finding: &Finding) -> String {
    finding::or_summary(finding.class, &message(finding)).to_owned()
}

/// What the container gains.
fn elements(finding: &Finding) -> String {
    let Some(growth) = finding.growth.as_ref().filter(|growth| growth.elements_per_unit > 0.0) else {
        return String::new();
    };
    let per = Per::of(growth.unit);
    let rate = format!("+{} per {}", words::mean(growth.elements_per_unit * per.factor), per.name);
    let is_memory = !matches!(growth.series, Series::Fds | Series::Threads | Series::Children);
    let bytes =
        (growth.bytes_per_unit > 0.0 && is_memory).then(|| words::bytes(growth.bytes_per_unit * per.factor));
    bytes.map_or(rate.clone(), |bytes| format!("{rate}, {bytes}"))
}

fn excerpt(site: &Site, excerpts: &Excerpts, with_source: bool) -> Excerpt {
    let role = match site.role {
        SiteRole::Grows => "grows here",
        SiteRole::Allocates => "allocates here",
        SiteRole::Creates => "created here",
        SiteRole::ReleasesMissing => "no release here",
    };
    let around = excerpts.around(site).unwrap_or_else(|| vec![(site.line, site.text.as_str())]);
    let own = site.line..=site.end_line.max(site.line);
    let line =
        |(number, text): (u32, &str)| SourceLine { number, text: text.into(), marked: own.contains(&number) };
    let lines = around.into_iter().filter(|(_, text)| with_source && !text.is_empty());
    Excerpt { place: finding::place(site), role: role.into(), lines: lines.map(line).collect() }
}

fn line_row(line: &LineUse, details: &Details<'_>) -> LineRow {
    let text = details.excerpts.line(&line.file, line.line).filter(|_| details.with_source);
    LineRow {
        process: words::owner(&line.process).unwrap_or_default(),
        file: line.file.clone(),
        line: line.line,
        function: line.function.clone(),
        text: text.unwrap_or_default().to_owned(),
        live: line.live,
        peak: line.peak,
        growth: line.growth,
    }
}
