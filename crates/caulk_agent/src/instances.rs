//! Instances of one class whose number grows from census to census, while no container gets longer: links of a chain.
//!
//! The contents of such instances may be held elsewhere as well, by a buffer of bounded size for example. A path to these
//! leads to the buffer, so the instances themselves are searched for.

use std::cmp::Ordering;
use std::time::Duration;

use pyo3::prelude::*;

use crate::census::Census;
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, type_address};
use crate::holders;
use crate::lasting::{self, By, Kept};
use crate::replaced::size_of;
use crate::suspects::Suspects;

/// Instances of a class from which on their number is followed.
const FEWEST: u64 = 4;
/// Censuses in a row with more instances than before, by at least so many, that make growth in step.
const RISES: u8 = 3;
const LEAST: u64 = 2;
/// Classes that are searched for at one census, and instances of each.
const CLASSES: usize = 3;
const SAMPLED: usize = 16;
/// Growth of the bytes in use since the last census below which nothing is searched for.
const WORTH: u64 = 256 << 10;
/// Censuses between two searches. The first ones follow each other, so that the second gives the growth.
const SEARCH_AGAIN: u32 = 8;
const FIRST_SEARCHES: u32 = 3;
/// CPU time for the search.
const TIME_LIMIT: Duration = Duration::from_millis(40);
/// Nodes of a path that are kept.
const LONGEST_PATH: usize = 256;
/// Objects of one instance that are measured.
const MOST_OWN: usize = 256;

/// Numbers of instances by class.
#[derive(Default)]
pub(crate) struct Instances {
    counts: AddressMap<Count>,
    /// Types whose objects are no instances of a class: containers, tensors.
    others: AddressSet,
    in_use: u64,
    searches: u32,
    wait: u32,
}

#[derive(Clone, Copy)]
struct Count {
    count: u64,
    rises: u8,
}

/// A sample of the instances of one class, by address.
pub(crate) struct Picked {
    sample: Vec<Address>,
    /// Instances that were added since the last census.
    gained: u64,
}

/// The same, kept alive.
pub(crate) struct Group<'py> {
    sample: Vec<Bound<'py, PyAny>>,
    gained: u64,
}

impl Picked {
    /// Keeps it alive, while its addresses are still good.
    pub(crate) fn hold<'py>(self, heap: &Heap<'py>) -> Group<'py> {
        Group { sample: heap.hold(self.sample), gained: self.gained }
    }
}

impl Instances {
    /// Takes in a census whose addresses are still good, and picks a sample of the classes that grow in step. `young` are
    /// the objects that were made since the first census, the oldest first.
    pub(crate) fn meet(
        &mut self,
        heap: &mut Heap<'_>,
        census: &Census,
        young: &[Address],
        in_use: u64,
    ) -> Vec<Picked> {
        let grew = in_use > self.in_use + WORTH && self.in_use > 0;
        self.in_use = in_use;
        let before = std::mem::take(&mut self.counts);
        let mut rising: Vec<(Address, u64)> = Vec::new();
        for (class, tally) in census.types.iter().filter(|(_, tally)| tally.count >= FEWEST) {
            let known = before.get(class);
            let gained = known.map_or(0, |known| tally.count.saturating_sub(known.count));
            let rises = known.map_or(0, |known| match tally.count.cmp(&known.count) {
                Ordering::Less => 0,
                // A generation of objects may be made once in several censuses.
                _ if gained < LEAST => known.rises,
                _ => known.rises.saturating_add(1),
            });
            self.counts.insert(*class, Count { count: tally.count, rises });
            if rises >= RISES && gained >= LEAST && !self.others.contains(class) {
                rising.push((*class, gained));
            }
        }
        // Another type may be made where one was that is gone.
        self.others.retain(|class| census.types.contains_key(class));
        self.wait = self.wait.saturating_sub(1);
        if !grew || rising.is_empty() || self.wait > 0 {
            return Vec::new();
        }
        let groups = sample(heap, &rising, young, &mut self.others);
        self.searches += u32::from(!groups.is_empty());
        self.wait = match groups.is_empty() {
            true => 2,
            false if self.searches < FIRST_SEARCHES => 0,
            false => SEARCH_AGAIN,
        };
        groups
    }
}

