//! What has grown between two moments: containers that are longer or new, and tensors that are new.

use pyo3::prelude::*;

use super::holding::{Words, words};
use super::refused::refused;
use crate::census::{self, Census, CollectorPaused, PATIENCE, Seen};
use crate::contents;
use crate::heap::{Address, AddressMap, AddressSet, Heap, type_address};
use crate::holders::{self, Scope};
use crate::label;

/// Grown containers that are looked into, the longest growth first.
const MOST: usize = 64;

/// One container that grew: its type, elements before and after, bytes that one element keeps, who holds it, the name
/// by which source code must mention it (empty where no root was found).
type Grown = (String, usize, usize, u64, Words, String);

/// Lengths of all containers at one moment. Addresses are compared, never dereferenced.
#[pyclass(frozen, module = "caulk._agent")]
pub(super) struct Lengths {
    /// Type and length.
    containers: AddressMap<(Address, usize)>,
}

#[pymethods]
impl Lengths {
    /// Notes the lengths now.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let _paused = CollectorPaused::new(py);
        let mut heap = Heap::new(py);
        let census = census::take_for_user(&mut heap).map_err(refused)?;
        let note = |seen: &Seen| (seen.address, (type_address(seen.address), seen.len));
        Ok(Self { containers: census.containers.iter().map(note).collect() })
    }

    /// Containers that the user's program holds and that are longer now, or new: those that keep most first.
    fn grown(&self, py: Python<'_>) -> PyResult<Vec<Grown>> {
        let _paused = CollectorPaused::new(py);
        let mut heap = Heap::new(py);
        let census = census::take_for_user(&mut heap).map_err(refused)?;
        let longer = self.longer(&census);
        heap.keep(longer.iter().map(|(seen, _)| seen.address));
        let targets: AddressSet = longer.iter().map(|(seen, _)| seen.address).collect();
        let (paths, _) = holders::find_within(&mut heap, &targets, Scope::User, PATIENCE);
        let mut told = Vec::new();
        for (seen, before) in longer {
            let Some(path) = paths.get(&seen.address) else { continue };
            // A container inside one that grew is the other's element.
            let (_, above) = path.nodes.split_last().unwrap_or((&0, &[]));
            if above.iter().any(|node| targets.contains(node)) {
                continue;
            }
            let contents = contents::look(&mut heap, seen.address, 0);
            let name = label::describe(&mut heap, path).holder.name;
            let type_name = heap.type_name(seen.address);
            let words = words(&mut heap, path);
            told.push((type_name, before, seen.len, contents.bytes_per_element, words, name));
        }
        let kept = |(_, before, after, each, ..): &Grown| (after - before) as u64 * each;
        told.sort_by_key(|grown| std::cmp::Reverse(kept(grown)));
        Ok(told)
    }

    fn __len__(&self) -> usize {
        self.containers.len()
    }
}

impl Lengths {
    fn longer(&self, census: &Census) -> Vec<(Seen, usize)> {
        let before = |seen: &Seen| match self.containers.get(&seen.address) {
            Some((object_type, len)) if *object_type == type_address(seen.address) => *len,
            _ => 0,
        };
        let grown = |seen: &Seen| Some((*seen, before(seen))).filter(|(seen, before)| seen.len > *before);
        let mut longer: Vec<(Seen, usize)> = census.containers.iter().filter_map(grown).collect();
        longer.sort_by_key(|(seen, before)| std::cmp::Reverse(seen.len - before));
        longer.truncate(MOST);
        longer
    }
}
