//! Something that grows, in words: the message, what shows it, what it pins, what to change.

use std::fmt::Write as _;

use caulk_core::wire::{ContainerKind, Contents, Holder, StepKind, Trait};
use caulk_core::{
    Bytes, Evidence, Finding, Group, Growth, LeakClass, Pinned, Scope, Series, Severity, Site, State,
};

use super::item::{Suspect, adding, bytes, counts_bytes};
use crate::class::value_share;
use crate::files::Files;
use crate::growth::counts_often;
use crate::judged::Judged;
use crate::place::{is_at_exit, is_of_drawing, is_of_optimizer, is_of_pyplot};
use crate::process::Process;
use crate::units::{Scale, unit_name};
use crate::{fix, pinned};

/// Resident bytes for one byte of its own from which on the pages are told apart.
const PAGES_TOLD: f64 = 1.1;

/// One line's, or one cause's, as a finding: `cost` is what one byte of it costs the machine.
pub(super) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    scale: Scale,
    group: &[Suspect<'_>],
    cost: f64,
) -> Finding {
    let adding = adding(group);
    let first = adding[0];
    let own = bytes(group);
    let bytes = own * cost;
    // What counts bytes has no elements to tell of.
    let counted: &[&Suspect<'_>] = if counts_bytes(first.kind) { &[] } else { &adding };
    let elements = counted.iter().map(|suspect| suspect.rate.elements_per_unit).sum();
    let intervals: Option<Vec<[f64; 2]>> = adding.iter().map(|suspect| suspect.rate.interval).collect();
    let added = |sum: [f64; 2], one: &[f64; 2]| [sum[0] + cost * one[0], sum[1] + cost * one[1]];
    let interval = intervals.map(|intervals| intervals.iter().fold([0.0, 0.0], added));
    let growth = Growth {
        unit: scale.verdict_unit(),
        series: first.series,
        bytes_per_epoch: scale.per_epoch(bytes),
        bytes_per_unit: bytes,
        in_use_per_unit: (bytes > PAGES_TOLD * own).then_some(own),
        elements_per_epoch: scale.per_epoch(elements),
        elements_per_unit: elements,
        interval,
        elements: counted.iter().map(|suspect| suspect.rate.elements).sum(),
    };
    let sites: Vec<Site> = first.located.as_ref().map_or_else(Vec::new, |located| located.sites(files));
    let container = first.container();
    let name = first.located.as_ref().map_or(first.holder.name.as_str(), |located| &located.name);
    let chain = first.located.as_ref().map_or_else(Vec::new, |located| located.chain(files));
    let twins = first.located.as_ref().map_or_else(Vec::new, |located| located.twins(files));
    let all_fill = group.iter().all(|suspect| suspect.units_to_fill().is_some());
    let end = ends(first).filter(|_| all_fill);
    let mut fix = match (beyond_class(first), &end) {
        (Some((_, change)), _) => fix::display(change),
        (None, Some(_)) if first.class.group() != Group::Graph => fix::display(ROOM),
        (None, _) => fix::of_kind(first.class, first.kind, first.contents, first.located.as_ref(), name),
    };
    if let Some(rest) = without_graphs(first, &growth) {
        fix.description = format!("{}; {rest}", fix.description.trim_end_matches('.'));
    }
    Finding {
        class: first.class,
        confidence: first.confidence,
        scope: Scope::Run,
        severity: group.iter().map(|suspect| suspect.severity).max().unwrap_or(Severity::Info),
        message: message(first, &container, adding.len() - 1, &growth, end.as_deref()),
        sites,
        container,
        holder: first.holder.expression.clone(),
        holder_path: path(first.holder, first.kind),
        chain,
        process: process.reference(),
        pinned: pinned(files, process, group),
        evidence: evidence(judged, group, &growth),
        fix: Some(fix),
        twins,
        more_twins: 0,
        growth: Some(growth),
    }
}

/// Share of what a container gains from which on it is told what stays of it without graphs.
const MUCH_STAYS: f64 = 0.25;

/// What goes on growing once a container's elements are stored without their graphs.
fn without_graphs(suspect: &Suspect<'_>, growth: &Growth) -> Option<String> {
    let contents = suspect.contents.filter(|_| suspect.class.group() == Group::Graph)?;
    let share = value_share(contents);
    let stays = suspect.kind != ContainerKind::Graph && share >= MUCH_STAYS;
    stays.then(|| {
        let all = growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit);
        let (rate, unit) = (Bytes::signed(share * all), unit_name(growth.unit));
        format!("the values themselves stay, {rate} per {unit}: keep fewer of them, or less of each, as well")
    })
}

