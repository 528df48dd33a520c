//! A set of objects in little memory: 32 bits for each, of where it lies and of what type it is.
//!
//! A third of a million objects take some 2 MB. What was freed and made anew at the same place takes the old one's room, and
//! is another object, which its type tells in 14 of 15 cases.

use super::Address;
use super::lookahead::prefetch;

/// Objects' alignment as a power of two.
const ALIGNMENT: u32 = 4;
/// Bits of an entry that tell the type; the others are of the address's hash.
const TYPE_BITS: u32 = 4;
/// Most entries: 8 MB. What finds no room is taken to be in the set.
const MOST: usize = 1 << 21;
const FEWEST: usize = 1 << 12;

/// A set of objects with their types: a table with open addressing whose entries tell where they belong, so that it grows
/// without the addresses.
#[derive(Default)]
pub(crate) struct AddressTypes {
    /// Zero where there is none.
    entries: Vec<u32>,
    taken: usize,
    /// Something found no room.
    full: bool,
}

impl AddressTypes {
    pub(crate) fn insert(&mut self, object: Address, object_type: Address) {
        if self.taken >= self.entries.len() / 4 * 3 && !self.grow() {
            self.full = true;
            return;
        }
        self.put(entry(object, object_type));
    }

    #[inline]
    pub(crate) fn contains(&self, object: Address, object_type: Address) -> bool {
        let wanted = entry(object, object_type);
        self.full || !self.entries.is_empty() && self.entries[self.place(wanted)] == wanted
    }

    /// Has the place fetched at which this object is looked for soon.
    #[inline]
    pub(crate) fn fetch(&self, object: Address) {
        let at = ((u64::from(entry(object, 0)) * self.entries.len() as u64) >> u32::BITS) as usize;
        if let Some(place) = self.entries.get(at) {
            prefetch(std::ptr::from_ref(place) as Address);
        }
    }

    fn put(&mut self, entry: u32) {
        let at = self.place(entry);
        self.taken += usize::from(self.entries[at] == 0);
        self.entries[at] = entry;
    }

    /// Where an entry is, or has room: of the same address, whatever the type. There is always room for one more.
    #[inline]
    fn place(&self, entry: u32) -> usize {
        let length = self.entries.len();
        let mut at = ((u64::from(entry) * length as u64) >> u32::BITS) as usize;
        while self.entries[at] != 0 && self.entries[at] >> TYPE_BITS != entry >> TYPE_BITS {
            at = if at + 1 == length { 0 } else { at + 1 };
        }
        at
    }

    /// Makes room; false where there is none.
    fn grow(&mut self) -> bool {
        let length = (self.entries.len() / 2 * 3).clamp(FEWEST, MOST);
        let mut entries = Vec::new();
        if length == self.entries.len() || entries.try_reserve_exact(length).is_err() {
            return false;
        }
        entries.resize(length, 0);
        self.taken = 0;
        for entry in std::mem::replace(&mut self.entries, entries) {
            if entry != 0 {
                self.put(entry);
            }
        }
        true
    }
}

/// The address's hash (Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, 6.4), and a type from 1 to 15.
#[inline]
fn entry(object: Address, object_type: Address) -> u32 {
    let hash = ((object >> ALIGNMENT) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> u32::BITS;
    let mark = (object_type >> ALIGNMENT) % ((1 << TYPE_BITS) - 1) + 1;
    hash as u32 >> TYPE_BITS << TYPE_BITS | mark as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Address = 0x9_5ac0;
    const DICT: Address = 0x9_5c60;

    #[test]
    fn neighbours_and_distant_objects_and_types_are_told_apart() {
        let mut set = AddressTypes::default();
        let known = [0x7f00_0000_0010, 0x7f00_0004_0010, 0x5500_0000_0ff0];
        for object in known {
            assert!(!set.contains(object, LIST));
            set.insert(object, LIST);
        }
        for object in known {
            assert!(set.contains(object, LIST) && !set.contains(object, DICT));
            assert!(!set.contains(object + 16, LIST) && !set.contains(object - 16, LIST), "{object:x}");
        }
        assert!(!set.contains(0x7f00_0008_0010, LIST));
        set.insert(known[0], DICT);
        assert!(set.contains(known[0], DICT) && !set.contains(known[0], LIST));
    }

    #[test]
    fn hundreds_of_thousands_are_kept_in_two_megabytes() {
        let mut set = AddressTypes::default();
        let object = |number: usize| 0x7f12_0000_0000 + number * 112;
        for number in 0..300_000 {
            set.insert(object(number), LIST);
        }
        assert!((0..300_000).all(|number| set.contains(object(number), LIST)));
        let wrong = (300_000..600_000).filter(|number| set.contains(object(*number), LIST)).count();
        assert!(wrong < 1_500, "{wrong}");
        assert!(set.entries.capacity() * size_of::<u32>() <= 2 << 20 | 1 << 19, "{}", set.entries.capacity());
    }

    #[test]
    fn what_finds_no_room_is_taken_to_be_there() {
        let mut set = AddressTypes::default();
        for number in 0..MOST {
            set.insert(0x7f12_0000_0000 + number * 16, LIST);
        }
        assert_eq!(set.entries.len(), MOST);
        assert!(set.contains(0x10, DICT));
    }
}
