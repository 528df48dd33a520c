//! What lasts: tensors and arrays that were made between two censuses and are alive at the third, and through what they
//! are reached.
//!
//! Containers tell how long they get, and trial deletion what dies with an element. Both are silent where elements are in
//! a web of references (coroutines, callbacks that refer to everything), and where no container gets longer: chains of
//! objects, and tuples that are bound anew. The bytes that last are followed instead: from a sample
//! of them, each as likely as it is large, what leads to how many of them is told.

use std::time::Duration;

use caulk_wire::{ContainerKind, Holder};
use pyo3::prelude::*;

use crate::chain;
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape};
use crate::holders::{self, Path, Scope};
use crate::label;
use crate::replaced::size_of;
use crate::stopwatch::Stopwatch;
use crate::suspects::{Place, Suspects};
use crate::torch::Torch;

/// Objects that are searched for.
const SEARCHED: u64 = 32;
/// CPU time for the search.
const TIME_LIMIT: Duration = Duration::from_millis(40);
/// Bytes that must last before anything is searched for.
const WORTH: u64 = 256 << 10;
/// Shortest tuple that is taken for one that is bound anew and longer each time.
const SHORTEST: u64 = 16;

/// What leads to so many of the bytes that last.
pub(crate) struct Kept {
    pub(crate) by: By,
    pub(crate) bytes: u64,
}

/// What leads to something that lasts.
pub(crate) enum By {
    /// A container that is followed.
    Container(Address),
    /// Something that is no container, or is bound anew.
    Named(Box<Named>),
}

/// What grows under a name.
pub(crate) struct Named {
    pub(crate) holder: Holder,
    pub(crate) place: Place,
    pub(crate) kind: ContainerKind,
    pub(crate) type_name: String,
    pub(crate) length: u64,
    /// Facts of its elements.
    pub(crate) traits: Vec<String>,
}

/// Tells what leads to these.
pub(crate) fn look<'py>(
    heap: &mut Heap<'py>,
    lasting: Vec<Bound<'py, PyAny>>,
    elders: &[Bound<'py, PyAny>],
    suspects: &Suspects,
) -> Vec<Kept> {
    let sized = sizes(heap, &lasting);
    let total: u64 = sized.iter().map(|(_, size)| size).sum();
    if total < WORTH {
        return Vec::new();
    }
    let picked = spread(&sized, total / SEARCHED);
    let elders: Vec<Address> = elders.iter().map(|object| object.as_ptr() as Address).collect();
    let targets: AddressSet = picked.iter().map(|(object, _)| *object).collect();
    heap.keep(targets.iter().copied());
    drop(lasting);
    let paths = paths(heap, &targets, &elders);
    // A chain that gets few links is only seen as one on the way to what has lasted longer.
    let mut heads: Vec<(Address, String)> = Vec::new();
    for path in elders.iter().filter_map(|elder| paths.get(elder)) {
        if let Some(Leads::Chain(at, link)) = leads(heap, path, &[], suspects) {
            heads.push((path.nodes[at], link));
        }
    }
    let mut kept: Vec<(Address, Kept)> = Vec::new();
    for (object, bytes) in picked {
        let Some(path) = paths.get(&object) else { continue };
        let Some(at) = leads(heap, path, &heads, suspects) else { continue };
        let key = path.nodes[at.index()];
        if let Some((_, known)) = kept.iter_mut().find(|(known, _)| *known == key) {
            known.bytes += bytes;
        } else if let Some(by) = describe(heap, path, &at) {
            kept.push((key, Kept { by, bytes }));
        }
    }
    kept.into_iter().map(|(_, kept)| kept).collect()
}

/// Paths to all targets, and to those of the elders that the program itself keeps.
fn paths(heap: &mut Heap<'_>, targets: &AddressSet, elders: &[Address]) -> AddressMap<Path> {
    let started = Stopwatch::start();
    let all: AddressSet = targets.iter().chain(elders).copied().collect();
    let (mut paths, _) = holders::find_within(heap, &all, Scope::User, TIME_LIMIT);
    if !targets.iter().all(|target| paths.contains_key(target)) {
        let left = TIME_LIMIT.saturating_sub(started.work());
        let (others, _) = holders::find_within(heap, targets, Scope::All, left);
        paths.extend(others);
    }
    paths
}

