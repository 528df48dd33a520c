//! The result of a comparison as a page for a browser.

use caulk_diff::{Difference, RowChange, Trend};
use caulk_html::{Curve, Mood, PageAnswer, Paper, PaperPart, PaperSection, Row, SideFigure, SideRow};

use super::{change, growth_change, label, measured, sentence};
use crate::words;

/// When a change counts.
const NOTE: &str = "A change counts if the intervals of both sides do not touch.";
/// The note below the table if something is not decided.
const UNCLEAR: &str =
    "`~`: the intervals touch, or one side has none. Three or more runs on each side give one.";

/// The page: every quantity of both sides as a picture, and the course of memory in some runs (`courses`).
pub fn difference_html(difference: &Difference, courses: Vec<Curve>) -> String {
    let names = [&difference.a, &difference.b].map(|names| names.join(", "));
    let mut parts = vec![PaperPart::Sides(names.clone(), difference.rows.iter().map(side_row).collect())];
    if difference.rows.iter().any(|row| row.trend == Trend::Unclear) {
        parts.push(PaperPart::Text(UNCLEAR.into()));
    }
    let mut sections = vec![PaperSection { id: "compared", title: "Compared".into(), parts }];
    if courses.iter().any(|course| course.readings.len() > 1) {
        let label = "Memory in use at each boundary, in runs of A and of B";
        let parts = vec![PaperPart::Traces(label.into(), courses)];
        sections.push(PaperSection {
            id: "over-time",
            title: "Memory in use at each boundary".into(),
            parts,
        });
    }
    let count = |runs: &[String]| runs.len().to_string();
    caulk_html::paper(&Paper {
        title: "diff".into(),
        command: String::new(),
        answer: answer(difference),
        figures: vec![
            Row::new("Runs of A", count(&difference.a)),
            Row::new("Runs of B", count(&difference.b)),
            Row::new("Judged per", if difference.unit.is_empty() { "–" } else { difference.unit }),
        ],
        about: vec![Row::new("A", &names[0]), Row::new("B", &names[1])],
        sections,
    })
}

fn answer(difference: &Difference) -> PageAnswer {
    let growth = difference.rows.iter().find(|row| row.kind == "growth");
    PageAnswer {
        mood: growth.map_or(Mood::Warn, |row| match row.trend {
            Trend::Same => Mood::Plain,
            Trend::Unclear => Mood::Warn,
            trend => mood(trend),
        }),
        ended: None,
        brief: words::sentence_case(&growth_change(difference)).trim_end_matches('.').to_owned(),
        sentence: sentence(difference),
        details: vec![NOTE.into()],
    }
}

fn side_row(row: &RowChange) -> SideRow {
    let side = |side: Option<caulk_diff::MedianOfRepeats>| {
        side.map(|side| SideFigure {
            median: side.median,
            interval: side.interval,
            text: measured(Some(side), &row.unit),
        })
    };
    SideRow {
        label: label(row),
        sides: [side(row.a), side(row.b)],
        change: change(row),
        mood: mood(row.trend),
    }
}

/// Less of anything that is compared is better.
const fn mood(trend: Trend) -> Mood {
    match trend {
        Trend::Higher => Mood::Bad,
        Trend::Lower => Mood::Good,
        Trend::Same | Trend::Unclear => Mood::Plain,
    }
}
