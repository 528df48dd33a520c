//! All fixes at once, in every program of every rule's page: what they leave parses, nothing that could be fixed is
//! left, fixing again changes nothing, and line ends do not matter.

use std::collections::BTreeSet;

use caulk_check::{CheckOutcome, Fixed, Job, Selection, Texts, check, fix};
use caulk_core::Applicability;
use caulk_python::SourceFile;
use caulk_rules::RULES;

const FILE: &str = "page.py";

fn programs() -> impl Iterator<Item = String> {
    let fenced = RULES.iter().flat_map(|rule| rule.explanation.split("```").skip(1).step_by(2));
    fenced.filter_map(|block| block.strip_prefix("python")?.split_once('\n').map(|(_, code)| code.to_owned()))
}

fn fixed(text: &str) -> Fixed<CheckOutcome> {
    let mut selection = Selection::none();
    assert_eq!(selection.add(&["all".to_owned()]), Ok(()));
    let look = |texts: &Texts| {
        let source = SourceFile { path: FILE.to_owned(), text: texts[FILE].clone() };
        check(Job { sources: vec![source], ..Job::of_text(FILE, "", &selection) })
    };
    let texts = Texts::from([(FILE.to_owned(), text.to_owned())]);
    fix(texts, Applicability::Unsafe, &BTreeSet::new(), look, |outcome| &outcome.diagnostics)
}

#[test]
fn everything_that_can_be_fixed_is_fixed_once() {
    let mut fixes = 0;
    for program in programs() {
        let first = fixed(&program);
        let text = &first.texts[FILE];
        let offered =
            |fix: &caulk_core::Fix| fix.applicability != Applicability::DisplayOnly && !fix.edits.is_empty();
        let left = first.last.diagnostics.iter().filter_map(|diagnostic| diagnostic.fix.as_ref());
        assert!(!left.into_iter().any(offered), "left in:\n{text}");
        assert_eq!(first.refused, [], "refused in:\n{program}");
        assert_eq!(first.last.problems, [], "does not parse:\n{text}");
        assert_eq!(fixed(text).texts, first.texts);
        fixes += first.applied.len();
    }
    assert!(fixes > 0, "no page offers a fix");
}

#[test]
fn line_ends_and_a_byte_order_mark_stay() {
    let written = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    for program in programs() {
        let expected = written(&fixed(&program).texts[FILE]);
        assert_eq!(fixed(&written(&program)).texts[FILE], expected);
    }
}
