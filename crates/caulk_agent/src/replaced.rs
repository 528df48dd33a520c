//! Things that grow by being replaced: `self.all = torch.cat([self.all, x])`, `rows = rows + [row]`, `np.append(...)`.
//!
//! No container gets longer; a name refers to a larger object each time. Large objects that are new since the last census
//! are looked for by path, and what is remembered is the name: a name whose object is larger at every look grows. The
//! entries of one dict or list, like features by label, are one matter.

use std::collections::{HashMap, HashSet, VecDeque};

use caulk_wire::{ContainerKind, StepKind, Trait};
use pyo3::prelude::*;

use crate::census::{Census, Seen, Tracker};
use crate::heap::{self, Address, AddressMap, AddressSet, Heap, Shape, read_word, type_address};
use crate::holders::{self, Path, Scope};
use crate::label::{self, Label};
use crate::suspects::{Suspects, also_called, key_of};

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
/// Objects that have lasted and are sized.
const MOST_LASTING: usize = 1 << 14;
/// Entries of one dict or list that are taken together.
const MOST_ENTRIES: usize = 1 << 12;
/// Searches whose objects are remembered, and how many of each are searched for again.
const REMEMBERED: usize = 5;
const ELDERS: usize = 4;
/// Searches for the path to lasting bytes that are made without waiting, if nothing else is known.
const SEARCHES: u32 = 8;
/// Bytes of an object before its own fields: `sizeof(PyObject)`.
const HEAD: usize = 2 * WORD;
const WORD: usize = std::mem::size_of::<Address>();

/// What names referred to at the last looks.
#[derive(Default)]
pub(crate) struct Replaced {
    /// Boundary and size, by name; for entries that are taken together, how many they are.
    sizes: HashMap<String, (usize, Vec<(u32, u64)>)>,
    /// Tensors and arrays of the last census, and those of them that were new in it.
    before: AddressMap<usize>,
    fresh: AddressMap<usize>,
    /// Those that were searched for because they had lasted, by search, the oldest first.
    elders: VecDeque<Vec<(Address, usize)>>,
    in_use: u64,
    /// Censuses until the next search for what leads to what lasts, and from that to the one after.
    wait: [u32; 2],
}

/// A name whose object has been replaced by a larger one again and again.
pub(crate) struct Renewed {
    pub(crate) label: Label,
    /// The dict or list whose entries are meant, and how many they are.
    pub(crate) entries: Option<(Address, usize)>,
    /// The fact that a local variable refers to it as well.
    pub(crate) also: Option<Trait>,
    pub(crate) kind: ContainerKind,
    /// Boundary and size at every look, the newest last.
    pub(crate) sizes: Vec<(u32, u64)>,
    pub(crate) type_name: String,
}

/// The entries of a dict or list that are of one kind.
pub(crate) struct Entries {
    pub(crate) count: usize,
    /// The sum of their sizes, as [`size_of`] has them.
    pub(crate) size: u64,
}

struct Candidate {
    address: Address,
    kind: ContainerKind,
    size: u64,
    weight: u64,
}

/// What is new since the last census, where that is worth a search.
#[derive(Default)]
pub(crate) struct Fresh<'py> {
    containers: Vec<Candidate>,
    /// Tensors and arrays.
    objects: Vec<Bound<'py, PyAny>>,
    /// Those that were new in the last census, and have lasted: [`crate::lasting`].
    pub(crate) lasting: Vec<Bound<'py, PyAny>>,
    /// Some of those that were searched for so before, and are still there.
    pub(crate) elders: Vec<Bound<'py, PyAny>>,
}