/// Why figures stay that pyplot does not keep, and why one figure grows.
const MORE_FIGURES: &str = "figures are drawn and kept";
const MORE_ARTISTS: &str = "what was drawn on the same Axes before stays, and is drawn again";
/// Why an optimizer that is not made again grows, and what to do about it.
const MORE_PARAMETERS: &str =
    "an optimizer is given other parameters, and keeps its state for each that it ever had";
const FEWER_PARAMETERS: &str = "take out what is not trained any more with its state (`del optimizer.state[parameter]`, and its \
                                group), or make a new optimizer and drop the old one";

/// What to do about functions that are registered to run at exit.
const FEWER_AT_EXIT: &str = "register one function, before the loop, or take it out again (`atexit.unregister(function)`): none of them \
                             runs before the program ends";

/// What to do about something that fills up.
const ROOM: &str = "nothing, where there is room for it; else bound it at less";

/// Where its growth ends.
fn ends(suspect: &Suspect<'_>) -> Option<String> {
    let most = suspect.fills?;
    let bytes = suspect
        .bytes_when_full()
        .map_or_else(String::new, |bytes| format!(" and keeps {}", Bytes(bytes as u64)));
    Some(format!("it fills up, and is full when it has {most}{bytes}"))
}

/// Why it grows, and what to do about it, where the class says something else of others.
fn beyond_class(suspect: &Suspect<'_>) -> Option<(&'static str, &'static str)> {
    let (holder, class) = (suspect.holder, suspect.class);
    // A figure that is made at the line is pyplot's, whoever else keeps it.
    let made_here = || {
        let located = suspect.located.as_ref();
        located.is_some_and(|located| located.source.lines().close_figure_fix(located.spot.line).is_some())
    };
    if is_of_optimizer(holder) {
        Some((MORE_PARAMETERS, FEWER_PARAMETERS))
    } else if is_at_exit(holder) {
        Some((class.summary(), FEWER_AT_EXIT))
    } else if class != LeakClass::FigureNotClosed {
        None
    } else if is_of_drawing(holder) {
        Some((MORE_ARTISTS, fix::PILED_ARTISTS))
    } else if !is_of_pyplot(holder) && !made_here() {
        Some((MORE_FIGURES, fix::KEPT_FIGURES))
    } else {
        None
    }
}

/// `others`: containers that the same line grows.
fn message(
    suspect: &Suspect<'_>,
    container: &str,
    others: usize,
    growth: &Growth,
    end: Option<&str>,
) -> String {
    let unit = unit_name(growth.unit);
    let container =
        if container.is_empty() { "a container held from C".into() } else { format!("`{container}`") };
    let container = match others {
        0 => container,
        others => format!("{container} (in {} places)", others + 1),
    };
    let rate = Bytes::signed(growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit));
    let count = |noun: &str| counted(growth.elements_per_unit, noun);
    let what = match suspect.kind {
        ContainerKind::Graph => {
            format!("the autograd graph behind {container} grows by {} per {unit}", count("node"))
        }
        ContainerKind::Tensor => format!("{container} is replaced by a larger one again and again"),
        ContainerKind::Buffer => format!("{container} gets longer and longer"),
        ContainerKind::LruCache => {
            format!("the cache of {container} grows by {} per {unit}", count("result"))
        }
        ContainerKind::Chain => {
            let link = suspect.link().map_or_else(String::new, |link| format!(" through `{link}`"));
            format!("{container} is the end of a chain{link} that grows by {} per {unit}", count("object"))
        }
        _ if is_of_drawing(suspect.holder) && suspect.located.is_some() => {
            format!("{container} adds {} per {unit} to what is drawn", count("element"))
        }
        _ if is_at_exit(suspect.holder) => {
            format!("what is to run at exit grows by {} per {unit}", count("function"))
        }
        _ => format!("{container} grows by {} per {unit}", count("element")),
    };
    let why = beyond_class(suspect).map(|(why, _)| why).or(end);
    let why = why.unwrap_or_else(|| suspect.class.summary());
    format!("{what}, {rate} per {unit}: {why}")
}

