//! Things that grow by being replaced: `self.all = torch.cat([self.all, x])`, `rows = rows + [row]`, `np.append(...)`.
//!
//! No container gets longer; a name refers to a larger object each time. Large objects that are new since the last census
//! are looked for by path, and what is remembered is the name: a name whose object is larger at every look grows.

use std::collections::HashMap;

use caulk_wire::ContainerKind;
use pyo3::prelude::*;

use crate::census::{Census, Tracker};
use crate::heap::{Address, AddressSet, Heap, Shape, type_address};
use crate::holders::{self, Scope};
use crate::label::{self, Label};
use crate::suspects::Suspects;
use crate::torch::Torch;

/// Smallest tensor or array looked at, in bytes.
const SMALLEST_BYTES: u64 = 64 << 10;
/// Shortest container looked at, in elements.
const SHORTEST: usize = 16;
/// Objects searched for at one census.
const SEARCHED: usize = 24;
/// Growth of the bytes in use from census to census below which nothing is searched.
const WORTH: u64 = 256 << 10;
/// Boundaries between two searches, once something is known to grow.
const SEARCH_AGAIN: u32 = 4;
/// Looks at which a name's object must have been larger than before.
const LARGER: usize = 2;

/// What names referred to at the last looks.
#[derive(Default)]
pub(crate) struct Replaced {
    /// Boundary and size, by name.
    sizes: HashMap<String, Vec<(u32, u64)>>,
    /// Tensors and arrays of the last census.
    before: AddressSet,
    in_use: u64,
}

/// A name whose object has been replaced by a larger one again and again.
pub(crate) struct Renewed {
    pub(crate) label: Label,
    pub(crate) kind: ContainerKind,
    /// Boundary and size at every look, the newest last.
    pub(crate) sizes: Vec<(u32, u64)>,
    pub(crate) type_name: String,
}

struct Candidate {
    address: Address,
    kind: ContainerKind,
    size: u64,
    weight: u64,
}

impl Replaced {
    /// Names that grow by replacement; `tracker` still knows the census before.
    pub(crate) fn look(
        &mut self,
        heap: &mut Heap<'_>,
        census: &Census,
        tracker: &Tracker,
        suspects: &Suspects,
        in_use: u64,
        boundary: u32,
    ) -> Vec<Renewed> {
        let grew = in_use > self.in_use + WORTH && self.in_use > 0;
        self.in_use = in_use;
        // Where something else grows already, this is the less likely cause.
        let due = suspects.is_empty() || boundary.is_multiple_of(SEARCH_AGAIN);
        let candidates = if grew && due { self.candidates(heap, census, tracker) } else { Vec::new() };
        self.before = census.tensors.iter().chain(&census.arrays).copied().collect();
        if candidates.is_empty() {
            return Vec::new();
        }
        let targets: AddressSet = candidates.iter().map(|candidate| candidate.address).collect();
        let (paths, _) = holders::find(heap, &targets, Scope::User);
        let mut renewed = Vec::new();
        for Candidate { address, kind, size, .. } in candidates {
            let Some(path) = paths.get(&address) else { continue };
            if path.nodes.iter().any(|node| suspects.is_container(*node)) {
                continue;
            }
            let label = label::describe(heap, path);
            let key = format!("{}:{}", label.holder.function, label.holder.expression);
            let sizes = self.sizes.entry(key).or_default();
            if sizes.last().is_some_and(|(_, last)| *last > size) {
                sizes.clear();
            }
            sizes.push((boundary, size));
            if sizes.windows(2).filter(|pair| pair[1].1 > pair[0].1).count() >= LARGER {
                renewed.push(Renewed {
                    label,
                    kind,
                    sizes: sizes.clone(),
                    type_name: heap.type_name(address),
                });
            }
        }
        renewed
    }

    fn candidates(&self, heap: &mut Heap<'_>, census: &Census, tracker: &Tracker) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for seen in
            census.containers.iter().filter(|seen| seen.len >= SHORTEST && !tracker.knows(seen.address))
        {
            let kind = match seen.shape {
                Shape::Dict => ContainerKind::Dict,
                Shape::Set => ContainerKind::Set,
                Shape::Deque => ContainerKind::Deque,
                Shape::Buffer => ContainerKind::Buffer,
                _ => ContainerKind::List,
            };
            let size = seen.len as u64;
            candidates.push(Candidate { address: seen.address, kind, size, weight: size * 64 });
        }
        let fresh: AddressSet = census
            .tensors
            .iter()
            .chain(&census.arrays)
            .copied()
            .filter(|address| !self.before.contains(address))
            .collect();
        let torch = Torch::new(heap.py);
        for address in fresh {
            let object = heap.own(address);
            if !torch.as_ref().is_some_and(|torch| torch.is_plain(&object))
                && heap.type_of(address).shape == Shape::Tensor
            {
                continue;
            }
            let bytes = size_of(heap, &object).unwrap_or(0);
            if bytes >= SMALLEST_BYTES {
                candidates.push(Candidate {
                    address,
                    kind: ContainerKind::Tensor,
                    size: bytes,
                    weight: bytes,
                });
            }
        }
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.weight));
        candidates.truncate(SEARCHED);
        candidates
    }
}

/// Bytes of a tensor or array, elements of a container.
pub(crate) fn size_of(heap: &mut Heap<'_>, object: &Bound<'_, PyAny>) -> Option<u64> {
    let address = object.as_ptr() as Address;
    match heap.type_of(address).shape {
        Shape::Tensor if !Torch::new(heap.py).is_some_and(|torch| torch.is_plain(object)) => None,
        Shape::Array if type_address(address) != heap.ndarray() => None,
        Shape::Tensor | Shape::Array => object.getattr("nbytes").ok()?.extract().ok(),
        _ => heap.length(address).map(|length| length as u64),
    }
}
