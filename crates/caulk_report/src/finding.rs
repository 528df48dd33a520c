//! One finding: what is wrong, at which line, what keeps it, and what to change.

use std::borrow::Cow;
use std::fmt::Write as _;

use caulk_core::{
    Applicability, Bytes, Confidence, Finding, Fix, Growth, LeakClass, MadeAt, Pinned, Series, Severity, Site,
};
use unicode_width::UnicodeWidthStr;

use crate::advice;
use crate::chain::chain;
use crate::change::{self, Hunk};
use crate::evidence::evidence_text;
use crate::message::message;
use crate::page::{Page, Tone, cut, harmless};
use crate::rows::Rows;
use crate::words::{self, Per, sentence_case};
use crate::{Cells, Excerpts};

/// Lines of a hunk that are shown; a longer change is better read in an editor.
const HUNK_LINES: usize = 12;

/// Evidence and twins shown; the JSON report has more.
const MOST: usize = 6;

/// Columns of source within a sentence.
const CODE: usize = 60;

/// Twins named on one line.
const NAMED: usize = 3;

/// Share of the saved bytes from which on the nodes' own are told as well, and share of them that is touched where the
/// rest is told apart.
const NODES_MATTER: u64 = 20;
const TOUCHED: f64 = 0.95;

/// How much of a finding is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// The line, the growth, the holder and the change.
    Brief,
    /// The line between its neighbours and what is pinned as well.
    Usual,
    /// The flow, the evidence and the twins as well.
    Full,
}

/// Writes one finding.
pub(crate) fn finding(page: &mut Page, finding: &Finding, excerpts: &Excerpts, detail: Detail) {
    title(page, &Title::from(finding));
    sites(page, finding, excerpts, detail);
    let mut rows = Rows::new(page);
    if let Some(growth) = &finding.growth {
        rows.text("grows", &rate(growth, noun(finding)));
    }
    if let Some(owner) = words::owner(&finding.process) {
        rows.text("process", &owner);
    }
    held_by(&mut rows, finding, detail);
    if detail >= Detail::Usual
        && let Some(pinned) = pinned(finding)
    {
        rows.text("pins", &pinned);
    }
    if detail == Detail::Full {
        reasons(&mut rows, finding);
    }
    if let Some(fix) = advice::fix(finding) {
        rows.strong("change", &sentence_case(&fix.description));
        self::fix(page, &fix, excerpts, &Cells::default());
    }
    twins(&mut Rows::new(page), finding, detail);
}

/// The lines to look at.
fn sites(page: &mut Page, finding: &Finding, excerpts: &Excerpts, detail: Detail) {
    for (index, site) in finding.sites.iter().enumerate() {
        if detail == Detail::Brief || (detail == Detail::Usual && index > 0) {
            site_line(page, site);
        } else {
            let container = if index == 0 { finding.container.as_str() } else { "" };
            excerpt(page, &place(site), site, container, excerpts, &Cells::default());
        }
    }
    if detail > Detail::Brief {
        page.gap();
    }
}

/// A place and its source on one line.
fn site_line(page: &mut Page, site: &Site) {
    let place = place(site);
    page.line(&[
        (Tone::Quiet, "  --> "),
        (Tone::Plain, &place),
        (Tone::Quiet, "  "),
        (Tone::Plain, &site.text),
    ]);
}

/// What keeps the memory alive, and the path of references that leads there.
fn held_by(rows: &mut Rows<'_>, finding: &Finding, detail: Detail) {
    let path = &finding.holder_path;
    match (finding.holder.as_str(), detail) {
        ("", _) if path.is_empty() => {}
        ("", _) => rows.chain("held by", path, " → "),
        (holder, _) => {
            rows.strong("held by", holder);
            if path.len() > 1 && detail > Detail::Brief {
                rows.chain("", path, " → ");
            }
        }
    }
}

