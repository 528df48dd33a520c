//! For a pull request.

use std::fmt::Write as _;

use caulk_core::written_out;
use caulk_verify::{Grade, Verification};

use super::sentence;

/// A table of the checks, and below it the places of those that failed.
pub fn verification_markdown(verification: &Verification) -> String {
    let mut text = format!(
        "## {} caulk verify\n\n{}\n\n| check | result | figure | limit |\n|---|---|---|---|\n",
        mark(verification.grade()),
        sentence(verification)
    );
    for check in &verification.checks {
        let optional = if check.required { "" } else { " (not required)" };
        let decided = Some(&check.decided_by).filter(|text| !text.is_empty());
        let decided = decided.map_or_else(String::new, |text| format!("; decided by: {}", cell(text)));
        // Writing to a `String` does not fail.
        let _ = writeln!(
            text,
            "| {}{optional} | {} {} | {}{decided} | {} |",
            check.name,
            mark(check.grade),
            check.grade.as_str(),
            cell(&check.figure),
            cell(&check.limit)
        );
    }
    let places = verification.checks.iter().filter(|check| !check.places.is_empty());
    for check in places {
        let _ = write!(text, "\n**{}**\n", check.name);
        for place in &check.places {
            let _ = writeln!(text, "- {}", cell(place));
        }
    }
    text
}

fn mark(grade: Grade) -> &'static str {
    match grade {
        Grade::Pass => "✅",
        Grade::Fail => "❌",
        Grade::NotApplicable => "➖",
        Grade::Undecided => "❔",
    }
}

/// Text of the program's that is no markup.
pub(crate) fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in written_out(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '@' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
