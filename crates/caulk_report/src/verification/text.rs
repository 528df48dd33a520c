//! For a terminal.

use caulk_verify::{Checked, Grade, Verification};

use super::sentence;
use crate::TextOptions;
use crate::page::{Page, Tone};

/// A line for each check, and below it what a reader needs to act.
pub fn verification_text(verification: &Verification, options: &TextOptions) -> String {
    let mut page = Page::new(options.color, options.width);
    page.rule("caulk verify");
    for check in &verification.checks {
        row(&mut page, check);
    }
    page.gap();
    page.prose((Tone::Plain, ""), tone(verification.grade()), &sentence(verification));
    page.finish()
}

fn row(page: &mut Page, check: &Checked) {
    let grade = format!("{:>9}  ", check.grade.as_str());
    let optional = if check.required { "" } else { " (not required)" };
    page.line(&[
        (tone(check.grade), &grade),
        (Tone::Strong, check.name.as_str()),
        (Tone::Quiet, optional),
        (Tone::Quiet, if check.limit.is_empty() { "" } else { "  limit: " }),
        (Tone::Quiet, &check.limit),
    ]);
    let indent = " ".repeat(grade.len());
    page.prose((Tone::Plain, &indent), Tone::Plain, &check.figure);
    for place in &check.places {
        page.prose((Tone::Plain, &indent), Tone::Strong, place);
    }
    if !check.decided_by.is_empty() {
        let text = format!("decided by: {}", check.decided_by);
        page.prose((Tone::Plain, &indent), Tone::Warn, &text);
    }
}

fn tone(grade: Grade) -> Tone {
    match grade {
        Grade::Pass => Tone::Good,
        Grade::Fail => Tone::Bad,
        Grade::NotApplicable => Tone::Quiet,
        Grade::Undecided => Tone::Warn,
    }
}
