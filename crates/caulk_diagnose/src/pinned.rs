//! What growing things keep alive beyond themselves: graphs, what these saved for backward, and the lines that made it.

use caulk_core::wire::{ContainerKind, Contents};
use caulk_core::{MadeAt, Pinned};

use crate::files::Files;
use crate::growth::counts_often;
use crate::heap;
use crate::process::Process;

/// Lines and node types that are named.
const LINES: usize = 3;
const TYPES: usize = 4;

/// One thing that grows.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) kind: ContainerKind,
    /// The last look into it.
    pub(crate) contents: &'a Contents,
    /// Elements at the end, ...
    pub(crate) elements: u64,
    /// ... and when it was looked into.
    pub(crate) elements_then: u64,
}

/// What all of them pin; `None` where that is nothing.
pub(crate) fn of<'a>(
    files: &Files<'_>,
    process: &Process<'_>,
    parts: impl Iterator<Item = Part<'a>>,
) -> Option<Pinned> {
    let mut pinned = Pinned::default();
    let mut types: Vec<(String, u64)> = Vec::new();
    let mut largest: Option<&Contents> = None;
    for part in parts {
        let Part { kind, contents, elements, .. } = part;
        for (name, count) in &contents.node_types {
            match types.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += u64::from(*count),
                None => types.push((name.clone(), u64::from(*count))),
            }
        }
        pinned.least |= contents.opaque_nodes > 0;
        if kind == ContainerKind::Graph {
            pinned.least |= contents.truncated;
            largest = largest.filter(|known| known.saved_bytes >= contents.saved_bytes).or(Some(contents));
            continue;
        }
        if contents.walked > 0 {
            pinned.tensor_bytes += contents.tensor_bytes_per_element * elements;
            add_walked(&mut pinned, files, process, part);
        } else {
            let told = by_sample(contents, elements);
            pinned.tensor_bytes += told.tensor_bytes;
            pinned.graph_nodes += told.graph_nodes;
            pinned.node_bytes += told.node_bytes;
            pinned.saved_bytes += told.saved_bytes;
            pinned.touched_bytes += told.touched_bytes;
            pinned.least |= told.least;
            pinned.estimated |= told.estimated;
        }
    }
    // A graph that a tensor carries hangs together with what is in the containers beside it.
    if let Some(graph) = largest {
        if graph.saved_bytes > pinned.saved_bytes {
            pinned.storages = graph.walked_storages;
            pinned.made_at.clear();
            add_made(&mut pinned, files, process, graph, 1.0);
        }
        pinned.graph_nodes = pinned.graph_nodes.max(graph.graph_nodes);
        pinned.node_bytes = pinned.node_bytes.max(graph.node_bytes);
        pinned.saved_bytes = pinned.saved_bytes.max(graph.saved_bytes);
        pinned.touched_bytes = pinned.touched_bytes.max(graph.saved_touched);
    }
    if pinned == Pinned::default() {
        return None;
    }
    types.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let all = types.iter().map(|(_, count)| count).sum::<u64>().max(1) as f64;
    pinned.node_types =
        types.into_iter().take(TYPES).map(|(name, count)| (name, count as f64 / all)).collect();
    pinned.made_at.sort_by_key(|made| std::cmp::Reverse(made.bytes));
    pinned.made_at.truncate(LINES);
    Some(pinned)
}

/// What so many elements pin, by the sample of them that was looked at. What is one graph for many of them is not more for
/// more of them: then it is what the sample pins, at least.
pub(crate) fn by_sample(contents: &Contents, elements: u64) -> Pinned {
    let sampled = u64::from(contents.sampled.max(1));
    let overlaps = counts_often(contents);
    let all = |count: u64| if overlaps { count } else { count * elements / sampled };
    let saved_bytes =
        if overlaps { contents.saved_bytes } else { contents.saved_bytes_per_element * elements };
    Pinned {
        graph_nodes: all(contents.graph_nodes),
        node_bytes: all(contents.node_bytes),
        saved_bytes,
        touched_bytes: touched(saved_bytes, contents),
        tensor_bytes: contents.tensor_bytes_per_element * elements,
        least: contents.opaque_nodes > 0 || overlaps && elements > sampled,
        estimated: elements > sampled,
        ..Pinned::default()
    }
}

/// The part of bytes that graphs saved which was ever touched, by the sample.
fn touched(saved: u64, contents: &Contents) -> u64 {
    let share = contents.saved_touched as f64 / contents.saved_bytes.max(1) as f64;
    (saved as f64 * share) as u64
}

/// Adds what a walk over all tensors of a container found. What the walk did not reach, and what has come since, is taken
/// to be like the rest.
fn add_walked(pinned: &mut Pinned, files: &Files<'_>, process: &Process<'_>, part: Part<'_>) {
    let Part { contents, elements, elements_then, .. } = part;
    let reached = contents.tensors.max(contents.walked) as f64 / contents.walked as f64;
    let factor = reached * elements as f64 / elements_then.max(1) as f64;
    let whole = |count: u64| (count as f64 * factor).round() as u64;
    pinned.graph_nodes += whole(contents.walked_nodes);
    pinned.storages += whole(contents.walked_storages);
    pinned.node_bytes += whole(contents.node_bytes);
    pinned.saved_bytes += whole(contents.walked_bytes);
    pinned.touched_bytes += whole(contents.walked_touched);
    pinned.estimated |= contents.walked < contents.tensors || contents.truncated || elements != elements_then;
    add_made(pinned, files, process, contents, factor);
}

/// Adds the lines that made the storages, times a factor.
fn add_made(pinned: &mut Pinned, files: &Files<'_>, process: &Process<'_>, contents: &Contents, factor: f64) {
    for made in &contents.made_by {
        let Some(frame) = process.stacks.get(&made.stack).and_then(|stack| heap::blamed(stack)) else {
            continue;
        };
        let file = files.display(&frame.file);
        let bytes = (made.bytes as f64 * factor).round() as u64;
        let same = |known: &&mut MadeAt| known.file == file && known.line == frame.line;
        if let Some(known) = pinned.made_at.iter_mut().find(same) {
            known.bytes += bytes;
        } else {
            let function = frame.function.clone();
            pinned.made_at.push(MadeAt { file, line: frame.line, function, bytes });
        }
    }
}
