//! Findings for people: the line, why its memory lives on, what to change.

use caulk_core::{Applicability, Certainty, Diagnostic, Finding, Proof, Severity};

use super::{CheckReport, fixable, place};
use crate::page::{Page, Tone};
use crate::rows::Rows;
use crate::words::{self, count};
use crate::{TextOptions, finding, words::sentence_case};

/// Twins that are shown; the JSON report has more.
const MOST_TWINS: usize = 6;

/// All findings in full, then a summary unless `quiet`.
pub fn text(report: &CheckReport, options: &TextOptions, quiet: bool) -> String {
    let mut page = Page::new(options.color, options.width);
    for (index, finding) in report.findings.iter().enumerate() {
        page.gap();
        full(&mut page, report, finding, report.observed.get(index).and_then(Option::as_ref));
    }
    if !report.problems.is_empty() || !quiet && !report.notices.is_empty() {
        page.gap();
    }
    for problem in &report.problems {
        page.prose((Tone::Warn, "problem: "), Tone::Plain, &place::problem(problem, &report.cells));
    }
    if !quiet {
        for notice in &report.notices {
            page.prose((Tone::Strong, "note: "), Tone::Plain, &place::problem(notice, &report.cells));
        }
        page.gap();
        for line in summary_lines(report) {
            page.prose((Tone::Plain, ""), Tone::Plain, &line);
        }
    }
    page.finish()
}

/// What could not be looked at, and how much was found.
pub fn summary(report: &CheckReport, options: &TextOptions) -> String {
    let (problems, cells) = (report.problems.clone(), report.cells.clone());
    let problems = CheckReport { problems, cells, ..CheckReport::default() };
    let mut page = Page::new(options.color, options.width);
    for line in summary_lines(report) {
        page.prose((Tone::Plain, ""), Tone::Plain, &line);
    }
    text(&problems, options, true) + &page.finish()
}

fn full(page: &mut Page, report: &CheckReport, diagnostic: &Diagnostic, seen: Option<&Finding>) {
    let Diagnostic { severity, class, confidence, .. } = *diagnostic;
    finding::title(
        page,
        &finding::Title { severity, class, message: (&diagnostic.message).into(), confidence },
    );
    for (index, site) in diagnostic.sites.iter().enumerate() {
        let function = match site.function.as_str() {
            "" | "<module>" => String::new(),
            function => format!(" in {function}"),
        };
        let place = format!("{}{function}", place::of_site(site, &report.cells));
        let container = if index == 0 { diagnostic.container.as_str() } else { "" };
        finding::excerpt(page, &place, site, container, &report.excerpts, &report.cells);
    }
    page.gap();
    chain(page, report, diagnostic);
    let mut rows = Rows::new(page);
    if let Some(seen) = seen {
        rows.strong("observed", &observed(seen));
    }
    if let Some(fix) = &diagnostic.fix {
        rows.strong("change", &sentence_case(&fix.description));
        finding::fix(page, fix, &report.excerpts, &report.cells);
    }
    let mut rows = Rows::new(page);
    rows.text("proof", &proof(diagnostic.proof));
    for (index, twin) in diagnostic.twins.iter().take(MOST_TWINS).enumerate() {
        let place = place::short(&twin.file, Some(twin.line), None, &report.cells);
        rows.code(if index == 0 { "also at" } else { "" }, &format!("{place}  "), twin.text.trim());
    }
    let more = diagnostic.twins.len().saturating_sub(MOST_TWINS) + diagnostic.more_twins;
    if more > 0 {
        rows.text("", &format!("and {more} more"));
    }
}

/// From what makes the value to why it lives on: each step's line, and below it what happens there.
fn chain(page: &mut Page, report: &CheckReport, diagnostic: &Diagnostic) {
    let mut rows = Rows::new(page);
    for (index, step) in diagnostic.chain.iter().enumerate() {
        let place = place::short(&step.file, Some(step.line), None, &report.cells);
        rows.code(if index == 0 { "why" } else { "" }, &format!("{place}  "), step.text.trim());
        rows.note(&step.note);
    }
}

