//! Containers that are not followed any more, and may be again.

use crate::census::{Grown, Seen};
use crate::heap::{Address, AddressMap, type_address};

/// Containers that have made room for others, by address.
#[derive(Default)]
pub(super) struct SetAside(pub(super) AddressMap<Aside>);

/// A container that has made room.
pub(super) struct Aside {
    pub(super) object_type: Address,
    /// Number of its item, under which it is followed again.
    pub(super) at: usize,
    pub(super) newest: u64,
    pub(super) gained: u64,
    pub(super) is_light: bool,
}

impl SetAside {
    /// Takes in a census: what is not in it, or is shorter than it was, is not there any more.
    pub(super) fn confirm(&mut self, containers: &[Seen]) {
        if self.0.is_empty() {
            return;
        }
        let mut alive = AddressMap::default();
        for seen in containers {
            if let Some(aside) = self.0.remove(&seen.address)
                && aside.object_type == type_address(seen.address)
                && seen.len as u64 >= aside.newest
            {
                alive.insert(seen.address, Aside { newest: seen.len as u64, ..aside });
            }
        }
        self.0 = alive;
    }

    /// Is it known to be light, and has not gained twice as much since?
    pub(super) fn is_light(&self, grown: &Grown) -> bool {
        let aside = self.0.get(&grown.seen.address).filter(|aside| aside.is_light);
        aside.is_some_and(|aside| (grown.gained as u64) < aside.gained.saturating_mul(2))
    }
}
