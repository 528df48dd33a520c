//! A set of objects in little memory: one byte for each place where an object may begin, of what type it is.
//!
//! Objects lie close together, so that a quarter of a million of them take a megabyte or two, and most questions go to a
//! page that was asked just before. What was freed and made anew is another object, which its type mostly tells.

use super::{Address, AddressMap};

/// Bytes of memory that one page of types stands for, and objects' alignment, as powers of two.
const PAGE: u32 = 18;
const ALIGNMENT: u32 = 4;
const PLACES: usize = 1 << (PAGE - ALIGNMENT);

/// A set of objects with their types.
#[derive(Default)]
pub(crate) struct AddressTypes {
    pages: AddressMap<Box<[u8; PLACES]>>,
}

impl AddressTypes {
    pub(crate) fn insert(&mut self, object: Address, object_type: Address) {
        let (page, place) = parts(object);
        self.pages.entry(page).or_insert_with(|| Box::new([0; PLACES]))[place] = mark(object_type);
    }

    pub(crate) fn contains(&self, object: Address, object_type: Address) -> bool {
        let (page, place) = parts(object);
        self.pages.get(&page).is_some_and(|types| types[place] == mark(object_type))
    }
}

/// Page, and place in it.
fn parts(object: Address) -> (Address, usize) {
    (object >> PAGE << PAGE, (object >> ALIGNMENT) % PLACES)
}

/// What is kept of a type: never 0.
fn mark(object_type: Address) -> u8 {
    ((object_type >> ALIGNMENT) % usize::from(u8::MAX)) as u8 + 1
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