/// Why the memory is kept, and what that was seen by.
fn reasons(rows: &mut Rows<'_>, finding: &Finding) {
    if let Some(lines) = made_at(finding) {
        rows.text("made at", &lines);
    }
    for (index, step) in chain(finding).iter().enumerate() {
        let label = if index == 0 { "flow" } else { "" };
        let text = cut(step.text.trim().trim_end_matches(':'), CODE);
        rows.text(label, &format!("{}:{} {text}: {}", step.file, step.line, step.note));
    }
    for (index, evidence) in finding.evidence.iter().take(MOST).enumerate() {
        let (kind, text) = (evidence.kind().replace('-', " "), evidence_text(evidence));
        rows.text(if index == 0 { "seen" } else { "" }, &format!("{kind}: {text}"));
    }
}

/// Other places with the same cause.
fn twins(rows: &mut Rows<'_>, finding: &Finding, detail: Detail) {
    let twins = &finding.twins;
    if detail < Detail::Full {
        let mut named: Vec<String> =
            twins.iter().take(NAMED).map(|twin| format!("{}:{}", twin.file, twin.line)).collect();
        let more = twins.len().saturating_sub(NAMED) + finding.more_twins;
        if more > 0 {
            named.push(format!("{more} more"));
        }
        if !named.is_empty() {
            rows.text("also at", &named.join(", "));
        }
        return;
    }
    for (index, twin) in twins.iter().take(MOST).enumerate() {
        let label = if index == 0 { "also at" } else { "" };
        rows.text(label, &format!("{}:{}  {}", twin.file, twin.line, twin.text.trim()));
    }
    let more = twins.len().saturating_sub(MOST) + finding.more_twins;
    if more > 0 {
        rows.text("", &format!("and {more} more"));
    }
}

/// Writes a finding on one line.
pub(crate) fn line(page: &mut Page, finding: &Finding) {
    let (tone, severity) = severity(finding.severity);
    let place = match finding.sites.first() {
        Some(site) => format!("{}:{}", site.file, site.line),
        None => finding.holder.clone(),
    };
    let place = if place.is_empty() { place } else { format!("{place}  ") };
    page.line(&[
        (tone, &format!("{severity}[{}]: ", finding.class)),
        (Tone::Plain, &place),
        (Tone::Quiet, or_summary(finding.class, &message(finding))),
    ]);
}

/// Writes advice in a few lines.
pub(crate) fn short(page: &mut Page, finding: &Finding) {
    title(page, &Title::from(finding));
    if let Some(owner) = words::owner(&finding.process) {
        page.line(&[(Tone::Quiet, "  process "), (Tone::Plain, &owner)]);
    }
    if let Some(site) = finding.sites.first() {
        site_line(page, site);
    } else if !finding.holder.is_empty() {
        page.line(&[(Tone::Quiet, "  held by "), (Tone::Plain, &finding.holder)]);
    }
    if let Some(fix) = advice::fix(finding) {
        page.prose((Tone::Quiet, "  "), Tone::Plain, &sentence_case(&fix.description));
    }
}

/// What a finding begins with.
pub(crate) struct Title<'a> {
    pub(crate) severity: Severity,
    pub(crate) class: LeakClass,
    pub(crate) message: Cow<'a, str>,
    pub(crate) confidence: Confidence,
}

impl<'a> From<&'a Finding> for Title<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            severity: finding.severity,
            class: finding.class,
            message: message(finding).into(),
            confidence: finding.confidence,
        }
    }
}

