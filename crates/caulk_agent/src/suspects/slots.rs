//! Which of the many things that grow are followed: the heaviest, and what stands still or weighs next to nothing makes room.

use pyo3::ffi;

use super::Suspects;
use super::item::Suspect;
use crate::census::{Grown, Seen};
use crate::heap::{Address, AddressMap, Heap, Shape};

/// Containers followed at a time.
const FOLLOWED: usize = 64;
/// ... beyond which those that grow every so many censuses are left out.
const MOST_RARE: usize = FOLLOWED / 4;
/// Things followed in the whole life of a process.
const MOST_ITEMS: usize = 1000;
/// Censuses in a row in which something that makes room has not grown, and those for what grows every so many.
const STILL: u8 = 4;
const STILL_RARE: u8 = 64;
/// Bytes that something which makes room has gained at most: as many make a census worth its cost.
const LIGHT: u64 = 128 << 10;
/// Light things that are known to be so.
const MOST_SET_ASIDE: usize = 1 << 14;

/// Bytes that an element is taken to keep of which only the type is known: a tensor, an array and the like, an object of
/// the collector's, whatever is not looked at.
const HEAVY: u64 = 64 << 10;
const OBJECT: u64 = 1 << 10;

/// Containers that grow and were found to be light, with the length that they had first and what they had gained.
#[derive(Default)]
pub(super) struct SetAside(AddressMap<(usize, u64)>);

impl SetAside {
    /// Is it one of these, and has not gained twice as much since?
    fn has(&self, grown: &Grown) -> bool {
        let first = grown.seen.len - grown.gained;
        self.0
            .get(&grown.seen.address)
            .is_some_and(|(then, gained)| *then == first && (grown.gained as u64) < gained.saturating_mul(2))
    }

    fn put(&mut self, item: &Suspect) {
        if self.0.len() >= MOST_SET_ASIDE {
            self.0.clear();
        }
        if let Some((address, _)) = item.address {
            self.0.insert(address, (item.newest().saturating_sub(item.gained) as usize, item.gained));
        }
    }
}

impl Suspects {
    /// Follows these as far as there is room, what is likely to weigh most first.
    pub(super) fn admit(&mut self, heap: &mut Heap<'_>, mut grown: Vec<&Grown>, boundaries: &[u32]) {
        grown.retain(|grown| !self.set_aside.has(grown));
        let mut weighed: Vec<(u64, &Grown)> =
            grown.into_iter().map(|grown| (likely_bytes(heap, grown.seen), grown)).collect();
        weighed.sort_by_key(|(likely, grown)| std::cmp::Reverse(likely.saturating_mul(grown.gained as u64)));
        for (likely, grown) in weighed {
            if self.items.len() >= MOST_ITEMS {
                break;
            }
            let is_rare = grown.rare.is_some();
            let room = if is_rare {
                self.by_address.len() < MOST_RARE
            } else {
                self.by_address.len() < FOLLOWED || self.make_room()
            };
            if room {
                self.follow(heap, grown, likely, boundaries);
            }
        }
    }

    /// Lets go of what is least worth being followed; false where everything is.
    fn make_room(&mut self) -> bool {
        let slots = self.by_address.iter().map(|(address, at)| (*address, &self.items[*at]));
        let spare = slots.filter_map(|(address, item)| Some((item.spare()?, address)));
        let Some((_, address)) = spare.min() else { return false };
        let Some(at) = self.by_address.remove(&address) else { return false };
        if self.items[at].still == 0 {
            self.set_aside.put(&self.items[at]);
        }
        self.items[at].address = None;
        true
    }
}

impl Suspect {
    /// How little it is worth to be followed on, the least first: what stands still, then what weighs next to nothing.
    fn spare(&self) -> Option<(bool, u64)> {
        let still = if self.is_rare { STILL_RARE } else { STILL };
        let grows = self.still < still;
        (!grows || self.is_light()).then(|| (grows, self.weight()))
    }

    /// Was it looked into, and is next to nothing in what it has gained?
    pub(super) fn is_light(&self) -> bool {
        self.looked.is_some() && self.weight() < LIGHT
    }
}

/// Bytes that an element of this container is likely to keep, by the type of one.
fn likely_bytes(heap: &mut Heap<'_>, seen: Seen) -> u64 {
    let element = match seen.shape {
        Shape::Buffer | Shape::Items => return 1,
        Shape::List => newest_of_list(seen),
        Shape::Dict => first_of_dict(seen.address),
        _ => None,
    };
    let Some(element) = element else { return OBJECT };
    let info = heap.type_of(element);
    let shallow = heap.shallow_bytes(element) as u64;
    match info.shape {
        Shape::Tensor | Shape::Array | Shape::Frame | Shape::Exception => HEAVY,
        _ if info.collected => shallow.max(OBJECT),
        _ => shallow,
    }
}

fn newest_of_list(seen: Seen) -> Option<Address> {
    let last = isize::try_from(seen.len).ok()? - 1;
    // SAFETY: a list or a subclass that is alive, whose length was read just now; the reference is borrowed.
    let item = unsafe { ffi::PyList_GetItem(seen.address as *mut ffi::PyObject, last) };
    (!item.is_null()).then_some(item as Address)
}

fn first_of_dict(dict: Address) -> Option<Address> {
    let (mut position, mut value) = (0, std::ptr::null_mut());
    // SAFETY: a dict or a subclass that is alive; the references are borrowed.
    let found = unsafe {
        ffi::PyDict_Next(dict as *mut ffi::PyObject, &raw mut position, std::ptr::null_mut(), &raw mut value)
    };
    (found != 0 && !value.is_null()).then_some(value as Address)
}
