//! `JUnit` XML, as CI servers read it: a test case for each check.

use std::fmt::Write as _;

use caulk_core::written_out;
use caulk_verify::{Checked, Grade, Verification};

/// A document with one test suite. A check that is not required is skipped if it does not pass.
pub fn verification_junit(verification: &Verification, name: &str, seconds: f64) -> String {
    let checks = &verification.checks;
    let count = |kind: Kind| checks.iter().filter(|check| Kind::of(check) == kind).count();
    let (failures, errors, skipped) = (count(Kind::Failure), count(Kind::Error), count(Kind::Skipped));
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{seconds:.3}\"",
        checks.len()
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{}\" {counts}>\n",
        escaped(&format!("caulk verify: {name}"))
    );
    for check in checks {
        case(&mut text, check);
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Passed,
    Failure,
    Error,
    Skipped,
}

impl Kind {
    fn of(check: &Checked) -> Self {
        match (check.grade, check.required) {
            (Grade::Pass, _) => Self::Passed,
            (Grade::Fail, true) => Self::Failure,
            (Grade::Undecided, true) => Self::Error,
            _ => Self::Skipped,
        }
    }
}

fn case(text: &mut String, check: &Checked) {
    let element = match Kind::of(check) {
        Kind::Passed => None,
        Kind::Failure => Some("failure"),
        Kind::Error => Some("error"),
        Kind::Skipped => Some("skipped"),
    };
    let limit = if check.limit.is_empty() { String::new() } else { format!("; limit: {}", check.limit) };
    let figure = format!("{}{limit}", check.figure);
    let start = format!("    <testcase classname=\"caulk.verify\" name=\"{}\"", check.name);
    // Writing to a `String` does not fail.
    let _ = match element {
        None => writeln!(text, "{start}><system-out>{}</system-out></testcase>", escaped(&figure)),
        Some(element) => {
            let decided = Some(&check.decided_by).filter(|text| !text.is_empty());
            let decided = decided.map(|text| format!("decided by: {text}"));
            let rest: Vec<String> = check.places.iter().cloned().chain(decided).collect();
            let (message, rest) = (escaped(&figure), escaped(&rest.join("\n")));
            writeln!(text, "{start}><{element} message=\"{message}\">{rest}</{element}></testcase>")
        }
    };
}

/// Safe in text and in attributes; characters that XML does not have are written out.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push_str(&written_out(&c.to_string())),
            c => out.push(c),
        }
    }
    out
}
