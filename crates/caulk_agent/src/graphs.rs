//! Autograd graphs that grow in place: no container gets longer, but a tensor that is kept reaches further back with
//! every step (`self.total += loss`, a hidden state fed back, an unrolled iterate, `p.grad` of a recorded backward).
//!
//! All graphs reachable from tensors that Python holds are walked together, bounded; only when their sum rises from
//! census to census, or is beyond the bound, are the holders looked for, and followed by name, since the tensor itself is replaced.

use std::time::Duration;

use caulk_wire::{Contents, Trait};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::census::Tracker;
use crate::contents;
use crate::heap::{Address, AddressSet, Heap, type_address};
use crate::heap_profile::Sampler;
use crate::holders::{self, Path, Scope};
use crate::label::{self, Label};
use crate::stopwatch::Stopwatch;
use crate::suspects::{Suspects, also_called};
use crate::torch::{GraphWalk, Torch};

/// Nodes walked over all tensors at one census.
const NODE_LIMIT: u64 = 5_000;
/// CPU time for that.
const TIME_LIMIT: Duration = Duration::from_millis(25);
/// Tensors searched for, measured and followed by name.
const SEARCHED: usize = 512;
const MEASURED: usize = 24;
const FOLLOWED: usize = 8;
/// A graph of fewer nodes is the current step's.
const SMALLEST: u64 = 6;

/// Tensors of one container that are looked at, and containers around each.
const ROW: usize = 64;
const DEPTH: usize = 2;
/// Censuses between two searches for holders, once some are known.
const SEARCH_AGAIN: u32 = 4;

/// Sums of the last censuses, newest first.
#[derive(Default)]
pub(crate) struct Graphs {
    totals: Vec<u64>,
    searched: u32,
}

/// A tensor that is kept, with the graph behind it.
pub(crate) struct KeptGraph {
    pub(crate) label: Label,
    pub(crate) contents: Contents,
    pub(crate) type_name: String,
}

struct Candidate<'py> {
    /// What is searched for: the tensor, or the parameter whose gradient it is.
    holder: Address,
    node: Bound<'py, PyAny>,
    is_gradient: bool,
}

impl Graphs {
    /// Graphs that are held by name, where the sum of all has been rising.
    pub(crate) fn look<'py>(
        &mut self,
        heap: &mut Heap<'py>,
        tensors: &[Bound<'py, PyAny>],
        tracker: &Tracker,
        suspects: &Suspects,
        sampler: Option<Sampler>,
    ) -> Vec<KeptGraph> {
        let Some(torch) = Torch::new(heap.py) else { return Vec::new() };
        let (mut candidates, total) = Self::survey(&torch, tensors);
        self.totals.insert(0, total);
        self.totals.truncate(4);
        // More nodes than are walked may be more each time.
        let rises = total >= NODE_LIMIT || self.totals.windows(2).any(|pair| pair[0] > pair[1] + 1);
        // Those that are followed by name cost no search; others may begin later.
        self.searched += 1;
        if !rises || (suspects.follows_graphs() && !self.searched.is_multiple_of(SEARCH_AGAIN)) {
            return Vec::new();
        }
        // The youngest: a graph that is kept hangs on the newest tensor of its chain.
        candidates.drain(..candidates.len().saturating_sub(SEARCHED));
        let targets: AddressSet = candidates.iter().map(|candidate| candidate.holder).collect();
        let (paths, _) = holders::find(heap, &targets, Scope::User);
        let stored = holders::find_stored(heap, &paths);
        // Tensors in a container that grows are that container's matter.
        let started = Stopwatch::start();
        let in_container = |node: &Address| suspects.is_container(*node) || tracker.lengthened(*node);
        let mut kept: Vec<KeptGraph> = Vec::new();
        for candidate in candidates {
            let Some(path) = paths.get(&candidate.holder).filter(|path| !path.nodes.iter().any(in_container))
            else {
                continue;
            };
            let whole = path.nodes.len() - 1;
            let row = beside(heap, path, tracker);
            let row = row.and_then(|(end, row)| Some((end, contents_of(&row, sampler)?)));
            let (end, pinned) = row.unwrap_or_else(|| (whole, measure(&torch, [candidate.node], sampler)));
            if pinned.graph_nodes < SMALLEST {
                continue;
            }
            let type_name = heap.type_name(candidate.holder);
            let label_of = |heap: &mut Heap<'_>, path: &Path, is_whole: bool| {
                let mut label = label::describe(heap, path);
                if candidate.is_gradient && is_whole {
                    label.add_gradient(candidate.holder);
                }
                label
            };
            let label = label_of(heap, &path.up_to(end), end == whole);
            // Which of the names feeds it back, the source tells.
            let stored = stored.get(&candidate.holder).filter(|path| !path.nodes.iter().any(in_container));
            if let Some(path) = stored {
                let mut contents = pinned.clone();
                contents.traits.push(also_called(&label.holder));
                let (label, type_name) = (label_of(heap, path, true), type_name.clone());
                kept.push(KeptGraph { label, contents, type_name });
            }
            kept.push(KeptGraph { label, contents: pinned, type_name });
            if kept.len() >= MEASURED || started.work() > TIME_LIMIT {
                break;
            }
        }
        kept.sort_by_key(|graph| std::cmp::Reverse(graph.contents.graph_nodes));
        kept.truncate(FOLLOWED);
        kept
    }

    /// Every tensor that has a graph, and the nodes that they reach together.
    fn survey<'py>(torch: &Torch<'py>, tensors: &[Bound<'py, PyAny>]) -> (Vec<Candidate<'py>>, u64) {
        let started = Stopwatch::start();
        let mut candidates = Vec::new();
        for (count, tensor) in tensors.iter().enumerate() {
            if count % 64 == 0 && started.work() > TIME_LIMIT {
                break;
            }
            if !torch.is_plain(tensor) {
                continue;
            }
            let (node, is_gradient) = match Torch::grad_fn(tensor) {
                Some(node) => (node, false),
                None => match Torch::grad(tensor).and_then(|grad| Torch::grad_fn(&grad)) {
                    Some(node) => (node, true),
                    None => continue,
                },
            };
            candidates.push(Candidate { holder: tensor.as_ptr() as Address, node, is_gradient });
        }
        let mut walk = GraphWalk::new();
        for candidate in &candidates {
            if walk.nodes >= NODE_LIMIT {
                break;
            }
            walk.follow(torch, candidate.node.clone(), NODE_LIMIT, false);
        }
        (candidates, walk.nodes)
    }
}

