//! The result of `caulk verify`: for people, for programs, for a CI server and for a pull request.

mod html;
mod json;
mod junit;
mod markdown;
mod text;

pub use html::verification_html;
pub use json::verification_json;
pub use junit::verification_junit;
pub(crate) use markdown::cell;
pub use markdown::verification_markdown;
pub use text::verification_text;

use caulk_verify::{Grade, Verification};

/// The result in one sentence.
fn sentence(verification: &Verification) -> String {
    let count = |grade: Grade, required: bool| {
        let checks = verification.checks.iter();
        checks.filter(|check| check.grade == grade && (check.required || !required)).count()
    };
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    match verification.grade() {
        Grade::Fail if verification.command_failed() => "The command failed.".into(),
        Grade::Fail => {
            let failed = count(Grade::Fail, true);
            format!("Verification failed: {failed} check{} failed.", plural(failed))
        }
        Grade::Undecided => {
            let open = count(Grade::Undecided, true);
            format!("Verification is undecided: {open} check{} could not be decided.", plural(open))
        }
        Grade::Pass | Grade::NotApplicable => {
            let passed = count(Grade::Pass, false);
            format!("Verification passed: {passed} check{} passed.", plural(passed))
        }
    }
}

#[cfg(test)]
mod tests {
    use caulk_verify::{Checked, Criterion};

    use super::*;
    use crate::TextOptions;

    fn checked(name: Criterion, grade: Grade, figure: &str, limit: &str) -> Checked {
        Checked {
            name,
            grade,
            required: true,
            figure: figure.into(),
            limit: limit.into(),
            decided_by: if grade == Grade::Undecided { "about 3 more epochs".into() } else { String::new() },
            places: if grade == Grade::Fail {
                vec!["train.py:12  `seen|all` <x>".into()]
            } else {
                Vec::new()
            },
        }
    }

    fn sample() -> Verification {
        Verification {
            checks: vec![
                checked(Criterion::Ended, Grade::Pass, "exited with code 0, 10 epochs", ""),
                checked(Criterion::Stable, Grade::Fail, "main bytes in use: +4.00 MB per epoch", "no growth"),
                checked(Criterion::GpuNotFilling, Grade::NotApplicable, "the program used no GPU", ""),
                checked(
                    Criterion::WorkersFlat,
                    Grade::Undecided,
                    "worker RSS: +1.00 MB per epoch",
                    "no leak",
                ),
            ],
        }
    }

    #[test]
    fn text_has_a_line_for_each_check() {
        let options = TextOptions { color: false, width: 100, full: false };
        insta::assert_snapshot!(verification_text(&sample(), &options));
    }

    #[test]
    fn markup_is_escaped() {
        insta::assert_snapshot!(verification_junit(&sample(), "train & test", 12.5));
        insta::assert_snapshot!(verification_markdown(&sample()));
    }

    #[test]
    fn a_page_has_every_check_and_names_are_text() {
        let page = verification_html(&sample(), &crate::Report::default(), true);
        for text in
            ["+4.00 MB per epoch", "no growth", "decided by: about 3 more epochs", "Verification failed"]
        {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.contains("&lt;x&gt;") && !page.contains("<x>"), "{page}");
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn json_has_grades() {
        let document: serde_json::Value =
            serde_json::from_str(&verification_json(&sample(), "")).expect("valid JSON");
        assert_eq!(document["grade"], "fail");
        assert_eq!(document["checks"][3]["decided_by"], "about 3 more epochs");
    }
}