impl Replaced {
    /// Takes in a census whose addresses are good still, and keeps alive what is new in it; `tracker` knows the one
    /// before.
    pub(crate) fn meet<'py>(
        &mut self,
        heap: &mut Heap<'py>,
        census: &Census,
        tracker: &Tracker,
        suspects: &Suspects,
        in_use: u64,
        boundary: u32,
    ) -> Fresh<'py> {
        let grew = in_use > self.in_use + WORTH && self.in_use > 0;
        self.in_use = in_use;
        // Where something else grows already, this is the less likely cause.
        let due = suspects.is_empty() || boundary.is_multiple_of(SEARCH_AGAIN);
        let all = census.tensors.iter().chain(&census.arrays).copied();
        let before =
            std::mem::replace(&mut self.before, all.map(|object| (object, inner(heap, object))).collect());
        // In the first census everything is new.
        let fresh = self
            .before
            .iter()
            .filter(|(object, inner)| !before.is_empty() && before.get(object) != Some(inner));
        let fresh = fresh.map(|(object, inner)| (*object, *inner)).collect();
        let mut young = std::mem::replace(&mut self.fresh, fresh);
        let lives = |object: &Address, inner: &usize| self.before.get(object) == Some(inner);
        young.retain(|object, inner| lives(object, inner));
        for elders in &mut self.elders {
            elders.retain(|(object, inner)| lives(object, inner));
        }
        self.elders.retain(|elders| !elders.is_empty());
        let (mut lasting, mut elders) = (Vec::new(), Vec::new());
        if grew && !young.is_empty() && self.is_due(suspects) {
            lasting = heap.hold(young.into_keys().take(MOST_LASTING));
            // Others each time.
            let some = |known: &Vec<(Address, usize)>| {
                let first = boundary as usize % known.len();
                (0..known.len().min(ELDERS)).map(|at| known[(first + at) % known.len()].0).collect::<Vec<_>>()
            };
            elders = heap.hold(self.elders.iter().flat_map(some));
        }
        if !grew {
            return Fresh::default();
        }
        if !due {
            return Fresh { lasting, elders, ..Fresh::default() };
        }
        let containers = Self::fresh_containers(census, tracker);
        heap.keep(containers.iter().map(|candidate| candidate.address));
        let objects = heap.hold(self.fresh.keys().copied());
        Fresh { containers, objects, lasting, elders }
    }

    /// Remembers what was searched for because it has lasted.
    pub(crate) fn remember(&mut self, picked: &[Address]) {
        let known = picked.iter().filter_map(|object| Some((*object, *self.before.get(object)?)));
        let known: Vec<_> = known.collect();
        if !known.is_empty() {
            self.elders.push_back(known);
        }
        if self.elders.len() > REMEMBERED {
            self.elders.pop_front();
        }
    }

    /// Is what lasts to be searched for? At first at every census, then ever more rarely.
    fn is_due(&mut self, suspects: &Suspects) -> bool {
        let [left, between] = self.wait;
        // Nothing else can tell what grows.
        let left = if between < SEARCHES && !suspects.follows_users() { 0 } else { left };
        self.wait = if left == 0 { [between / 2, between + 1] } else { [left - 1, between] };
        left == 0
    }

    /// Names that grow by replacement.
    pub(crate) fn look<'py>(
        &mut self,
        heap: &mut Heap<'py>,
        fresh: Fresh<'py>,
        suspects: &Suspects,
        boundary: u32,
    ) -> Vec<Renewed> {
        let candidates = Self::candidates(heap, fresh.containers, fresh.objects);
        if candidates.is_empty() {
            return Vec::new();
        }
        let targets: AddressSet = candidates.iter().map(|candidate| candidate.address).collect();
        let (paths, _) = holders::find(heap, &targets, Scope::User);
        let stored = holders::find_stored(heap, &paths);
        let (mut renewed, mut seen) = (Vec::new(), HashSet::new());
        let named = candidates.iter().flat_map(|candidate| {
            let (path, stored) = (paths.get(&candidate.address), stored.get(&candidate.address));
            let other = path.filter(|_| stored.is_some());
            let names = [(path, None), (stored, other)];
            names.into_iter().filter_map(move |(path, other)| Some((candidate, path?, other)))
        });
        for (&Candidate { address, kind, size, .. }, path, other) in named {
            if path.nodes.iter().any(|node| suspects.is_container(*node)) {
                continue;
            }
            let mut label = label::describe(heap, path);
            let owner = owner_of_entries(heap, path, &label);
            let entries = owner.and_then(|owner| Some((owner, Entries::of(heap, owner, kind)?)));
            let (count, size) =
                entries.as_ref().map_or((1, size), |(_, entries)| (entries.count, entries.size));
            if count > 1 {
                label.name_all_entries();
            }
            let key = key_of(&label.holder);
            if !seen.insert(key.clone()) {
                continue;
            }
            let (counted, sizes) = self.sizes.entry(key).or_default();
            if *counted != count || sizes.last().is_some_and(|(_, last)| *last > size) {
                sizes.clear();
            }
            *counted = count;
            sizes.push((boundary, size));
            if sizes.windows(2).filter(|pair| pair[1].1 > pair[0].1).count() >= LARGER {
                let also = other.map(|variable| also_called(&label::describe(heap, variable).holder));
                renewed.push(Renewed {
                    label,
                    entries: entries.map(|(owner, entries)| (owner, entries.count)),
                    also,
                    kind,
                    sizes: sizes.clone(),
                    type_name: heap.type_name(address),
                });
            }
        }
        renewed
    }

    /// The longest containers that were not there before.
    fn fresh_containers(census: &Census, tracker: &Tracker) -> Vec<Candidate> {
        let fresh = |seen: &&Seen| seen.len >= SHORTEST && !tracker.knows(seen.address);
        let candidates = census.containers.iter().filter(fresh).map(|seen| {
            let kind = seen.shape.kind();
            let size = seen.len as u64;
            Candidate { address: seen.address, kind, size, weight: size * 64 }
        });
        heaviest(candidates.collect())
    }

    /// The heaviest of all that is new.
    fn candidates<'py>(
        heap: &mut Heap<'py>,
        mut candidates: Vec<Candidate>,
        objects: Vec<Bound<'py, PyAny>>,
    ) -> Vec<Candidate> {
        for object in objects {
            let bytes = size_of(heap, &object).unwrap_or(0);
            if bytes >= SMALLEST_BYTES {
                let address = object.as_ptr() as Address;
                heap.keep([address]);
                let kind = ContainerKind::Tensor;
                candidates.push(Candidate { address, kind, size: bytes, weight: bytes });
            }
        }
        heaviest(candidates)
    }
}

