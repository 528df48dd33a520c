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
use crate::heap::{Address, AddressSet, Heap, Shape};
use crate::holders::{self, Path, Scope};
use crate::label;
use crate::replaced::size_of;
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
    suspects: &Suspects,
) -> Vec<Kept> {
    let sized = sizes(heap, &lasting);
    let total: u64 = sized.iter().map(|(_, size)| size).sum();
    if total < WORTH {
        return Vec::new();
    }
    let picked = spread(&sized, total / SEARCHED);
    let targets: AddressSet = picked.iter().map(|(object, _)| *object).collect();
    heap.keep(targets.iter().copied());
    drop(lasting);
    let (paths, _) = holders::find_within(heap, &targets, Scope::All, TIME_LIMIT);
    let mut kept: Vec<(Address, Kept)> = Vec::new();
    for (object, bytes) in picked {
        let Some(path) = paths.get(&object) else { continue };
        let Some(at) = leads(heap, path, suspects) else { continue };
        let key = path.nodes[at.index()];
        if let Some((_, known)) = kept.iter_mut().find(|(known, _)| *known == key) {
            known.bytes += bytes;
        } else if let Some(by) = describe(heap, path, at) {
            kept.push((key, Kept { by, bytes }));
        }
    }
    kept.into_iter().map(|(_, kept)| kept).collect()
}

/// The node of a path that leads to what lasts.
#[derive(Clone, Copy)]
enum Leads {
    Container(usize),
    /// A chain that begins there, with the steps from link to link.
    Chain(usize, usize),
    Tuple(usize),
}

impl Leads {
    fn index(self) -> usize {
        match self {
            Self::Container(at) | Self::Chain(at, _) | Self::Tuple(at) => at,
        }
    }
}

fn leads(heap: &mut Heap<'_>, path: &Path, suspects: &Suspects) -> Option<Leads> {
    if let Some(at) = path.nodes.iter().rposition(|node| suspects.is_container(*node)) {
        return Some(Leads::Container(at));
    }
    if let Some((at, steps)) = chain::on(heap, path) {
        return Some(Leads::Chain(at, steps));
    }
    path.nodes.iter().position(|node| long_tuple(heap, *node).is_some()).map(Leads::Tuple)
}

fn describe(heap: &mut Heap<'_>, path: &Path, at: Leads) -> Option<By> {
    let to = |end: usize| Path { root: path.root.clone(), nodes: path.nodes[..=end].to_vec() };
    let object = path.nodes[at.index()];
    let label = |heap: &mut Heap<'_>| label::describe(heap, &to(at.index()));
    let tensor = || "tensor".to_owned();
    let named = match at {
        Leads::Container(_) => return Some(By::Container(object)),
        Leads::Chain(start, steps) => {
            let label = label(heap);
            let link = label::describe(heap, &to(start + steps)).holder.name;
            Named {
                place: Place::new(label.owner, &label.holder),
                holder: label.holder,
                kind: ContainerKind::Chain,
                type_name: heap.type_name(object),
                length: chain::length(heap, object)?,
                traits: vec![tensor(), format!("link:{link}")],
            }
        }
        Leads::Tuple(_) => {
            let label = label(heap);
            Named {
                place: Place::new(label.owner, &label.holder),
                holder: label.holder,
                kind: ContainerKind::List,
                type_name: heap.type_name(object),
                length: long_tuple(heap, object)?,
                traits: vec![tensor()],
            }
        }
    };
    (!named.holder.name.is_empty()).then(|| By::Named(Box::new(named)))
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
