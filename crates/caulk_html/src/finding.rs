//! Findings: source, path, growth, change.

use maud::{Markup, html};

use crate::input::{Excerpt, FindingCard, Hunk, Row};
use crate::path;
use crate::room::Room;
use crate::words;

/// Lines of an excerpt and of a hunk.
const LINES: usize = 14;
/// Characters of a line of source.
const CODE: usize = 240;
/// Excerpts, hunks, steps of a flow, pieces of evidence, twins.
const MANY: usize = 8;
/// Findings that are open at first.
const OPEN: usize = 3;

/// All findings: the first in full, the others on a line each.
pub(crate) fn findings(cards: &[FindingCard], room: Room) -> Markup {
    let full = room.findings.min(cards.len());
    let rest = &cards[full..];
    html! {
        @for (index, card) in cards[..full].iter().enumerate() {
            @if index < OPEN { (finding(card, index + 1, room)) } @else {
                details.more {
                    summary { (badge(card)) " " (words::prose(&card.message, 160)) }
                    (finding(card, index + 1, room))
                }
            }
        }
        @if !rest.is_empty() {
            ul.more-findings { @for card in rest.iter().take(room.listed) {
                li { (badge(card)) " " (words::prose(&card.message, 160)) " "
                    @if let Some(excerpt) = card.excerpts.first() { code { (words::plain(&excerpt.place, 120)) } }
                }
            } }
            @if rest.len() > room.listed { p.caption { (rest.len() - room.listed) " more findings are left out." } }
        }
    }
}

fn badge(card: &FindingCard) -> Markup {
    html! { span.badge.(card.severity) { (card.severity) } }
}

fn finding(card: &FindingCard, number: usize, room: Room) -> Markup {
    let id = format!("finding-{number}");
    html! {
        article.finding.(card.severity) aria-labelledby=(id) {
            header {
                p.labels { (badge(card)) " " span.badge.quiet { (card.confidence) } " " code.class { (card.class) } }
                h3 id=(id) { (words::prose(&card.message, room.text)) }
            }
            @for excerpt in card.excerpts.iter().take(MANY) { (source(excerpt)) }
            (path::picture(card))
            @if !card.holder.is_empty() && !card.path.is_empty() {
                p.holder { "held by " code { (words::plain(&card.holder, 200)) } }
            }
            (rows(&card.rows, room))
            @if !card.fix.is_empty() {
                div.fix {
                    h4 { "Change" }
                    p { (words::prose(&card.fix, room.text)) }
                    @for hunk in card.hunks.iter().take(MANY) { (diff(hunk)) }
                    @if card.is_unsafe && !card.hunks.is_empty() {
                        p.caption { "It may change behavior: read it before you apply it." }
                    }
                }
            }
            @if !card.flow.is_empty() || !card.evidence.is_empty() || !card.twins.is_empty() {
                details {
                    summary { "Flow and evidence" }
                    @if !card.flow.is_empty() { h4 { "Flow" } (rows(&card.flow, room)) }
                    @if !card.evidence.is_empty() { h4 { "Evidence" } (rows(&card.evidence, room)) }
                    @if !card.twins.is_empty() {
                        h4 { "Also at" }
                        ul { @for twin in card.twins.iter().take(MANY) { li { code { (words::plain(twin, CODE)) } } } }
                    }
                }
            }
        }
    }
}

fn rows(rows: &[Row], room: Room) -> Markup {
    html! {
        dl { @for row in rows.iter().take(2 * MANY) {
            dt { (words::plain(&row.label, 80)) }
            dd { (words::prose(&row.text, room.text)) }
        } }
    }
}

fn source(excerpt: &Excerpt) -> Markup {
    let indent = excerpt.lines.iter().filter(|line| !line.text.trim().is_empty());
    let indent = indent.map(|line| line.text.len() - line.text.trim_start().len()).min().unwrap_or(0);
    html! {
        figure.source {
            figcaption { code { (words::plain(&excerpt.place, 200)) }
                @if !excerpt.role.is_empty() { " " span.role { (excerpt.role) } } }
            @if !excerpt.lines.is_empty() {
                pre tabindex="0" { @for line in excerpt.lines.iter().take(LINES) {
                    @let text = words::plain(line.text.get(indent..).unwrap_or(&line.text), CODE);
                    span.line.marked[line.marked] {
                        span.line-number { (format!("{:>4} ", line.number)) }
                        @if line.marked { mark { (text) } } @else { (text) }
                        "\n"
                    }
                } }
            }
        }
    }
}

fn diff(hunk: &Hunk) -> Markup {
    let both = hunk.removed.iter().chain(&hunk.added).filter(|text| !text.trim().is_empty());
    let indent = both.map(|text| text.len() - text.trim_start().len()).min().unwrap_or(0);
    let lines = hunk.removed.iter().map(|text| ("del", '-', text));
    let lines = lines.chain(hunk.added.iter().map(|text| ("ins", '+', text)));
    let more = (hunk.removed.len() + hunk.added.len()).saturating_sub(2 * LINES);
    html! {
        figure.source.diff {
            figcaption { code { (words::plain(&hunk.file, 160)) ":" (hunk.line) } }
            pre tabindex="0" {
                @for (class, sign, text) in lines.take(2 * LINES) {
                    span.line.(class) { (sign) " " (words::plain(text.get(indent..).unwrap_or(text), CODE)) "\n" }
                }
            }
            @if more > 0 { p.caption { (more) " more lines" } }
        }
    }
}
