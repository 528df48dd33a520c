//! The result as a page for a browser.

use caulk_core::Bytes;
use caulk_html::{Cell, Curve, Mood, PageAnswer, Paper, PaperPart, PaperSection, Row};
use caulk_report::{seconds, sentence_case};

use super::document::{Document, EditRow, Outcome, RunRow};
use super::text::{ONE_RUN, headline};

/// The page: growth before and after, the edits with their proof, the runs, the patch.
pub(crate) fn html(document: &Document) -> String {
    let mut sections = Vec::new();
    let mut section = |id, title: &str, parts: Vec<PaperPart>| {
        sections.push(PaperSection { id, title: title.into(), parts });
    };
    if let Some((before, after)) = document.before_and_after() {
        let trace = |name: &str, run: &RunRow| Curve {
            name: format!("{name}: {}", run.brief),
            readings: run.in_use.iter().map(|bytes| *bytes as f64).collect(),
        };
        let label =
            format!("Memory in use at each boundary. Before: {}. After: {}", before.brief, after.brief);
        let traces = vec![trace("before", before), trace("after", after)];
        section("growth", "Before and after", vec![PaperPart::Traces(label, traces)]);
    }
    if !document.edits.is_empty() {
        let heads = &["place", "result", "edit", "leak class"];
        let rows = document.edits.iter().map(edit).collect();
        section("edits", "Edits", vec![PaperPart::Table("edits", heads, rows)]);
    }
    if let Some(compared) = &document.compared {
        let masked = match compared.masked {
            0 => String::new(),
            count => format!(" {count} numbers differ by themselves and were left out."),
        };
        let files: Vec<String> = compared.files.iter().map(|file| format!(", `{file}`")).collect();
        let (lines, numbers) = (compared.lines, compared.numbers);
        let text = format!("Compared: {lines} lines with {numbers} numbers{}.{masked}", files.concat());
        let parts = vec![PaperPart::Text(text), PaperPart::Text(sentence_case(ONE_RUN))];
        section("proof", "Proof", parts);
    }
    if !document.runs.is_empty() {
        let heads = &["run", "growth", "peak", "run time", "result", "edits in it"];
        let rows = document.runs.iter().map(run).collect();
        section("runs", "Runs", vec![PaperPart::Table("runs", heads, rows)]);
    }
    if !document.left.is_empty() {
        let rows = document.left.iter().map(|left| {
            let below = left.advice.iter().cloned().collect();
            vec![
                Cell::new(format!("`{}:{}`", left.file, left.line)),
                Cell::new(&left.message).over(below),
                Cell::new(left.class.as_str()),
            ]
        });
        let table = PaperPart::Table("without an edit", &["place", "finding", "leak class"], rows.collect());
        section("left", "Without an edit to try", vec![table]);
    }
    if !document.patch.is_empty() {
        let title = if document.applied { "Patch, applied" } else { "Patch" };
        section("patch", title, vec![PaperPart::Patch(document.patch.clone())]);
    }
    caulk_html::paper(&Paper {
        title: "heal".into(),
        command: document.target.join(" "),
        answer: answer(document),
        figures: figures(document),
        about: vec![Row::new("Folder", &document.folder), Row::new("Written by", version())],
        sections,
    })
}

fn version() -> String {
    format!("caulk {}", env!("CARGO_PKG_VERSION"))
}

fn answer(document: &Document) -> PageAnswer {
    let (mood, brief) = match document.outcome {
        Outcome::NothingToHeal => (Mood::Good, "nothing to heal"),
        Outcome::Healed => (Mood::Good, "healed"),
        Outcome::GrowthLeft => (Mood::Bad, "growth is left"),
        Outcome::Undecided => (Mood::Warn, "not decided"),
        Outcome::CommandFailed => (Mood::Bad, "the command fails"),
        Outcome::NotComparable => (Mood::Warn, "not comparable"),
        Outcome::Interrupted => (Mood::Warn, "ended by a signal"),
        Outcome::Failed => (Mood::Warn, "ended by an error of caulk"),
    };
    PageAnswer {
        mood,
        ended: None,
        brief: brief.into(),
        sentence: sentence_case(&headline(document)),
        details: document.reason.iter().map(|reason| sentence_case(reason)).collect(),
    }
}

fn figures(document: &Document) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some((before, after)) = document.before_and_after() {
        rows.push(Row::new("Before", &before.brief));
        rows.push(Row::new("After", &after.brief));
        let peaks = before.peak_bytes.zip(after.peak_bytes);
        rows.extend(peaks.map(|(from, to)| Row::new("Peak", format!("{} → {}", Bytes(from), Bytes(to)))));
    }
    for (label, verdict) in [("Proven", "proven"), ("Unproven", "unproven"), ("Refused", "refused")] {
        let count = document.edits.iter().filter(|edit| edit.verdict == verdict).count();
        rows.push(Row::new(label, count.to_string()));
    }
    rows
}

fn edit(edit: &EditRow) -> Vec<Cell> {
    let mood = match edit.verdict {
        "proven" => Mood::Good,
        "refused" => Mood::Bad,
        _ => Mood::Warn,
    };
    vec![
        Cell::new(format!("`{}:{}`", edit.file, edit.line)),
        Cell::new(edit.verdict).with(mood).over(edit.reason.iter().cloned().collect()),
        Cell::new(&edit.description),
        Cell::new(edit.class.as_str()),
    ]
}

fn run(run: &RunRow) -> Vec<Cell> {
    vec![
        Cell::new(run.number.to_string()),
        Cell::new(&run.brief),
        Cell::new(run.peak_bytes.map_or_else(|| "–".to_owned(), |bytes| Bytes(bytes).to_string())),
        Cell::new(seconds(run.duration_s)),
        Cell::new(&run.result),
        Cell::new(run.edits.join(", ")),
    ]
}

#[cfg(test)]
mod tests {
    use caulk_core::LeakClass;

    use super::*;

    const HOSTILE: &str = "</script><img src=x onerror=hit()>`";

    #[test]
    fn edits_have_their_proof_and_names_are_text() {
        let mut document = Document::new(vec![HOSTILE.into()], "heal/1".into());
        document.outcome = Outcome::GrowthLeft;
        let row = |verdict, reason: Option<&str>| EditRow {
            class: LeakClass::GraphKeptInContainer,
            file: HOSTILE.into(),
            line: 7,
            text: HOSTILE.into(),
            holder: HOSTILE.into(),
            description: HOSTILE.into(),
            verdict,
            reason: reason.map(Into::into),
        };
        document.edits = vec![row("proven", None), row("refused", Some("the output changed"))];
        document.patch = format!("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-{HOSTILE}\n+kept = []\n");
        let page = html(&document);
        for text in ["proven", "the output changed", "kept = []", "Growth is left", "default-src 'none'"] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<img"));
        assert_eq!(page.matches("<script").count(), 1);
    }
}