/// The node of a path that leads to what lasts.
enum Leads {
    Container(usize),
    /// A chain that begins there, with the name by which a link refers to the next.
    Chain(usize, String),
    Tuple(usize),
}

impl Leads {
    fn index(&self) -> usize {
        match self {
            Self::Container(at) | Self::Chain(at, _) | Self::Tuple(at) => *at,
        }
    }
}

/// `heads`: where chains are known to begin, with the names of their links.
fn leads(
    heap: &mut Heap<'_>,
    path: &Path,
    heads: &[(Address, String)],
    suspects: &Suspects,
) -> Option<Leads> {
    if let Some(at) = path.nodes.iter().rposition(|node| suspects.is_container(*node)) {
        return Some(Leads::Container(at));
    }
    if let Some((at, steps)) = chain::on(heap, path) {
        return Some(Leads::Chain(at, label::describe(heap, &up_to(path, at + steps)).holder.name));
    }
    for (head, link) in heads {
        if let Some(at) = path.nodes.iter().position(|node| node == head) {
            return Some(Leads::Chain(at, link.clone()));
        }
    }
    path.nodes.iter().position(|node| long_tuple(heap, *node).is_some()).map(Leads::Tuple)
}

fn describe(heap: &mut Heap<'_>, path: &Path, at: &Leads) -> Option<By> {
    let object = path.nodes[at.index()];
    let mut traits = vec!["tensor".to_owned()];
    let (kind, length) = match at {
        Leads::Container(_) => return Some(By::Container(object)),
        Leads::Chain(_, link) => {
            traits.push(format!("link:{link}"));
            (ContainerKind::Chain, chain::length(heap, object)?)
        }
        Leads::Tuple(_) => (ContainerKind::List, long_tuple(heap, object)?),
    };
    let label = label::describe(heap, &up_to(path, at.index()));
    let place = Place::new(label.owner, &label.holder);
    let named =
        Named { place, holder: label.holder, kind, type_name: heap.type_name(object), length, traits };
    (!named.holder.name.is_empty()).then(|| By::Named(Box::new(named)))
}

fn up_to(path: &Path, end: usize) -> Path {
    Path { root: path.root.clone(), nodes: path.nodes[..=end].to_vec() }
}

/// Elements of a tuple that is long enough to be a history.
fn long_tuple(heap: &mut Heap<'_>, object: Address) -> Option<u64> {
    let is_tuple = heap.type_of(object).shape == Shape::Tuple;
    heap.length(object).map(|length| length as u64).filter(|length| is_tuple && *length >= SHORTEST)
}

/// The objects with their bytes, in the order of their addresses; none whose bytes lie on a GPU.
fn sizes<'py>(heap: &mut Heap<'py>, objects: &[Bound<'py, PyAny>]) -> Vec<(Address, u64)> {
    let size = |object: &Bound<'py, PyAny>| {
        let bytes = size_of(heap, object)?;
        let elsewhere = heap.is_plain_tensor(object) && Torch::is_cuda(object);
        (!elsewhere).then(|| (object.as_ptr() as Address, bytes))
    };
    let mut sized: Vec<(Address, u64)> = objects.iter().filter_map(size).collect();
    sized.retain(|(_, size)| *size > 0);
    sized.sort_unstable();
    sized
}

/// Objects at equal distances along all bytes, with the bytes that each of them stands for.
fn spread(sized: &[(Address, u64)], distance: u64) -> Vec<(Address, u64)> {
    let mut picked: Vec<(Address, u64)> = Vec::new();
    let (mut before, mut next) = (0, distance / 2);
    for (object, size) in sized {
        before += size;
        while next < before {
            match picked.last_mut() {
                Some((last, bytes)) if last == object => *bytes += distance,
                _ => picked.push((*object, distance)),
            }
            next += distance.max(1);
        }
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn what_is_picked_stands_for_all_bytes() {
        let sized: Vec<(usize, u64)> = (1..=100).map(|at| (at, if at == 7 { 901 } else { 1 })).collect();
        let picked = spread(&sized, 1000 / 10);
        assert_eq!(picked.iter().map(|(_, bytes)| bytes).sum::<u64>(), 1000);
        assert_eq!(picked.iter().find(|(at, _)| *at == 7), Some(&(7, 900)));
        assert!(picked.len() == 2, "{picked:?}");
        assert!(spread(&[], 10).is_empty());
    }
}
