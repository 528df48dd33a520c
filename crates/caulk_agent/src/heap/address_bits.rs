//! A set of addresses in little memory: one bit for each place where an object may begin.
//!
//! Objects lie close together, so that a quarter of a million of them take some hundred kilobytes, and most questions go to
//! a page that was asked just before.

use super::{Address, AddressMap};

/// Bytes of memory that one page of bits stands for, and objects' alignment, as powers of two.
const PAGE: u32 = 18;
const ALIGNMENT: u32 = 4;
const WORDS: usize = 1 << (PAGE - ALIGNMENT - 6);

/// A set of addresses of objects.
#[derive(Default)]
pub(crate) struct AddressBits {
    pages: AddressMap<Box<[u64; WORDS]>>,
}

impl AddressBits {
    pub(crate) fn insert(&mut self, address: Address) {
        let (page, word, bit) = parts(address);
        self.pages.entry(page).or_insert_with(|| Box::new([0; WORDS]))[word] |= bit;
    }

    pub(crate) fn contains(&self, address: Address) -> bool {
        let (page, word, bit) = parts(address);
        self.pages.get(&page).is_some_and(|words| words[word] & bit != 0)
    }
}

/// Page, word in it, bit in that.
fn parts(address: Address) -> (Address, usize, u64) {
    let place = address >> ALIGNMENT;
    (address >> PAGE << PAGE, (place >> 6) % WORDS, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_distant_addresses_are_told_apart() {
        let mut set = AddressBits::default();
        let known = [0x7f00_0000_0010, 0x7f00_0004_0010, 0x5500_0000_0ff0];
        for address in known {
            set.insert(address);
        }
        for address in known {
            assert!(set.contains(address));
            assert!(!set.contains(address + 16) && !set.contains(address - 16), "{address:x}");
        }
        assert!(!set.contains(0x7f00_0008_0010));
    }
}