pub(crate) fn title(page: &mut Page, finding: &Title<'_>) {
    let (tone, severity) = severity(finding.severity);
    let message = or_summary(finding.class, &finding.message);
    let text = format!("{message} ({})", sure(finding.confidence));
    let strong = if finding.severity == Severity::Info { Tone::Plain } else { Tone::Strong };
    let head = format!("{severity}[{}]: ", finding.class);
    // The class may be half a line long, so the message is wrapped below the severity, not below its own start.
    let mut lines = crate::page::wrap(&harmless(&text), page.room(2)).into_iter();
    let first = lines.next().unwrap_or_default();
    if head.width() + first.width() <= page.room(0) {
        page.line(&[(tone, &head), (strong, &first)]);
        for line in lines {
            page.line(&[(Tone::Plain, "  "), (strong, &line)]);
        }
    } else {
        page.line(&[(tone, head.trim_end())]);
        page.prose((Tone::Plain, "  "), strong, &text);
    }
}

pub(crate) const fn sure(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Proved => "proved",
        Confidence::Likely => "likely",
        Confidence::Suspected => "suspected",
    }
}

pub(crate) const fn severity(severity: Severity) -> (Tone, &'static str) {
    match severity {
        Severity::Error => (Tone::Bad, "error"),
        Severity::Warning => (Tone::Warn, "warning"),
        Severity::Info => (Tone::Quiet, "info"),
    }
}

/// What is wrong: in the finding's own words, else in those of its class.
pub(crate) fn or_summary(class: LeakClass, message: &str) -> &str {
    if message.is_empty() { class.summary() } else { message.trim_end_matches('.') }
}

pub(crate) fn place(site: &Site) -> String {
    let cell = site.cell.map_or(String::new(), |cell| format!(" cell {cell}"));
    let function = match site.function.as_str() {
        "" | "<module>" => String::new(),
        function => format!(" in {function}"),
    };
    format!("{}{cell}:{}{function}", site.file, site.line)
}

/// The line to blame with its neighbours, and a mark under the container. Lines of notebooks are numbered by cells.
pub(crate) fn excerpt(
    page: &mut Page,
    place: &str,
    site: &Site,
    container: &str,
    excerpts: &Excerpts,
    cells: &Cells,
) {
    page.line(&[(Tone::Quiet, "  --> "), (Tone::Plain, place)]);
    let own = [(site.line, site.text.as_str())];
    let around = excerpts.around(site);
    let mut lines = around.unwrap_or_else(|| if site.text.is_empty() { Vec::new() } else { own.to_vec() });
    let number = |line: u32| cells.place(&site.file, line);
    lines.retain(|(line, _)| number(*line).cell == number(site.line).cell);
    if lines.is_empty() {
        return;
    }
    let margin = lines.iter().map(|(line, _)| number(*line).line.to_string().len()).max().unwrap_or(1);
    let indent = lines.iter().map(|(_, text)| indentation(text)).min().unwrap_or(0);
    let room = page.room(margin + 4);
    let lines: Vec<_> = lines
        .into_iter()
        .map(|(n, text)| (n, harmless(&text.chars().skip(indent).collect::<String>())))
        .collect();
    let blamed = |number: u32| (site.line..=site.end_line.max(site.line)).contains(&number);
    let names = |text: &str| find_word(text, &harmless(container.trim())).is_some();
    let marked = lines.iter().find(|(number, text)| blamed(*number) && names(text));
    let marked = marked.map_or(site.line, |(number, _)| *number);
    page.line(&[(Tone::Quiet, &format!(" {:margin$} |", ""))]);
    for (line, text) in &lines {
        let tone = if blamed(*line) { Tone::Strong } else { Tone::Quiet };
        let shown = number(*line).line;
        let in_view = if *line == marked { in_view(text, container, room) } else { text.as_str().into() };
        page.line(&[(Tone::Quiet, &format!(" {shown:>margin$} | ")), (tone, &cut(&in_view, room))]);
        if *line == marked {
            let mark = mark(&in_view, container, room);
            page.line(&[(Tone::Quiet, &format!(" {:margin$} | ", "")), (Tone::Bad, &mark)]);
        }
    }
}

fn indentation(text: &str) -> usize {
    text.chars().take_while(|c| c.is_whitespace()).count()
}