/// Some instances of each class. Types that are no classes join the `others`.
fn sample(
    heap: &mut Heap<'_>,
    rising: &[(Address, u64)],
    young: &[Address],
    others: &mut AddressSet,
) -> Vec<Picked> {
    let mut found: AddressMap<Vec<Address>> = rising.iter().map(|(class, _)| (*class, Vec::new())).collect();
    for object in young {
        let class = type_address(*object);
        let Some(objects) = found.get_mut(&class) else { continue };
        if objects.is_empty() && !is_instance(heap, *object) {
            found.remove(&class);
            others.insert(class);
        } else {
            objects.push(*object);
        }
    }
    let mut classes: Vec<(u64, Vec<Address>)> =
        rising.iter().filter_map(|(class, gained)| Some((*gained, found.remove(class)?))).collect();
    classes.retain(|(_, objects)| !objects.is_empty());
    classes.sort_by_key(|(gained, _)| std::cmp::Reverse(*gained));
    let group = |(gained, objects): (u64, Vec<Address>)| {
        let distance = objects.len().div_ceil(SAMPLED);
        Picked { sample: objects.iter().copied().step_by(distance).collect(), gained }
    };
    classes.into_iter().take(CLASSES).map(group).collect()
}

fn is_instance(heap: &mut Heap<'_>, object: Address) -> bool {
    let info = heap.type_of(object);
    info.instance && info.shape == Shape::Plain
}

/// The chains that these are links of, with the bytes that their new links keep.
pub(crate) fn look(heap: &mut Heap<'_>, groups: Vec<Group<'_>>, suspects: &Suspects) -> Vec<Kept> {
    let addresses = |group: &Group<'_>| -> Vec<Address> {
        group.sample.iter().map(|object| object.as_ptr() as Address).collect()
    };
    let classes: Vec<(Vec<Address>, u64)> =
        groups.iter().map(|group| (addresses(group), group.gained)).collect();
    let targets: AddressSet = classes.iter().flat_map(|(objects, _)| objects).copied().collect();
    heap.keep(targets.iter().copied());
    drop(groups);
    let paths = holders::find_beginnings(heap, &targets, &AddressSet::default(), LONGEST_PATH, TIME_LIMIT);
    let mut kept: Vec<Kept> = Vec::new();
    for (objects, gained) in classes {
        let mut own = objects.iter().filter_map(|object| paths.get(object));
        let outside = |path: &&holders::Path| !path.nodes.iter().any(|node| suspects.is_container(*node));
        let Some(named) = own.by_ref().filter(outside).find_map(|path| lasting::chain_on(heap, path)) else {
            continue;
        };
        let mut bytes: Vec<u64> = objects.iter().map(|object| own_bytes(heap, *object)).collect();
        bytes.sort_unstable();
        // The contents of the newest may still be held elsewhere, and count for nothing there.
        let each = bytes[bytes.len() * 3 / 4];
        kept.push(Kept { by: By::Named(Box::new(named)), bytes: each * gained });
    }
    kept
}

/// Bytes of an instance and of all that only it keeps, without other instances of its class.
fn own_bytes(heap: &mut Heap<'_>, instance: Address) -> u64 {
    let class = type_address(instance);
    let mut bytes = heap.shallow_bytes(instance) as u64;
    let (mut open, mut children, mut seen) = (vec![instance], Vec::new(), 0);
    while let Some(object) = open.pop() {
        heap.referents(object, &mut |child| children.push(child));
        for child in std::mem::take(&mut children) {
            if seen >= MOST_OWN || type_address(child) == class || heap.references(child) != 1 {
                continue;
            }
            seen += 1;
            heap.keep([child]);
            bytes += heap.shallow_bytes(child) as u64;
            if matches!(heap.type_of(child).shape, Shape::Array | Shape::Tensor) {
                let array = heap.own(child);
                bytes += size_of(heap, &array).unwrap_or(0);
            } else {
                open.push(child);
            }
        }
    }
    bytes
}
