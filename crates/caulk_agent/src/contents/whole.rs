//! What the graphs of a whole container pin: nodes and saved storages of all its tensors together, each once.
//!
//! A sample says what one element costs; it cannot say what elements share: a state that is fed back carries the graph of
//! every step before it, and a batch that many losses were computed from is saved by all of them.

use std::collections::HashMap;
use std::time::Duration;

use caulk_wire::{Contents, MadeBy};

use super::counts::by_count;
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape};
use crate::heap_profile::Sampler;
use crate::stopwatch::Stopwatch;
use crate::torch::{GraphWalk, Storage, Torch};

/// CPU time after which no further tensor is begun with.
const TIME_LIMIT: Duration = Duration::from_millis(25);
/// Nodes visited.
const NODE_LIMIT: u64 = 6_000;
/// Tensors looked for, and objects visited on the way to them.
const TENSORS: usize = 4_096;
const OBJECTS: usize = 30_000;
/// References followed from an element: a tensor in a tuple in a record.
const DEPTH: usize = 3;
/// Stacks told of.
const STACKS: usize = 8;

/// Tensors of the youngest elements, and the number of elements that they were found in.
struct Found {
    tensors: Vec<Address>,
    elements: usize,
}

/// A walk over all graphs of a container, for those who can afford it.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    /// Who knows what made a block, where the heap is sampled.
    pub(crate) sampler: Option<Sampler>,
}

/// What a walk found.
pub(super) struct Whole {
    /// Tensors with a graph, and how many of them were walked: at least one.
    pub(super) tensors: u64,
    pub(super) walked: u64,
    /// Bytes of the distinct storages that the walked graphs saved, of the tensors' own, and of the graphs themselves.
    pub(super) saved_bytes: u64,
    pub(super) own_bytes: u64,
    pub(super) node_bytes: u64,
    /// Part of the storages that lies on a GPU.
    pub(super) bytes_on_gpu: u64,
    nodes: u64,
    storages: u64,
    touched_bytes: u64,
    opaque: u64,
    node_types: HashMap<String, u32>,
    made_by: Vec<MadeBy>,
}

impl Walk {
    /// Goes through the graphs, those of the youngest elements first; `None` where there are none.
    pub(super) fn over(self, heap: &mut Heap<'_>, containers: &[Address]) -> Option<Whole> {
        let started = Stopwatch::start();
        let elements = elements(heap, containers);
        let found = Found::of(heap, &elements);
        // Up to here nothing was called.
        let tensors = heap.hold(found.tensors);
        let torch = Torch::new(heap.py)?;
        let mut walk = GraphWalk::new();
        let mut own: AddressMap<Storage> = AddressMap::default();
        let (mut graphs, mut walked) = (0, 0);
        for tensor in tensors.iter().filter(|tensor| torch.is_plain(tensor)) {
            let Some(node) = Torch::grad_fn(tensor) else { continue };
            graphs += 1;
            // What an older state carries is part of a younger one's graph, and what a batch's losses share is one graph: they
            // were gone through with it.
            if !walk.has_visited(&node) {
                if walk.truncated || started.work() > TIME_LIMIT {
                    continue;
                }
                walk.follow(&torch, node, NODE_LIMIT, true);
                walk.truncated |= walk.nodes >= NODE_LIMIT;
            }
            own.extend(Torch::storage(tensor).map(|storage| (storage.pointer as Address, storage)));
            walked += 1;
        }
        walk.saved.retain(|pointer, _| !own.contains_key(pointer));
        let made_by = self.sampler.map_or_else(Vec::new, |sampler| made_by(sampler, walk.saved.keys()));
        (walked > 0).then(|| Whole {
            // Elements that were not gone into are taken to be like the others.
            tensors: graphs * elements.len() as u64 / found.elements.max(1) as u64,
            walked,
            saved_bytes: walk.saved_bytes(),
            own_bytes: own.values().map(|storage| storage.bytes).sum(),
            bytes_on_gpu: walk.saved_on_gpu()
                + own.values().filter(|storage| storage.on_gpu).map(|storage| storage.bytes).sum::<u64>(),
            node_bytes: walk.own_bytes(),
            nodes: walk.nodes,
            storages: walk.saved.len() as u64,
            touched_bytes: walk.saved_touched(),
            opaque: walk.opaque,
            node_types: walk.node_types,
            made_by,
        })
    }
}

impl Whole {
    pub(super) fn tell(self, contents: &mut Contents) {
        contents.tensors = self.tensors;
        contents.walked = self.walked;
        contents.walked_nodes = self.nodes;
        contents.walked_storages = self.storages;
        contents.walked_bytes = self.saved_bytes;
        contents.walked_touched = self.touched_bytes;
        contents.opaque_nodes = self.opaque;
        contents.node_bytes = self.node_bytes;
        contents.node_types = by_count(self.node_types);
        contents.made_by = self.made_by;
    }
}

/// Everything that the containers refer to, youngest first.
fn elements(heap: &mut Heap<'_>, containers: &[Address]) -> Vec<Address> {
    let mut elements = Vec::new();
    for container in containers {
        let first = elements.len();
        heap.referents(*container, &mut |element| elements.push(element));
        // A list is traversed from its end, everything else from its beginning (CPython, `list_traverse`).
        if heap.type_of(*container).shape != Shape::List {
            elements[first..].reverse();
        }
    }
    elements
}

impl Found {
    fn of(heap: &mut Heap<'_>, elements: &[Address]) -> Self {
        let mut found = Self { tensors: Vec::new(), elements: 0 };
        let mut visited = AddressSet::default();
        for element in elements {
            if found.tensors.len() >= TENSORS || visited.len() >= OBJECTS {
                break;
            }
            found.elements += 1;
            let mut ready = vec![(*element, 0)];
            while let Some((object, depth)) = ready.pop() {
                if !visited.insert(object) {
                    continue;
                }
                match heap.type_of(object).shape {
                    Shape::Tensor => found.tensors.push(object),
                    Shape::Module | Shape::Type | Shape::Code | Shape::Frame => {}
                    // What others refer to as well would lead into the whole program.
                    _ if depth < DEPTH && (depth == 0 || heap.references(object) == 1) => {
                        heap.referents(object, &mut |inner| ready.push((inner, depth + 1)));
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// Stacks that made these storages, where they are blocks that were sampled.
pub(crate) fn made_by<'a>(sampler: Sampler, storages: impl Iterator<Item = &'a Address>) -> Vec<MadeBy> {
    let mut stacks: HashMap<u32, u64> = HashMap::new();
    for (stack, weight) in storages.filter_map(|storage| sampler.maker(*storage)) {
        *stacks.entry(stack).or_default() += weight;
    }
    let mut made: Vec<MadeBy> = stacks.into_iter().map(|(stack, bytes)| MadeBy { stack, bytes }).collect();
    made.sort_by_key(|made| (std::cmp::Reverse(made.bytes), made.stack));
    made.truncate(STACKS);
    made
}
