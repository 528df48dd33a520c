//! The frame of every page: head with style, script and policy, the answer, the sections, the footer.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::input::{Mood, PageAnswer, Row};
use crate::policy;
use crate::room::{MOST_BYTES, Room};
use crate::words;

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// A part of the page: its anchor, its heading, its content.
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) content: Markup,
}

impl Section {
    pub(crate) fn new(id: &str, title: &str, content: Markup) -> Self {
        Self { id: id.into(), title: title.into(), content }
    }
}

/// Everything around the sections.
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) command: &'a str,
    pub(crate) banners: &'a [String],
    pub(crate) answer: &'a PageAnswer,
    pub(crate) figures: &'a [Row],
    pub(crate) about: &'a [Row],
}

impl Frame<'_> {
    /// The page as text, of at most [`MOST_BYTES`]: with less of everything until it fits.
    pub(crate) fn fitted(&self, sections: impl Fn(Room) -> Vec<Section>) -> String {
        let mut page = String::new();
        for room in Room::sizes() {
            page = self.page(&sections(room), room).into_string();
            if page.len() <= MOST_BYTES {
                break;
            }
        }
        page
    }

    fn page(&self, sections: &[Section], room: Room) -> Markup {
        let title = words::plain(self.title, 120);
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
                        @if !self.command.is_empty() { p.command { code { (words::plain(self.command, room.text)) } } }
                    }
                    nav aria-label="Parts of the report" { ul {
                        @for section in sections { li { a href={ "#" (section.id) } { (section.title) } } }
                    } }
                    main id="content" {
                        @for banner in self.banners.iter().take(8) { p.banner role="note" { (words::prose(banner, room.text)) } }
                        (answer(self.answer, self.figures, room))
                        @for section in sections {
                            section id=(section.id) aria-labelledby={ (section.id) "-title" } {
                                h2 id={ (section.id) "-title" } { (section.title) }
                                (section.content)
                            }
                        }
                    }
                    footer {
                        dl.about { @for row in self.about { div { dt { (words::plain(&row.label, 80)) } dd { (words::prose(&row.text, room.text)) } } } }
                        p { "This page needs no network. It was written by caulk." }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    }
}

/// The class of a statement.
pub(crate) const fn mood(mood: Mood) -> &'static str {
    match mood {
        Mood::Bad => "bad",
        Mood::Warn => "warn",
        Mood::Good => "good",
        Mood::Plain => "plain",
    }
}

/// The sign beside the color, for those who do not see it.
pub(crate) const fn sign(mood: Mood) -> &'static str {
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
            @for detail in answer.details.iter().take(8) { p.detail { (words::prose(detail, room.text)) } }
            @if !figures.is_empty() {
                dl.figures { @for figure in figures.iter().take(8) { div {
                    dt { (figure.label) } dd { (words::plain(&figure.text, 80)) }
                } } }
            }
        }
    }
}
