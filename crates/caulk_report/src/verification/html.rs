//! The result of a verification as a page for a browser.

use caulk_html::{Cell, Mood, PageAnswer, Paper, PaperPart, PaperSection, Row};
use caulk_verify::{Checked, Grade, Verification};

use super::sentence;
use crate::html::{about, cards};
use crate::outlook::outlook;
use crate::{Report, death, headline};

/// The page: the checklist, and the findings of the run.
pub fn verification_html(verification: &Verification, report: &Report, with_source: bool) -> String {
    let rows = verification.checks.iter().map(row).collect();
    let heads = &["check", "result", "figure", "limit"];
    let mut sections = vec![PaperSection {
        id: "checklist",
        title: "Checklist".into(),
        parts: vec![PaperPart::Table("checklist", heads, rows)],
    }];
    let findings = cards(report, with_source);
    if !findings.is_empty() {
        let parts = vec![PaperPart::Findings(findings)];
        sections.push(PaperSection { id: "findings", title: "Findings of the run".into(), parts });
    }
    caulk_html::paper(&Paper {
        title: format!("verify {}", report.info.id),
        command: report.info.target.command.join(" "),
        answer: answer(verification, report),
        figures: figures(verification),
        about: about(report),
        sections,
    })
}

fn answer(verification: &Verification, report: &Report) -> PageAnswer {
    let grade = verification.grade();
    let brief = match grade {
        Grade::Fail => "failed",
        Grade::Undecided => "undecided",
        Grade::Pass | Grade::NotApplicable => "passed",
    };
    let decided = outlook(&report.verdicts);
    let memory = headline::headline(decided, !report.running, death::out_of_memory(report), &report.findings);
    PageAnswer {
        mood: mood(grade),
        ended: None,
        brief: brief.into(),
        sentence: sentence(verification),
        details: vec![memory.sentence],
    }
}

fn figures(verification: &Verification) -> Vec<Row> {
    let count = |grade: Grade| verification.checks.iter().filter(|check| check.grade == grade).count();
    let grades = [
        ("Failed", Grade::Fail),
        ("Undecided", Grade::Undecided),
        ("Passed", Grade::Pass),
        ("Do not apply", Grade::NotApplicable),
    ];
    grades.into_iter().map(|(label, grade)| Row::new(label, count(grade).to_string())).collect()
}

fn row(check: &Checked) -> Vec<Cell> {
    let optional = if check.required { Vec::new() } else { vec!["not required".to_owned()] };
    let decided = Some(&check.decided_by).filter(|text| !text.is_empty());
    let below = decided.map(|text| format!("decided by: {text}")).into_iter();
    vec![
        Cell::new(check.name.to_string()).over(optional),
        Cell::new(check.grade.as_str()).with(mood(check.grade)),
        Cell::new(&check.figure).over(below.chain(check.places.iter().cloned()).collect()),
        Cell::new(&check.limit),
    ]
}

const fn mood(grade: Grade) -> Mood {
    match grade {
        Grade::Pass => Mood::Good,
        Grade::Fail => Mood::Bad,
        Grade::Undecided => Mood::Warn,
        Grade::NotApplicable => Mood::Plain,
    }
}
