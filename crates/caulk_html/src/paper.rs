//! Smaller pages in the frame of the report: a checklist, a comparison, a repair. They are made of sections with parts.

use maud::{Markup, html};

use crate::finding;
use crate::frame::{self, Frame, Section};
use crate::input::{FindingCard, Mood, PageAnswer, Row};
use crate::room::Room;
use crate::sides::{self, SideRow};
use crate::tables::left_out;
use crate::traces::{self, Curve};
use crate::words;

/// Lines of a patch for each row of a table.
const LINES_PER_ROW: usize = 8;
/// Characters of a line of a patch.
const CODE: usize = 240;

/// One cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// How good or bad it is; plain if it is neither.
    pub mood: Mood,
    /// Further lines below it.
    pub below: Vec<String>,
}

impl Cell {
    /// A cell of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The same with a color and a sign.
    #[must_use]
    pub fn with(self, mood: Mood) -> Self {
        Self { mood, ..self }
    }

    /// The same with lines below.
    #[must_use]
    pub fn over(self, below: Vec<String>) -> Self {
        Self { below, ..self }
    }
}

/// What a section consists of.
#[derive(Debug, Clone, PartialEq)]
pub enum PaperPart {
    /// A paragraph.
    Text(String),
    /// A table: its name, its heads, its rows. The first cell of a row is its head.
    Table(&'static str, &'static [&'static str], Vec<Vec<Cell>>),
    /// Findings of a run.
    Findings(Vec<FindingCard>),
    /// Quantities of two sides, as a picture and as text.
    Sides([String; 2], Vec<SideRow>),
    /// Readings over time, one above the other in one picture.
    Traces(String, Vec<Curve>),
    /// A patch as `diff -u` writes it.
    Patch(String),
}

/// A section: its anchor, its heading, its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperSection {
    /// Anchor.
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// Parts, in order.
    pub parts: Vec<PaperPart>,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paper {
    /// What it is about.
    pub title: String,
    /// The command, secrets redacted.
    pub command: String,
    /// The answer.
    pub answer: PageAnswer,
    /// Key figures, the most important first.
    pub figures: Vec<Row>,
    /// About the run or the runs.
    pub about: Vec<Row>,
    /// Its sections.
    pub sections: Vec<PaperSection>,
}

/// The page as text, of at most [`crate::MOST_BYTES`].
pub fn paper(paper: &Paper) -> String {
    let frame = Frame {
        title: &paper.title,
        command: &paper.command,
        banners: &[],
        answer: &paper.answer,
        figures: &paper.figures,
        about: &paper.about,
    };
    let section = |section: &PaperSection, room: Room| {
        let content = html! { @for each in &section.parts { (part(each, room)) } };
        Section::new(section.id, &section.title, content)
    };
    frame.fitted(|room| paper.sections.iter().map(|each| section(each, room)).collect())
}

fn part(part: &PaperPart, room: Room) -> Markup {
    match part {
        PaperPart::Text(text) => html! { p { (words::prose(text, room.text)) } },
        PaperPart::Table(name, heads, rows) => table(name, heads, rows, room),
        PaperPart::Findings(cards) => finding::findings(cards, room),
        PaperPart::Sides(names, rows) => sides::sides(names, rows, room),
        PaperPart::Traces(label, all) => traces::traces(label, all),
        PaperPart::Patch(text) => patch(text, room),
    }
}

fn table(name: &str, heads: &[&str], rows: &[Vec<Cell>], room: Room) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Table: " (name) } { table.sortable {
            thead { tr { @for head in heads { th scope="col" { (head) } } } }
            tbody { @for row in rows.iter().take(room.rows) { tr {
                @for (index, each) in row.iter().enumerate() {
                    @if index == 0 { th scope="row" { (cell(each, room)) } } @else { td { (cell(each, room)) } }
                }
            } } }
        } }
        (left_out(rows.len(), room.rows, "rows"))
    }
}

fn cell(cell: &Cell, room: Room) -> Markup {
    html! {
        @if cell.mood == Mood::Plain { (words::prose(&cell.text, room.text)) } @else {
            span.result.(frame::mood(cell.mood)) {
                span.sign aria-hidden="true" { (frame::sign(cell.mood)) } " " (words::prose(&cell.text, room.text))
            }
        }
        @for line in cell.below.iter().take(room.rows) { p.caption { (words::prose(line, room.text)) } }
    }
}

fn patch(text: &str, room: Room) -> Markup {
    let kind = |line: &str| match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'@', b'@', ..] => "line-number",
        [b'+', ..] => "ins",
        [b'-', ..] => "del",
        _ => "",
    };
    let most = room.rows * LINES_PER_ROW;
    html! {
        figure.source.diff { pre tabindex="0" {
            @for line in text.lines().take(most) {
                span class={ "line " (kind(line)) } { (words::plain(line, CODE)) "\n" }
            }
        } }
        (left_out(text.lines().count(), most, "lines"))
    }
}
