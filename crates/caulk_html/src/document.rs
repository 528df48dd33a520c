//! The page from its head to its end.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::finding;
use crate::flame;
use crate::forecast;
use crate::input::{Mood, PageAnswer, PageInput, Row};
use crate::marks::Marks;
use crate::policy;
use crate::room::{MOST_BYTES, Room};
use crate::series::Curves;
use crate::words;
use crate::{chart, sparkline, tables};

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// The page as text, of at most [`MOST_BYTES`].
pub fn html(input: &PageInput<'_>) -> String {
    let curves = Curves::of(input.recording);
    let marks = Marks::of(input.recording, &curves);
    let mut page = String::new();
    for room in Room::sizes() {
        page = document(input, &curves, &marks, room).into_string();
        if page.len() <= MOST_BYTES {
            break;
        }
    }
    page
}

/// A part of the page: its anchor, its heading, its content.
struct Section {
    id: &'static str,
    title: String,
    content: Markup,
}

fn sections(input: &PageInput<'_>, curves: &Curves, marks: &Marks, room: Room) -> Vec<Section> {
    let section = |id, title: &str, content| Section { id, title: title.into(), content };
    let mut all = Vec::new();
    if !input.findings.is_empty() {
        let title = match input.findings.len() {
            1 => "1 finding".to_owned(),
            many => format!("{many} findings"),
        };
        all.push(section("findings", &title, finding::findings(&input.findings, room)));
    }
    if !curves.host.is_empty() {
        all.push(section("over-time", "Memory over time", chart::host(input, curves, marks, room)));
    }
    if let Some(forecast) = &input.forecast {
        all.push(section("forecast", "Forecast", forecast::forecast(forecast, input.recording, curves)));
    }
    if !curves.gpus.is_empty() || !input.gpus.is_empty() {
        let content = html! {
            @if !curves.gpus.is_empty() { (chart::gpus(curves, marks, room)) }
            @if !input.gpus.is_empty() { (tables::gpus(input.gpus, room)) }
        };
        all.push(section("gpus", "GPUs", content));
    }
    all.push(section("heap", "Heap by stack", flame::flame(input.stacks, input.per, room)));
    if !input.lines.is_empty() {
        all.push(section("lines", "Heap by line", tables::lines(input, room)));
    }
    let changes: Vec<_> = input
        .changes
        .iter()
        .filter(|one| !one.types.is_empty() || !one.containers.is_empty())
        .cloned()
        .collect();
    if !changes.is_empty() {
        all.push(section("census", "Census", tables::census(&changes, room)));
    }
    if !input.recording.processes.is_empty() {
        all.push(section(
            "processes",
            "Processes, workers, ranks",
            sparkline::processes(input.recording, curves, room),
        ));
    }
    if !input.verdicts.is_empty() {
        all.push(section("verdicts", "Verdicts", tables::verdicts(&input.verdicts, room)));
    }
    if !input.notes.is_empty() || !input.lives.is_empty() {
        all.push(section("notes", "Notes", notes(input, room)));
    }
    all
}

fn document(input: &PageInput<'_>, curves: &Curves, marks: &Marks, room: Room) -> Markup {
    let sections = sections(input, curves, marks, room);
    let title = words::plain(&input.title, 120);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy::policy(STYLE, SCRIPT));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { "caulk: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the report" }
                header.top {
                    p.brand { "caulk" }
                    h1 { (title) }
                    @if !input.command.is_empty() { p.command { code { (words::plain(&input.command, room.text)) } } }
                }
                nav aria-label="Parts of the report" { ul {
                    @for section in &sections { li { a href={ "#" (section.id) } { (section.title) } } }
                } }
                main id="content" {
                    @for banner in input.banners.iter().take(8) { p.banner role="note" { (words::prose(banner, room.text)) } }
                    (answer(&input.answer, &input.figures, room))
                    @for section in &sections {
                        section id=(section.id) aria-labelledby={ (section.id) "-title" } {
                            h2 id={ (section.id) "-title" } { (section.title) }
                            (section.content)
                        }
                    }
                }
                footer {
                    dl.about { @for row in &input.about { div { dt { (words::plain(&row.label, 80)) } dd { (words::prose(&row.text, room.text)) } } } }
                    p { "This page needs no network. It was written by caulk." }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

const fn mood(mood: Mood) -> &'static str {
    match mood {
        Mood::Bad => "bad",
        Mood::Warn => "warn",
        Mood::Good => "good",
        Mood::Plain => "plain",
    }
}

/// The sign beside the color, for those who do not see it.
const fn sign(mood: Mood) -> &'static str {
    match mood {
        Mood::Bad => "▲",
        Mood::Warn => "◆",
        Mood::Good => "●",
        Mood::Plain => "",
    }
}

fn answer(answer: &PageAnswer, figures: &[Row], room: Room) -> Markup {
    html! {
        section.answer.(mood(answer.mood)) aria-label="Answer" {
            @if let Some((tone, text)) = &answer.ended { p.ended.(mood(*tone)) { (words::prose(text, room.text)) } }
            p.brief { span.sign aria-hidden="true" { (sign(answer.mood)) } " " (words::plain(&answer.brief, 120)) }
            p.sentence { (words::prose(&answer.sentence, room.text)) }
            @for detail in &answer.details { p.detail { (words::prose(detail, room.text)) } }
            @if !figures.is_empty() {
                dl.figures { @for figure in figures.iter().take(8) { div {
                    dt { (figure.label) } dd { (words::plain(&figure.text, 80)) }
                } } }
            }
        }
    }
}

fn notes(input: &PageInput<'_>, room: Room) -> Markup {
    html! {
        @if !input.lives.is_empty() {
            h3 { "Lives" }
            ol { @for life in input.lives.iter().take(room.rows) { li { (words::prose(life, room.text)) } } }
        }
        @if !input.notes.is_empty() {
            ul.notes { @for note in input.notes.iter().take(room.notes) { li { (words::prose(note, room.text)) } } }
            (tables::left_out(input.notes.len(), room.notes, "notes"))
        }
    }
}