/// `1 element`, `2.5 elements`, `0.02 elements`, with as many digits as the number means.
fn counted(number: f64, noun: &str) -> String {
    let whole = number >= 10.0 || (number - number.round()).abs() < 0.05;
    let digits = match number {
        0.001..0.05 => (-number.log10()).ceil() as usize,
        _ => usize::from(!whole),
    };
    let plural = if (number - 1.0).abs() < 0.05 { "" } else { "s" };
    format!("{number:.digits$} {noun}{plural}")
}

/// The holder path in words, as the JSON contract shows it.
pub(crate) fn path(holder: &Holder, kind: ContainerKind) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    for step in &holder.path {
        let text = match step.kind {
            StepKind::Module => format!("module {}", step.name),
            StepKind::Function => format!("function {}()", step.name),
            StepKind::Local => format!("local {}", step.name),
            StepKind::Attribute => format!("attribute {}", step.name),
            StepKind::ClassAttribute => format!("class attribute {}", step.name),
            StepKind::Global => format!("global {}", step.name),
            StepKind::Key => format!("key [{}]", step.name),
            StepKind::Index => format!("index [{}]", step.name),
            StepKind::Closure => format!("closure variable {}", step.name),
            StepKind::Default => format!("default argument {}", step.name),
            StepKind::Internal => step.name.clone(),
            StepKind::Thread => format!("thread {}", step.name),
            StepKind::Native => "held from C".into(),
        };
        match (path.last_mut(), step.kind) {
            // "function main() local trainer" reads as one step.
            (Some(last), StepKind::Local) if last.starts_with("function ") => {
                last.push(' ');
                last.push_str(&text);
            }
            _ => path.push(text),
        }
    }
    path.push(kind.as_str().to_owned());
    path
}

fn pinned(files: &Files<'_>, process: &Process<'_>, group: &[Suspect<'_>]) -> Option<Pinned> {
    // What elements share is counted once, or not at all.
    let counts = |suspect: &&Suspect<'_>| {
        let open = suspect.holds(&Trait::Borrowed) && suspect.beside.is_some();
        !open && (!suspect.shares || suspect.contents.is_some_and(counts_often))
    };
    let parts = group.iter().filter(counts).filter_map(|suspect| {
        let last = suspect.contents?;
        // There may have been no time for all of its graphs the last time; counted once, they tell more than a sample does.
        let looks = process.contents.get(&last.id).map_or(&[][..], Vec::as_slice);
        let contents = looks.iter().rev().find(|look| look.walked > 0).copied().unwrap_or(last);
        let lengths = process.lengths.get(&contents.id).map_or(&[][..], Vec::as_slice);
        let then = lengths.iter().rev().find(|length| length.boundary <= contents.boundary);
        let elements = suspect.rate.elements;
        let elements_then = then.map_or(elements, |length| length.len);
        Some(pinned::Part { kind: suspect.kind, contents, elements, elements_then })
    });
    pinned::of(files, process, parts)
}

