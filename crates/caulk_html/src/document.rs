//! The page of a run.

use maud::{Markup, html};

use crate::finding;
use crate::flame;
use crate::forecast;
use crate::frame::{Frame, Section};
use crate::input::PageInput;
use crate::marks::Marks;
use crate::room::Room;
use crate::series::Curves;
use crate::words;
use crate::{chart, sparkline, tables};

/// The page as text, of at most [`crate::MOST_BYTES`].
pub fn html(input: &PageInput<'_>) -> String {
    let curves = Curves::of(input.recording);
    let marks = Marks::of(input.recording, &curves);
    let frame = Frame {
        title: &input.title,
        command: &input.command,
        banners: &input.banners,
        answer: &input.answer,
        figures: &input.figures,
        about: &input.about,
    };
    frame.fitted(|room| sections(input, &curves, &marks, room))
}

fn sections(input: &PageInput<'_>, curves: &Curves, marks: &Marks, room: Room) -> Vec<Section> {
    let section = Section::new;
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
