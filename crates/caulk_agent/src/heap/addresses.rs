//! Addresses of objects, maps and sets of them, and the word at one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Address of an object: compared and looked up; dereferenced only before anything is called, or while it is kept alive.
pub(crate) type Address = usize;

/// Hashes addresses: they are unique and aligned, so one multiplication spreads them well enough.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // Fibonacci hashing (Knuth, TAOCP 3, 6.4); the rotation brings the well-mixed high bits down.
        self.0 = (self.0 ^ (value >> 4)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

pub(crate) type AddressMap<V> = HashMap<Address, V, BuildHasherDefault<AddressHasher>>;
pub(crate) type AddressSet = std::collections::HashSet<Address, BuildHasherDefault<AddressHasher>>;

pub(crate) fn read_word(address: Address) -> Address {
    // SAFETY: callers pass a field of a live object or type, or follow the collector's own links.
    unsafe { *(address as *const Address) }
}
