//! A flame graph of the heap as one page that needs nothing else: stacks from the top down, as wide as the bytes that
//! they hold.
//!
//! What lives is drawn here, without a script; `flame.js` turns to what grows, goes into a frame, and searches.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use caulk_core::{Bytes, ProcessRef, Sampled, StackFrame, StackUse, VerdictUnit};

use crate::page::harmless;
use crate::words::{self, Per};

const STYLE: &str = include_str!("flame/flame.css");
const SCRIPT: &str = include_str!("flame/flame.js");

/// Height of a frame with its gap, in pixels.
const ROW: usize = 20;
/// Part of the whole, of what lives and of what grows, below which a frame would be no wider than a pixel.
const THIN: f64 = 0.001;

/// One frame with everything that was called from it.
#[derive(Default)]
struct Node<'a> {
    live: Sampled,
    growth: f64,
    children: BTreeMap<Label<'a>, Node<'a>>,
}

/// What a frame is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Label<'a> {
    All,
    Frame(&'a StackFrame),
    Process(&'a ProcessRef),
    Cut,
    Rest,
    Native,
    Threads,
}

impl Label<'_> {
    fn name(&self) -> String {
        match self {
            Self::Frame(frame) => format!("{} {}:{}", frame.function, file_name(&frame.file), frame.line),
            Self::Process(process) => words::owner(process).unwrap_or_else(|| "main process".into()),
            Self::All => "all".into(),
            Self::Cut => "… frames further out".into(),
            Self::Rest => "stacks that hold little".into(),
            Self::Native => "no Python on the stack".into(),
            Self::Threads => "threads that work for it".into(),
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Frame(frame) => format!("{}:{} in {}", frame.file, frame.line, frame.function),
            Self::All => "all memory that was sampled".into(),
            _ => self.name(),
        }
    }

    fn class(&self) -> &'static str {
        match self {
            Self::Frame(frame) if frame.own => "own",
            Self::Frame(_) => "library",
            _ => "other",
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl<'a> Node<'a> {
    fn add(&mut self, path: impl Iterator<Item = Label<'a>>, stack: &StackUse) {
        let mut node = self;
        node.take(stack);
        for label in path {
            node = node.children.entry(label).or_default();
            node.take(stack);
        }
    }

    fn take(&mut self, stack: &StackUse) {
        self.live = self.live + stack.live;
        self.growth += stack.growth;
    }

    /// Leaves out what nobody could see; the room that it takes stays.
    fn thin_out(&mut self, live: f64, growth: f64) {
        self.children.retain(|_, child| child.live.bytes >= live || (growth > 0.0 && child.growth >= growth));
        self.children.values_mut().for_each(|child| child.thin_out(live, growth));
    }

    fn depth(&self) -> usize {
        1 + self.children.values().map(Self::depth).max().unwrap_or(0)
    }
}

fn path(stack: &StackUse) -> Vec<Label<'_>> {
    let mut path = vec![Label::Process(&stack.process)];
    if stack.rest {
        path.push(Label::Rest);
    } else if stack.frames.is_empty() {
        path.push(Label::Native);
    } else if stack.truncated {
        path.push(Label::Cut);
    }
    path.extend(stack.frames.iter().map(Label::Frame));
    path.extend((stack.borrowed && !stack.frames.is_empty()).then_some(Label::Threads));
    path
}

/// The page: the heap of the run called `title`, by stack.
pub fn flame_html(stacks: &[StackUse], title: &str) -> String {
    let unit = stacks.first().map_or(VerdictUnit::Epoch, |stack| stack.unit);
    let mut root = Node::default();
    for stack in stacks {
        root.add(path(stack).into_iter(), stack);
    }
    root.thin_out(THIN * root.live.bytes, THIN * root.growth);
    let mut drawing = Drawing { out: String::new(), count: 0, per: Per::of(unit), whole: root.live.bytes };
    drawing.frame(&root, &Label::All, Spot { parent: None, depth: 0, left: 0.0 });
    let title = escape(title);
    let height = root.depth() * ROW;
    let per = drawing.per.name;
    let empty = if stacks.is_empty() { "<p>The heap of this run was not sampled.</p>" } else { "" };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Heap of {title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>Heap of {title}</h1>\n\
         <div role=\"group\" aria-label=\"What is drawn\">\n\
         <button id=\"live\" aria-pressed=\"true\">live</button>\n\
         <button id=\"growth\" aria-pressed=\"false\">growing per {per}</button>\n</div>\n\
         <input id=\"search\" type=\"search\" placeholder=\"Search files and functions\" aria-label=\"Search\">\n\
         <button id=\"whole\" disabled>whole picture</button>\n<output id=\"found\"></output>\n</header>\n{empty}\
         <p id=\"detail\">Click a frame to go into it.</p>\n\
         <svg id=\"graph\" width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"Flame graph of the heap\">\n\
         {}</svg>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        drawing.out
    )
}

/// The frames as SVG, each with what the script needs to place it anew.
struct Drawing {
    out: String,
    count: usize,
    per: Per,
    whole: f64,
}

/// Where a frame lies.
#[derive(Clone, Copy)]
struct Spot {
    /// Number of the frame that called it.
    parent: Option<usize>,
    /// Frames above it.
    depth: usize,
    /// Bytes to the left of it.
    left: f64,
}

impl Drawing {
    fn frame(&mut self, node: &Node<'_>, label: &Label<'_>, spot: Spot) {
        let number = self.count;
        self.count += 1;
        let share = |bytes: f64| if self.whole > 0.0 { 100.0 * bytes / self.whole } else { 0.0 };
        let (x, width) = (share(spot.left), share(node.live.bytes));
        let parent = spot.parent.map_or_else(String::new, |parent| format!(" data-parent=\"{parent}\""));
        // Writing to a string cannot fail.
        _ = writeln!(
            self.out,
            "<svg class=\"frame {}\" x=\"{x:.4}%\" y=\"{}\" width=\"{width:.4}%\" height=\"{}\" tabindex=\"0\" \
             data-live=\"{:.0}\" data-growth=\"{:.0}\"{parent}><title>{}</title>\
             <rect width=\"100%\" height=\"100%\"/><text x=\"4\" y=\"14\">{}</text></svg>",
            label.class(),
            spot.depth * ROW,
            ROW - 1,
            node.live.bytes,
            node.growth,
            escape(&self.describe(node, &label.place())),
            escape(&label.name()),
        );
        let mut left = spot.left;
        for (label, child) in &node.children {
            self.frame(child, label, Spot { parent: Some(number), depth: spot.depth + 1, left });
            left += child.live.bytes;
        }
    }

    fn describe(&self, node: &Node<'_>, place: &str) -> String {
        let live = Bytes(node.live.bytes as u64);
        let margin = match node.live.margin() {
            margin if margin >= 1.0 => format!(" ± {}", Bytes(margin as u64)),
            _ => String::new(),
        };
        let growth = match node.growth * self.per.factor {
            growth if growth >= 1.0 => format!(", {} per {}", Bytes::signed(growth), self.per.name),
            _ => String::new(),
        };
        format!("{place}: {live}{margin} live{growth}")
    }
}

/// Text that means nothing to a browser but itself.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str], bytes: f64, growth: f64) -> StackUse {
        let frame = |(line, function): (u32, &&str)| StackFrame {
            file: "/job/train.py".into(),
            line,
            function: (*function).into(),
            own: true,
        };
        StackUse {
            process: ProcessRef::main(),
            frames: (1..).zip(functions).map(frame).collect(),
            truncated: false,
            rest: false,
            borrowed: false,
            live: Sampled { bytes, deviation: 10.0 },
            growth,
            allocated: 0.0,
            unit: VerdictUnit::Epoch,
        }
    }

    /// `(name, x, width, growth)` of every frame.
    fn frames(html: &str) -> Vec<(String, String, String, String)> {
        let part = |text: &str, before: &str, after: &str| {
            let start = text.find(before).map(|at| at + before.len());
            start.and_then(|start| Some(text[start..].split(after).next()?.to_owned())).unwrap_or_default()
        };
        let frame = |line: &str| {
            let name = part(line, "y=\"14\">", "</text>");
            let (x, width) = (part(line, " x=\"", "%\""), part(line, " width=\"", "%\""));
            (name, x, width, part(line, "data-growth=\"", "\""))
        };
        html.lines().filter(|line| line.starts_with("<svg class=\"frame")).map(frame).collect()
    }

    #[test]
    fn frames_are_as_wide_as_what_they_hold_and_lie_in_their_callers() {
        let stacks = [
            stack(&["main", "load"], 300.0, 20.0),
            stack(&["main", "step"], 100.0, 0.0),
            stack(&["other"], 100.0, 0.0),
        ];
        let frames = frames(&flame_html(&stacks, "a run"));
        let shown: Vec<(&str, &str, &str, &str)> =
            frames.iter().map(|(n, x, w, g)| (n.as_str(), x.as_str(), w.as_str(), g.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("all", "0.0000", "100.0000", "20"),
                ("main process", "0.0000", "100.0000", "20"),
                ("main train.py:1", "0.0000", "80.0000", "20"),
                ("load train.py:2", "0.0000", "60.0000", "20"),
                ("step train.py:2", "60.0000", "20.0000", "0"),
                ("other train.py:1", "80.0000", "20.0000", "0"),
            ]
        );
    }

    #[test]
    fn frames_thinner_than_a_pixel_are_left_out_unless_they_grow() {
        let stacks =
            [stack(&["large"], 1e6, 0.0), stack(&["small"], 10.0, 0.0), stack(&["growing"], 10.0, 1.0)];
        let frames = frames(&flame_html(&stacks, "a run"));
        let names: Vec<&str> = frames.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["all", "main process", "growing train.py:1", "large train.py:1"]);
    }

    #[test]
    fn names_cannot_become_markup() {
        let html = flame_html(&[stack(&["</script><b>&\"\u{202e}"], 1.0, 0.0)], "<i>");
        assert!(html.contains("&lt;/script&gt;&lt;b&gt;&amp;&quot;\u{FFFD}"), "{html}");
        assert!(!html.contains("<b>") && !html.contains("<i>"), "{html}");
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let html = flame_html(&[], "a run");
        for word in ["http:", "https:", "src=", "href=", "@import", "url("] {
            assert!(!html.contains(word), "{word}");
        }
        assert!(html.contains("was not sampled"));
    }

    #[test]
    fn what_no_python_frame_made_and_what_was_not_told_have_names() {
        let rest = StackUse { rest: true, ..stack(&[], 5.0, 0.0) };
        let cut = StackUse { truncated: true, ..stack(&["deep"], 1.0, 0.0) };
        let lent = StackUse { borrowed: true, ..stack(&["backward"], 2.0, 0.0) };
        let frames = frames(&flame_html(&[stack(&[], 9.0, 0.0), rest, cut, lent], "a run"));
        let names: Vec<&str> = frames.iter().map(|(name, ..)| name.as_str()).collect();
        for name in [
            "no Python on the stack",
            "stacks that hold little",
            "… frames further out",
            "threads that work for it",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
    }
}