/// A line without so much of its beginning as would push the container out of view.
fn in_view<'a>(text: &'a str, container: &str, room: usize) -> Cow<'a, str> {
    let container = harmless(container.trim());
    let Some(start) = find_word(text, &container) else { return text.into() };
    let end = start + container.len();
    if text[..end].width() < room {
        return text.into();
    }
    let mut shown = text[..start].char_indices().map(|(at, _)| at).chain([start]);
    // A third of the line before the container, if both fit; what is cut on either side is marked.
    let spare = room.saturating_sub(text[start..end].width() + 2).min(room / 3);
    let from = shown.find(|at| text[*at..start].width() <= spare).unwrap_or(start);
    format!("…{}", &text[from..]).into()
}

/// Carets under the container where the line writes it, else under the whole statement.
fn mark(text: &str, container: &str, room: usize) -> String {
    let container = harmless(container.trim());
    let (start, end) = match find_word(text, &container) {
        Some(start) => (start, start + container.len()),
        None => (text.len() - text.trim_start().len(), text.trim_end().len()),
    };
    let (before, marked) = (text[..start].width(), text[start..end].width());
    let before = before.min(room.saturating_sub(1));
    format!("{}{}", " ".repeat(before), "^".repeat(marked.clamp(1, room.saturating_sub(before).max(1))))
}

/// Where `name` stands in a line as a name of its own: `losses` is not in `all_losses`.
fn find_word(text: &str, name: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).map(|(start, _)| start).find(|start| {
        let before = text[..*start].chars().next_back().is_some_and(|c| part(c) || c == '.');
        let after = text[start + name.len()..].chars().next().is_some_and(part) && name.ends_with(part);
        !before && !after
    })
}

/// What is counted.
pub(crate) fn noun(finding: &Finding) -> &'static str {
    if finding.holder_path.last().is_some_and(|kind| kind == "graph") { "node" } else { "element" }
}

pub(crate) fn rate(growth: &Growth, noun: &str) -> String {
    let per = Per::of(growth.unit);
    let mut parts = Vec::new();
    if growth.bytes_per_unit > 0.0 {
        let rate = words::bytes(growth.bytes_per_unit * per.factor);
        // Exact counts have an interval without width.
        let interval = growth
            .interval
            .map(|bounds| words::range(Series::InUse, bounds.map(|bound| bound * per.factor)))
            .filter(|interval| *interval != rate)
            .map_or(String::new(), |interval| format!(" ({interval})"));
        let own = growth.in_use_per_unit.map(|own| words::bytes(own * per.factor));
        parts.push(match own {
            None => format!("{rate} per {}{interval}", per.name),
            Some(own) => format!("{own} per {} in use, {rate}{interval} of resident memory", per.name),
        });
    }
    if growth.elements_per_unit > 0.0 {
        let rate = words::mean(growth.elements_per_unit * per.factor);
        let each = if per.name == "minute" { "a minute" } else { "each time" };
        let noun = if rate == "1" { noun.to_owned() } else { format!("{noun}s") };
        parts.push(match (parts.is_empty(), growth.elements) {
            (true, 0) => format!("{rate} {noun} per {}", per.name),
            (_, 0) => format!("{rate} {noun} {each}"),
            (true, now) => format!("{rate} {noun} per {}, {now} at the last look", per.name),
            (false, now) => format!("{rate} {noun} {each}, {now} at the last look"),
        });
    }
    parts.join("; ")
}

