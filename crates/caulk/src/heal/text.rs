//! The result for people at a terminal.

use std::fmt::Write as _;

use caulk_core::{Bytes, written_out};
use caulk_report::seconds;

use super::document::{Document, EditRow, Outcome, RunRow};

/// What a proof does not cover.
pub(super) const ONE_RUN: &str =
    "the proof holds for these runs: code that they did not reach may need an entry that an edit drops";

/// The result as text.
pub(crate) fn text(document: &Document) -> String {
    let mut text = format!("caulk heal: {}\n", headline(document));
    if let Some(reason) = &document.reason {
        line(&mut text, &format!("  {reason}"));
    }
    runs(&mut text, document);
    if !document.edits.is_empty() {
        text.push_str("\nedits\n");
        document.edits.iter().for_each(|edit| edit_line(&mut text, edit));
    }
    if let Some(compared) = &document.compared {
        let files: Vec<String> = compared.files.iter().map(|file| format!(", `{file}`")).collect();
        let files = files.concat();
        let masked = match compared.masked {
            0 => String::new(),
            count => format!("; {count} differ by themselves and were left out"),
        };
        text.push_str("\noutput\n");
        let what = format!("{} lines with {} numbers{files}{masked}", compared.lines, compared.numbers);
        line(&mut text, &format!("  compared: {what}"));
        line(&mut text, &format!("  {ONE_RUN}"));
    }
    if !document.left.is_empty() {
        text.push_str("\nwithout an edit to try\n");
        for left in &document.left {
            line(
                &mut text,
                &format!("  {}:{} [{}] {}", left.file, left.line, left.class.as_str(), left.message),
            );
            if let Some(advice) = &left.advice {
                line(&mut text, &format!("    do: {advice}"));
            }
        }
    }
    if !document.patch.is_empty() {
        let _ = write!(text, "\n{}\n{}", if document.applied { "applied" } else { "patch" }, document.patch);
        let patch = format!("{}/heal.patch", document.folder);
        let (what, undo) = if document.applied { ("undo", "-R ") } else { ("apply", "") };
        line(&mut text, &format!("\n{what} it in the project's folder: patch {undo}-p1 < {patch}"));
    }
    text
}

/// The answer in one sentence.
pub(super) fn headline(document: &Document) -> String {
    match document.outcome {
        Outcome::NothingToHeal => "nothing grows: nothing to heal".into(),
        Outcome::Healed => match document.before_and_after() {
            Some((before, _)) => format!("healed: memory no longer grows (before: {})", before.brief),
            None => "healed: memory no longer grows".into(),
        },
        Outcome::GrowthLeft => match document.before_and_after() {
            Some((before, after)) => format!("growth is left: {} (before: {})", after.brief, before.brief),
            None => "growth is left".into(),
        },
        Outcome::Undecided => "not decided".into(),
        Outcome::CommandFailed => "the unedited command fails".into(),
        Outcome::NotComparable => "the output cannot be compared, so that no edit can be proven".into(),
        Outcome::Interrupted => "ended by a signal".into(),
        Outcome::Failed => "ended by an error of caulk".into(),
    }
}

fn runs(text: &mut String, document: &Document) {
    text.push_str("\nruns\n");
    for RunRow { number, edits, brief, peak_bytes, duration_s, result, .. } in &document.runs {
        let peak = peak_bytes.map_or_else(String::new, |peak| format!(", peak {}", Bytes(peak)));
        let edits = if edits.is_empty() { String::new() } else { format!(": {}", edits.join(", ")) };
        line(text, &format!("  {number}  {brief}{peak}, {}  {result}{edits}", seconds(*duration_s)));
    }
}

fn edit_line(text: &mut String, edit: &EditRow) {
    let EditRow { class, file, line: number, description, verdict, reason, .. } = edit;
    line(text, &format!("  {verdict:<8}  {file}:{number} [{}] {description}", class.as_str()));
    if let Some(reason) = reason {
        line(text, &format!("            {reason}"));
    }
}

/// A line in which nothing steers a terminal.
fn line(text: &mut String, content: &str) {
    let lines: Vec<String> = content.split('\n').map(|part| written_out(part).to_string()).collect();
    text.push_str(&lines.join("\n"));
    text.push('\n');
}