/// `proven: kind, outlives, unreleased; likely: repeats`.
fn proof(proof: Proof) -> String {
    let names = ["repeats", "kind", "outlives", "unreleased"];
    let of = |certainty: Certainty| {
        let parts = names.into_iter().zip(proof.parts()).filter(|(_, part)| *part == certainty);
        let parts: Vec<&str> = parts.map(|(name, _)| name).collect();
        (!parts.is_empty()).then(|| format!("{}: {}", certainty.as_str(), parts.join(", ")))
    };
    let levels = [Certainty::Proven, Certainty::Likely, Certainty::Assumed];
    levels.into_iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

/// What a run saw: `grew by 18.2 MB per epoch`.
fn observed(seen: &Finding) -> String {
    let what = if seen.holder.is_empty() { seen.container.as_str() } else { seen.holder.as_str() };
    let rate = seen.growth.as_ref().filter(|growth| growth.bytes_per_unit > 0.0).map(|growth| {
        let per = words::Per::of(growth.unit);
        format!(" by {} per {}", words::bytes(growth.bytes_per_unit * per.factor), per.name)
    });
    format!("`{what}` grew{} in the run", rate.unwrap_or_default())
}

/// What was found, what can be fixed, and what was left out.
pub(crate) fn summary_lines(report: &CheckReport) -> Vec<String> {
    let mut lines = Vec::new();
    let files = match report.unread.len() {
        0 => count(report.files as u64, "file"),
        unread => format!("{}, {unread} not read", count(report.files as u64, "file")),
    };
    let kinds = [
        (report.count(Severity::Error), "error"),
        (report.count(Severity::Warning), "warning"),
        (report.count(Severity::Info), "hint"),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, kind)| count(*number as u64, kind))
        .collect();
    let remain = if report.fixed.is_some() { "Left" } else { "Found" };
    lines.push(match parts.as_slice() {
        [] if report.files == 0 && report.problems.is_empty() => "No Python files found.".to_owned(),
        [] => format!("No leak patterns in {files}."),
        parts => format!("{remain} {}; looked at {files}.", parts.join(", ")),
    });
    if let Some(fixed) = report.fixed.as_ref().filter(|fixed| fixed.total() > 0) {
        let would = if fixed.only_shown { "Would fix" } else { "Fixed" };
        let rules: Vec<String> =
            fixed.applied.iter().map(|(class, number)| format!("{number} {class}")).collect();
        lines
            .insert(0, format!("{would} {} ({}).", count(fixed.total() as u64, "finding"), rules.join(", ")));
    }
    lines.extend(fixes(report));
    let left_out = [(report.suppressed, "silenced by comments"), (report.known, "known to the baseline")];
    let left_out: Vec<String> = left_out
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, why)| format!("{number} {why}"))
        .collect();
    if !left_out.is_empty() {
        lines.push(format!("Not shown: {}.", left_out.join(", ")));
    }
    if report.hints > 0 {
        lines.push(format!("{} not shown: --info", count(report.hints as u64, "hint")));
    }
    lines
}

fn fixes(report: &CheckReport) -> Option<String> {
    let safe = report.fixable(Applicability::Safe);
    let other = report.fixable(Applicability::Unsafe);
    debug_assert_eq!(
        safe + other,
        report.findings.iter().filter(|finding| fixable(finding).is_some()).count()
    );
    match (safe, other) {
        (0, 0) => None,
        (0, other) => {
            Some(format!("{other} can be fixed with --unsafe-fixes; look at them with --diff first."))
        }
        (safe, 0) => Some(format!("{safe} can be fixed with --fix.")),
        (safe, other) => Some(format!("{safe} can be fixed with --fix, {other} more with --unsafe-fixes.")),
    }
}
