//! The picture of stacks, complete without a script. Frames of libraries below the user's last own frame are closed at first.

use caulk_core::{Bytes, StackUse};
use maud::{Markup, html};

use crate::chart::percent;
use crate::flame::tree::Node;
use crate::room::Room;
use crate::words;

/// Height of a frame with its gap, in pixels.
const ROW: usize = 22;
/// Frames of libraries that are open below own frames.
const OPEN: usize = 1;
/// Characters of a name and of a place.
const NAME: usize = 80;
const PLACE: usize = 160;

/// One frame, placed.
struct Frame {
    parent: Option<usize>,
    depth: usize,
    left: f64,
    live: f64,
    growth: f64,
    class: &'static str,
    name: String,
    place: String,
    /// It is hidden until its caller is opened.
    hidden: bool,
    /// It has frames that are hidden.
    closed: bool,
}

/// The flame graph with its tools; a sentence where the heap was not sampled.
pub(crate) fn flame(stacks: &[StackUse], (per, factor): (&str, f64), room: Room) -> Markup {
    if stacks.is_empty() {
        return html! { p { "The heap of this run was not sampled." } };
    }
    let mut root = Node::of(stacks);
    root.thin_out(room.frames);
    let whole = root.live.bytes.max(1.0);
    let mut frames = Vec::new();
    let all = Frame::of(&root, None, "all memory that was sampled", 0);
    frames.push(all);
    lay_out(&root, Place { parent: 0, depth: 1, left: 0.0, libraries: 0 }, &mut frames);
    let rows = frames.iter().filter(|frame| !frame.hidden).map(|frame| frame.depth + 1).max().unwrap_or(1);
    let describe = |frame: &Frame| {
        let growth = frame.growth * factor;
        let growth =
            if growth >= 1.0 { format!(", {} per {per}", Bytes::signed(growth)) } else { String::new() };
        format!("{}: {} live{growth} ({})", frame.name, words::bytes(frame.live), frame.place)
    };
    html! {
        div.flame-tools {
            div role="group" aria-label="What is drawn" {
                button type="button" data-measure="live" aria-pressed="true" { "live" }
                button type="button" data-measure="growth" aria-pressed="false" { "growing per " (per) }
            }
            button type="button" data-flame="libraries" aria-pressed="false" { "open libraries" }
            button type="button" data-flame="whole" disabled { "whole picture" }
            label { "Search " input type="search" data-flame="search"; }
            output data-flame="found" aria-live="polite" {}
        }
        p.flame-detail data-flame="detail" { "Choose a frame to go into it. Frames of libraries open with the frame that calls them." }
        div.scroll tabindex="0" role="region" aria-label="Flame graph of the heap" {
            svg.flame width="100%" height=(rows * ROW) role="group" aria-label="Flame graph: frames are as wide as the memory below them" {
                @for (index, frame) in frames.iter().enumerate() {
                    svg.frame.(frame.class) .closed[frame.closed] .hidden[frame.hidden] role="button"
                        tabindex=(if index == 0 { "0" } else { "-1" }) aria-label=(describe(frame))
                        x=(percent(100.0 * frame.left / whole)) y=(frame.depth * ROW) height=(ROW - 1)
                        width=(percent(100.0 * frame.live / whole)) data-live=(format!("{:.0}", frame.live))
                        data-growth=(format!("{:.0}", frame.growth)) data-parent=[frame.parent] {
                        rect width="100%" height="100%" {}
                        text x="5" y="15" { (frame.name) }
                    }
                }
            }
        }
        p.caption { span.key.own-key {} " Your code " span.key.library-key {} " Libraries " span.key.import-key {} " Imports, each with all that it runs" }
    }
}

/// Where the frames below a frame lie.
#[derive(Clone, Copy)]
struct Place {
    parent: usize,
    depth: usize,
    left: f64,
    /// Frames of libraries since the last own one.
    libraries: usize,
}

impl Frame {
    fn of(node: &Node, parent: Option<usize>, name: &str, depth: usize) -> Self {
        Self {
            parent,
            depth,
            left: 0.0,
            live: node.live.bytes,
            growth: node.growth,
            class: "other",
            name: name.into(),
            place: name.into(),
            hidden: false,
            closed: false,
        }
    }
}

fn lay_out(node: &Node, place: Place, frames: &mut Vec<Frame>) {
    let mut left = place.left;
    for (label, child) in node.ordered() {
        let libraries = if label.is_library() { place.libraries + 1 } else { 0 };
        let number = frames.len();
        let hidden = frames[place.parent].hidden || label.is_library() && place.libraries >= OPEN;
        if hidden && !frames[place.parent].hidden {
            frames[place.parent].closed = true;
        }
        frames.push(Frame {
            left,
            class: label.class(),
            place: words::plain(&label.place(), PLACE).into_owned(),
            hidden,
            ..Frame::of(child, Some(place.parent), &words::plain(&label.name(), NAME), place.depth)
        });
        lay_out(child, Place { parent: number, depth: place.depth + 1, left, libraries }, frames);
        left += child.live.bytes;
    }
}