/// The list or tuple in which a path ends: states of several layers, say, that are replaced together. Or else the first
/// container on it that is bound anew, with records in it. With the end of the path that names it.
fn beside<'py>(heap: &mut Heap<'py>, path: &Path, tracker: &Tracker) -> Option<(usize, Bound<'py, PyAny>)> {
    let at = path.nodes.len().checked_sub(2)?;
    let last = heap.own(path.nodes[at]);
    if is_row(&last) {
        return Some((at + 1, last));
    }
    let renewed = (0..at).find(|at| {
        let node = path.nodes[*at];
        tracker.is_new(node, type_address(node))
            && (is_row(&heap.own(node)) || heap.own(node).is_exact_instance_of::<PyDict>())
            && label::is_named(heap, path, *at)
    })?;
    Some((renewed, heap.own(path.nodes[renewed])))
}

fn is_row(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>()
}

/// The graph behind a tensor, or behind the tensors of a container, those in its records included. `sampler`: who knows what
/// made its storages.
pub(crate) fn contents_of(value: &Bound<'_, PyAny>, sampler: Option<Sampler>) -> Option<Contents> {
    let torch = Torch::new(value.py())?;
    let mut nodes = Vec::new();
    let mut row = vec![value.clone()];
    for depth in 0..=DEPTH {
        let (tensors, others): (Vec<_>, Vec<_>) = row.into_iter().partition(|item| torch.is_plain(item));
        nodes.extend(tensors.iter().filter_map(Torch::grad_fn));
        let inner = others.iter().take(ROW).flat_map(items);
        row = if depth < DEPTH { inner.take(ROW).collect() } else { Vec::new() };
    }
    (!nodes.is_empty()).then(|| measure(&torch, nodes, sampler))
}

/// The first elements of a list, a tuple, or of the values of a dict.
fn items<'py>(value: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return dict.iter().take(ROW).map(|(_, value)| value).collect();
    }
    let row = is_row(value).then(|| value.try_iter().into_iter().flatten().flatten());
    row.into_iter().flatten().take(ROW).collect()
}

/// Nodes and saved bytes of the graph of these nodes.
fn measure<'py>(
    torch: &Torch<'py>,
    nodes: impl IntoIterator<Item = Bound<'py, PyAny>>,
    sampler: Option<Sampler>,
) -> Contents {
    let mut walk = GraphWalk::new();
    let (mut whole, mut numbers) = (None, Vec::new());
    for node in nodes {
        walk.follow(torch, node.clone(), NODE_LIMIT, true);
        numbers.push(walk.numbers());
        if walk.truncated && whole.is_none() {
            whole = walk.nodes_by_number(&node);
        }
    }
    // A graph too large to be walked is taken to be like the part of it that was.
    let nodes = whole.unwrap_or(walk.nodes).max(walk.nodes);
    let estimated = whole.is_some();
    let whole = |part: u64| (part as f64 * nodes as f64 / walk.nodes.max(1) as f64) as u64;
    let (saved_bytes, on_gpu) = (whole(walk.saved_bytes()), whole(walk.saved_on_gpu()));
    let (saved_touched, own_bytes) = (whole(walk.saved_touched()), whole(walk.own_bytes()));
    let mut made_by = sampler.map_or_else(Vec::new, |sampler| contents::made_by(sampler, walk.saved.keys()));
    for made in &mut made_by {
        made.bytes = whole(made.bytes);
    }
    let storages = whole(walk.saved.len() as u64);
    let mut node_types: Vec<(String, u32)> = walk.node_types.into_iter().collect();
    node_types.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    node_types.truncate(8);
    let mut traits = vec![Trait::Tensor, Trait::Graph];
    // Where a graph has none, nothing is known of its age.
    let numbers: Option<Vec<(u64, u64)>> = numbers.into_iter().collect();
    let all = numbers.filter(|_| !walk.truncated).and_then(|all| all.into_iter().reduce(widest));
    if let Some((oldest, newest)) = all {
        traits.push(Trait::Numbers { oldest, newest });
    }
    Contents {
        sampled: 1,
        bytes_per_element: (saved_bytes + own_bytes) / nodes.max(1),
        saved_bytes_per_element: saved_bytes / nodes.max(1),
        cuda_bytes_per_element: on_gpu / nodes.max(1),
        graph_nodes: nodes,
        saved_bytes,
        saved_touched,
        walked_storages: storages,
        made_by,
        opaque_nodes: walk.opaque,
        node_bytes: own_bytes,
        truncated: walk.truncated && !estimated,
        node_types,
        traits,
        ..Contents::default()
    }
}

/// Both of these ranges of nodes' numbers in one.
fn widest(some: (u64, u64), more: (u64, u64)) -> (u64, u64) {
    (some.0.min(more.0), some.1.max(more.1))
}