pub(crate) fn pinned(finding: &Finding) -> Option<String> {
    let pinned = finding.pinned.as_ref()?;
    let mut parts = Vec::new();
    if pinned.saved_bytes > 0 || pinned.graph_nodes > 0 {
        parts.push(graphs(pinned));
    }
    if pinned.tensor_bytes > 0 {
        parts.push(format!("{} of tensors and arrays", Bytes(pinned.tensor_bytes)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Autograd graphs and what they saved: what of it releasing frees, and by how much that may be off.
fn graphs(pinned: &Pinned) -> String {
    let mut nodes = words::count(pinned.graph_nodes, "graph node");
    if pinned.node_bytes > 0 && pinned.node_bytes >= pinned.saved_bytes / NODES_MATTER {
        _ = write!(nodes, " of {}", Bytes(pinned.node_bytes));
    }
    let bound = match (pinned.least, pinned.estimated) {
        (true, _) => "at least ",
        (false, true) => "about ",
        (false, false) => "",
    };
    if pinned.saved_bytes == 0 {
        let unseen = if pinned.least { ", which keep more than can be seen" } else { "" };
        return format!("an autograd graph of {nodes}{unseen}");
    }
    let storages = match pinned.storages {
        0 => String::new(),
        storages => format!(" in {}", words::count(storages, "storage")),
    };
    let (saved, touched) = (Bytes(pinned.saved_bytes), Bytes(pinned.touched_bytes));
    // Rounding of pages aside.
    if pinned.touched_bytes as f64 >= TOUCHED * pinned.saved_bytes as f64 {
        return format!("{bound}{saved} saved for backward{storages} by {nodes}");
    }
    format!(
        "{bound}{touched} saved for backward{storages} by {nodes} ({saved} reserved, {touched} of it touched)"
    )
}

/// The forward lines that made what is pinned.
pub(crate) fn made_at(finding: &Finding) -> Option<String> {
    let made = &finding.pinned.as_ref()?.made_at;
    let line =
        |made: &MadeAt| format!("{}:{} in `{}` ({})", made.file, made.line, made.function, Bytes(made.bytes));
    (!made.is_empty()).then(|| made.iter().map(line).collect::<Vec<_>>().join(", "))
}

/// The lines that a fix takes out and puts in.
pub(crate) fn fix(page: &mut Page, fix: &Fix, excerpts: &Excerpts, cells: &Cells) {
    let mut hunks = change::hunks(&fix.edits, excerpts);
    for hunk in &mut hunks {
        hunk.line = cells.place(&hunk.file, hunk.line).line;
    }
    let margin =
        hunks.iter().map(|hunk| (hunk.line as usize + HUNK_LINES).to_string().len()).max().unwrap_or(1);
    let several = hunks.windows(2).any(|pair| pair[0].file != pair[1].file);
    for hunk in &hunks {
        if several {
            page.line(&[(Tone::Quiet, &format!("           in {}", hunk.file))]);
        }
        lines(page, hunk, margin);
    }
    if !hunks.is_empty() && fix.applicability == Applicability::Unsafe {
        page.line(&[(Tone::Quiet, "           may change behaviour: look before you apply it")]);
    }
}

fn lines(page: &mut Page, hunk: &Hunk, margin: usize) {
    let all = hunk.removed.iter().chain(&hunk.added);
    let indent = all.filter(|line| !line.trim().is_empty()).map(|line| indentation(line)).min().unwrap_or(0);
    let numbered = hunk.removed.iter().map(|text| (Tone::Removed, '-', text));
    let numbered = numbered.zip(hunk.line..).map(|((tone, sign, text), number)| (tone, sign, text, number));
    let added = hunk.added.iter().zip(hunk.line..).map(|(text, number)| (Tone::Added, '+', text, number));
    let same = before_the_change(hunk, page.room(margin + 14));
    for (tone, sign, text, number) in numbered.chain(added).take(HUNK_LINES) {
        let text: String = match same {
            0 => text.chars().skip(indent).collect(),
            same => "…".chars().chain(text.chars().skip(same)).collect(),
        };
        page.line(&[
            (Tone::Quiet, &format!("           {number:>margin$} ")),
            (tone, &format!("{sign} {text}")),
        ]);
    }
    let hidden = (hunk.removed.len() + hunk.added.len()).saturating_sub(HUNK_LINES);
    if hidden > 0 {
        page.line(&[(Tone::Quiet, &format!("           ... {} more", words::count(hidden as u64, "line")))]);
    }
}

/// Characters at the beginning of a changed line to leave out, so that the change itself has room.
fn before_the_change(hunk: &Hunk, room: usize) -> usize {
    let ([removed], [added]) = (hunk.removed.as_slice(), hunk.added.as_slice()) else { return 0 };
    if removed.width().max(added.width()) <= room {
        return 0;
    }
    let same = removed.chars().zip(added.chars()).take_while(|(a, b)| a == b).count();
    same.saturating_sub(room / 3)
}

#[cfg(test)]
mod tests {
    use caulk_core::VerdictUnit;

    use super::*;

    fn check(text: &str, container: &str, marks: &str) {
        assert_eq!(mark(text, container, 60), marks);
    }

    fn says(unit: VerdictUnit, interval: [f64; 2], noun: &str, text: &str) {
        let megabyte = f64::from(1 << 20);
        let growth = Growth {
            unit,
            series: Series::InUse,
            bytes_per_epoch: None,
            bytes_per_unit: megabyte,
            in_use_per_unit: None,
            elements_per_epoch: None,
            elements_per_unit: 4.0,
            interval: Some(interval.map(|bound| bound * megabyte)),
            elements: 28,
        };
        assert_eq!(rate(&growth, noun), text);
    }

    #[test]
    fn an_interval_is_shown_where_it_says_more_than_the_rate() {
        let epoch = VerdictUnit::Epoch;
        says(epoch, [1.0, 1.0], "element", "1.00 MB per epoch; 4 elements each time, 28 at the last look");
        says(
            epoch,
            [0.5, 2.0],
            "node",
            "1.00 MB per epoch (512 KB to 2.00 MB); 4 nodes each time, 28 at the last look",
        );
    }

    #[test]
    fn minutes_are_no_times_at_which_something_is_added() {
        says(
            VerdictUnit::Seconds,
            [1.0, 1.0],
            "element",
            "60.0 MB per minute; 240 elements a minute, 28 at the last look",
        );
    }

    #[test]
    fn carets_stand_under_the_container() {
        check("self.ious.append(iou)", "self.ious", "^^^^^^^^^");
        check("    x = all_losses + losses", "losses", "                     ^^^^^^");
        check("log.losses = losses", "losses", "             ^^^^^^");
        check("größe[k] = v", "größe", "^^^^^");
    }

    #[test]
    fn a_container_far_to_the_right_is_brought_into_view() {
        let text = "for batch in loader: step(batch, optimizer, scheduler); history.append(loss); log(loss)";
        assert_eq!(in_view(text, "history", 60), "…imizer, scheduler); history.append(loss); log(loss)");
        assert_eq!(in_view("history.append(loss)", "history", 60), "history.append(loss)");
        assert_eq!(in_view(text, "nothing", 20), text);
    }

    #[test]
    fn without_a_container_the_statement_is_marked() {
        check("  plt.figure()  ", "", "  ^^^^^^^^^^^^");
        check("plt.figure()", "fig", "^^^^^^^^^^^^");
    }

    #[test]
    fn a_change_far_to_the_right_is_brought_into_view() {
        let line = |end: &str| vec![format!("{}{end}", "a".repeat(80))];
        let hunk = |end| Hunk { file: String::new(), line: 1, removed: line(""), added: line(end) };
        assert_eq!(before_the_change(&hunk(".detach()"), 60), 60);
        assert_eq!(before_the_change(&hunk(".detach()"), 100), 0);
    }

    #[test]
    fn a_mark_stays_on_the_page() {
        assert_eq!(mark("aaaaaaaaaaaaaaaaaaaa.append(x)", "", 10), "^^^^^^^^^^");
        assert_eq!(mark("                    kept", "kept", 10), "         ^");
    }
}
