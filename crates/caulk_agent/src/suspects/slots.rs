//! Which of the many things that grow are followed: the heaviest, and what stands still or weighs next to nothing makes room.

use super::Suspects;
use super::item::Suspect;
use super::set_aside::Aside;
use crate::census::{Grown, Seen};
use crate::heap::{Address, Entries, Heap, Shape, item, type_address};

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

/// Bytes that an element is taken to keep of which only the type is known: a tensor, an array and the like, an object of
/// the collector's, whatever is not looked at.
const HEAVY: u64 = 64 << 10;
const OBJECT: u64 = 1 << 10;

impl Suspects {
    /// Follows these as far as there is room, what is likely to weigh most first.
    pub(super) fn admit(&mut self, heap: &mut Heap<'_>, mut grown: Vec<&Grown>, boundaries: &[u32]) {
        grown.retain(|grown| !self.set_aside.is_light(grown));
        let mut weighed: Vec<(u64, &Grown)> =
            grown.into_iter().map(|grown| (likely_bytes(heap, grown.seen), grown)).collect();
        weighed.sort_by_key(|(likely, grown)| std::cmp::Reverse(likely.saturating_mul(grown.gained as u64)));
        for (likely, grown) in weighed {
            let most = if grown.rare.is_some() { MOST_RARE } else { FOLLOWED };
            // What is light itself makes nobody go.
            let may_weigh = likely >= OBJECT || likely.saturating_mul(grown.gained as u64) >= LIGHT;
            let room =
                self.by_address.len() < most || (grown.rare.is_none() && may_weigh && self.make_room());
            let Some(aside) = room.then(|| self.set_aside.0.remove(&grown.seen.address)) else { continue };
            if let Some(Aside { at, .. }) = aside {
                self.follow_again(at, grown, boundaries);
            } else if self.items.len() < MOST_ITEMS {
                self.follow(heap, grown, likely, boundaries);
            }
        }
    }

    /// It was followed before: its numbers go on.
    fn follow_again(&mut self, at: usize, grown: &Grown, boundaries: &[u32]) {
        let (address, item) = (grown.seen.address, &mut self.items[at]);
        item.address = Some((address, type_address(address)));
        item.gained = grown.gained as u64;
        item.note_length(grown.seen.len as u64);
        item.pending.extend(boundaries.first().map(|boundary| (*boundary, grown.seen.len as u64)));
        self.by_address.insert(address, at);
    }

    /// Lets go of what is least worth being followed; false where everything is.
    fn make_room(&mut self) -> bool {
        let slots = self.by_address.iter().map(|(address, at)| (*address, &self.items[*at]));
        let spare = slots.filter_map(|(address, item)| Some((item.spare()?, address)));
        let Some((_, address)) = spare.min() else { return false };
        let Some(at) = self.by_address.remove(&address) else { return false };
        let item = &mut self.items[at];
        let is_light = item.is_light();
        if let Some((address, object_type)) = item.address.take() {
            let aside = Aside { object_type, at, newest: item.newest(), gained: item.gained, is_light };
            self.set_aside.0.insert(address, aside);
        }
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

    /// Is what it has gained next to nothing, as far as is known for certain: it was looked into, or keeps plain values?
    pub(super) fn is_light(&self) -> bool {
        let keeps_plain_values = self.address.is_some() && self.likely_bytes < OBJECT;
        (self.looked.is_some() || keeps_plain_values) && self.weight() < LIGHT
    }
}

/// Bytes that an element of this container is likely to keep, by the type of a young one.
fn likely_bytes(heap: &mut Heap<'_>, seen: Seen) -> u64 {
    let element = match seen.shape {
        Shape::Buffer | Shape::Items => return 1,
        Shape::List => newest_of_list(seen),
        Shape::Dict => newest_of_dict(seen),
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
    item(seen.address, seen.len.checked_sub(1)?)
}

/// Where entries have been deleted, an older one.
fn newest_of_dict(seen: Seen) -> Option<Address> {
    let mut entries = Entries::of(seen.address);
    entries.skip_to(seen.len.saturating_sub(1));
    entries.next().map(|(_, value)| value)
}