impl Entries {
    /// Those that are tensors or arrays, or containers of one kind; `None` if there are none, or too many to be sized.
    pub(crate) fn of(heap: &mut Heap<'_>, owner: Address, kind: ContainerKind) -> Option<Self> {
        if heap.length(owner)? > MOST_ENTRIES {
            return None;
        }
        let mut values = Vec::new();
        if heap.type_of(owner).shape == Shape::Dict {
            values.extend(heap::Entries::of(owner).map(|(_, value)| value));
        } else {
            heap.referents(owner, &mut |value| values.push(value));
        }
        let (mut count, mut size) = (0, 0);
        for value in heap.hold(values) {
            let shape = heap.type_of(value.as_ptr() as Address).shape;
            let of_kind = match shape {
                Shape::Tensor | Shape::Array => kind == ContainerKind::Tensor,
                _ => shape.kind() == kind,
            };
            if of_kind && let Some(bytes) = size_of(heap, &value) {
                count += 1;
                size += bytes;
            }
        }
        (count > 0).then_some(Self { count, size })
    }
}

/// The dict or list whose entry a path ends at.
fn owner_of_entries(heap: &mut Heap<'_>, path: &Path, label: &Label) -> Option<Address> {
    let last = label.holder.path.last()?;
    let owner = *path.nodes.get(path.nodes.len().checked_sub(2)?)?;
    let holds = matches!(last.kind, StepKind::Key | StepKind::Index)
        && matches!(heap.type_of(owner).shape, Shape::Dict | Shape::List);
    holds.then_some(owner)
}

/// What a tensor or array refers to as its own: another object at the same address has something else, most likely.
///
/// It is the first pointer behind the head of the object: in an array the address of its data (numpy, `ndarraytypes.h`), in
/// a tensor that of its `TensorImpl`, in some versions behind a flag (torch, `python_variable.h`).
fn inner(heap: &mut Heap<'_>, object: Address) -> usize {
    if heap.type_of(object).basic_size < HEAD + 2 * WORD {
        return 0;
    }
    match read_word(object + HEAD) {
        0 | 1 => read_word(object + HEAD + WORD),
        pointer => pointer,
    }
}

fn heaviest(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.weight));
    candidates.truncate(SEARCHED);
    candidates
}

/// Bytes of a tensor or array, elements of a container.
pub(crate) fn size_of<'py>(heap: &mut Heap<'py>, object: &Bound<'py, PyAny>) -> Option<u64> {
    let address = object.as_ptr() as Address;
    match heap.type_of(address).shape {
        Shape::Tensor if !heap.is_plain_tensor(object) => None,
        Shape::Array if type_address(address) != heap.ndarray() => None,
        Shape::Tensor | Shape::Array => object.getattr("nbytes").ok()?.extract().ok(),
        _ => heap.length(address).map(|length| length as u64),
    }
}