fn evidence(judged: &Judged, group: &[Suspect<'_>], growth: &Growth) -> Vec<Evidence> {
    let first = &group[0];
    let unit = unit_name(growth.unit);
    let mut evidence = Vec::new();
    let mut add = |kind: &str, text: String| evidence.push(Evidence { kind: kind.into(), text });
    if let Some(verdict) = judged.series(first.series).filter(|verdict| verdict.state == State::Grows) {
        let (kind, what) = match first.series {
            Series::CudaAllocated => ("bytes-in-use", "bytes allocated on the GPU"),
            Series::Rss => {
                ("resident", "resident bytes, which no allocator that tells what it has in use accounts for,")
            }
            _ => ("bytes-in-use", "bytes in use"),
        };
        let text = format!("{what} grow by {} per {unit}", Bytes::signed(verdict.bytes_per_unit));
        let over = f64::from(verdict.boundaries) * verdict.boundary_units;
        add(kind, format!("{text} over {over:.0} {unit}s"));
    }
    if let Some(own) = growth.in_use_per_unit {
        let own = Bytes::signed(own);
        add(
            "resident",
            format!("{own} per {unit} are its own bytes; the rest is what the allocator keeps around them"),
        );
    }
    for other in &group[1..] {
        let text = format!("the same line grows `{}`", other.holder.expression);
        add("holder-path", format!("{text}: {} per {unit}", Bytes::signed(other.rate.bytes_per_unit)));
    }
    let rate = &first.rate;
    let length = |number: u64| {
        if counts_bytes(first.kind) { Bytes(number).to_string() } else { number.to_string() }
    };
    let (before, after) = (length(rate.first), length(rate.elements));
    add("census", format!("{before} -> {after} over {} boundaries: {}", rate.points, rate.judgement.text));
    if let Some((gained, count)) = first.located.as_ref().and_then(|located| located.traced) {
        let count = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let gained = length(gained);
        add("armed-trace", format!("seen growing at this line {count} while traced (+{gained})"));
    }
    if let Some(located) = first.located.as_ref().filter(|located| located.grow.is_some()) {
        add("source", format!("`{}` grows `{}`", located.spot.text, located.container));
    }
    // In a web of references nothing dies with an element: then there is nothing to tell of it.
    let told = |contents: &&Contents| {
        first.kind == ContainerKind::Graph || (contents.bytes_per_element > 0 && !counts_bytes(first.kind))
    };
    if let Some(contents) = first.contents.filter(told) {
        add("contents", contents_text(first.kind, contents));
    }
    for Evidence { kind, text } in first.beside.iter().cloned() {
        add(&kind, text);
    }
    evidence
}

fn contents_text(kind: ContainerKind, contents: &Contents) -> String {
    let least = if contents.truncated { "at least " } else { "" };
    let nodes: Vec<String> =
        contents.node_types.iter().take(4).map(|(name, count)| format!("{count} {name}")).collect();
    if kind == ContainerKind::Graph {
        let saved = Bytes(contents.saved_bytes);
        return format!(
            "{least}{} nodes, {saved} saved for backward ({})",
            contents.graph_nodes,
            nodes.join(", ")
        );
    }
    let types: Vec<String> = contents.element_types.iter().take(3).map(|(name, _)| name.clone()).collect();
    let (each, types) = (contents.bytes_per_element, types.join(", "));
    let (mut text, saved, whose) = if counts_often(contents) {
        let (sampled, all) = (contents.sampled, Bytes(each * u64::from(contents.sampled)));
        let text = format!("{sampled} elements of type {types} keep {least}{all} together");
        (text, contents.saved_bytes, "the graph that they share")
    } else {
        let text = format!("{least}{} per element of type {types}", Bytes(each));
        (text, contents.saved_bytes_per_element, "its graph")
    };
    if saved > 0 {
        _ = write!(text, ", of which {} are saved by {whose}", Bytes(saved));
        if !nodes.is_empty() {
            _ = write!(text, " ({})", nodes.join(", "));
        }
    }
    if contents.tensor_bytes_per_element > 2 * contents.viewed_bytes_per_element
        && contents.viewed_bytes_per_element > 0
    {
        let (shown, held) =
            (Bytes(contents.viewed_bytes_per_element), Bytes(contents.tensor_bytes_per_element));
        _ = write!(text, "; views of {shown} pin storages of {held}");
    }
    text
}
