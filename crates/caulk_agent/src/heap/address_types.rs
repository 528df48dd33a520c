//! A set of objects in little memory: four bits for each place where an object may begin, of what type it is.
//!
//! Objects lie close together, so that a third of a million of them take some 4 MB, and most questions go to a page that
//! was asked just before. What was freed and made anew is another object, which its type tells in 14 of 15 cases.

use super::{Address, AddressMap};

/// Bytes of memory that one page of types stands for, and objects' alignment, as powers of two.
const PAGE: u32 = 14;
const ALIGNMENT: u32 = 4;
const BYTES: usize = 1 << (PAGE - ALIGNMENT - 1);
/// Pages of a set: 8 MB. What lies on others is taken to be in it.
const MOST_PAGES: usize = 1 << 14;

/// A set of objects with their types.
#[derive(Default)]
pub(crate) struct AddressTypes {
    pages: AddressMap<Vec<u8>>,
}

impl AddressTypes {
    pub(crate) fn insert(&mut self, object: Address, object_type: Address) {
        let (page, byte, shift) = parts(object);
        if !self.pages.contains_key(&page) {
            let mut types = Vec::new();
            let room = self.pages.len() < MOST_PAGES && self.pages.try_reserve(1).is_ok();
            if !room || types.try_reserve_exact(BYTES).is_err() {
                return;
            }
            types.resize(BYTES, 0);
            self.pages.insert(page, types);
        }
        if let Some(types) = self.pages.get_mut(&page) {
            types[byte] = types[byte] & !(0xf << shift) | mark(object_type) << shift;
        }
    }

    pub(crate) fn contains(&self, object: Address, object_type: Address) -> bool {
        let (page, byte, shift) = parts(object);
        let full = self.pages.len() >= MOST_PAGES;
        self.pages.get(&page).map_or(full, |types| types[byte] >> shift & 0xf == mark(object_type))
    }
}

/// Page, byte in it, bit in that.
fn parts(object: Address) -> (Address, usize, u32) {
    let place = object >> ALIGNMENT;
    (object >> PAGE << PAGE, (place >> 1) % BYTES, (place & 1) as u32 * 4)
}

/// What is kept of a type: 1 to 15.
fn mark(object_type: Address) -> u8 {
    ((object_type >> ALIGNMENT) % 15) as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_distant_objects_and_types_are_told_apart() {
        let (list, dict) = (0x9_5ac0, 0x9_5c60);
        let mut set = AddressTypes::default();
        let known = [0x7f00_0000_0010, 0x7f00_0004_0010, 0x5500_0000_0ff0];
        for object in known {
            set.insert(object, list);
        }
        for object in known {
            assert!(set.contains(object, list) && !set.contains(object, dict));
            assert!(!set.contains(object + 16, list) && !set.contains(object - 16, list), "{object:x}");
        }
        assert!(!set.contains(0x7f00_0008_0010, list));
        set.insert(known[0], dict);
        assert!(set.contains(known[0], dict) && !set.contains(known[0], list));
    }
}
