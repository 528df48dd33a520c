//! What grows, under a number each: followed over the boundaries, explained once, traced until a line is known.

use std::time::Duration;

use caulk_wire::ContainerKind;

mod armed;
mod exit;
mod exit_watch;
mod explained;
mod item;
mod key;
mod lasting;
mod named;
mod recount;
mod set_aside;
mod slots;
mod traced;

pub(crate) use explained::Looking;
pub(crate) use item::Place;
pub(crate) use key::{also_called, key_of};

use armed::Armed;
use item::Suspect;
use set_aside::SetAside;

use crate::budget::Price;
use crate::census::{self, Census, Grown};
use crate::channel::Channel;
use crate::heap::{Address, AddressMap, AddressSet, Heap, type_address};
use crate::peaks::Peaks;

/// Everything that was seen to grow.
pub(crate) struct Suspects {
    items: Vec<Suspect>,
    by_address: AddressMap<usize>,
    set_aside: SetAside,
    next_id: u32,
    armed: Option<Armed>,
    refused: u8,
    peaks: Peaks,
    exit: exit_watch::Watch,
    /// CPU time that looks have taken into what had outgrown the last one.
    looked_again: Duration,
    /// What a look that goes through all graphs is taken to cost.
    walks: Price,
}

impl Default for Suspects {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            by_address: AddressMap::default(),
            set_aside: SetAside::default(),
            next_id: 0,
            armed: None,
            refused: 0,
            peaks: Peaks::default(),
            exit: exit_watch::Watch::default(),
            looked_again: Duration::ZERO,
            walks: Price::new(Duration::from_millis(10)),
        }
    }
}

impl Suspects {
    /// Is this one of the containers that grow?
    pub(crate) fn is_container(&self, address: Address) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Has nothing grown so far?
    pub(crate) fn is_empty(&self) -> bool {
        !self.items.iter().any(Suspect::has_grown)
    }

    /// Has something of the program's own grown?
    pub(crate) fn follows_users(&self) -> bool {
        self.items.iter().any(|item| item.by_user && item.has_grown())
    }

    pub(crate) fn follows_graphs(&self) -> bool {
        self.items.iter().any(|item| item.kind == ContainerKind::Graph)
    }

    /// Takes in a census whose addresses are good still: lengths of what is followed, and what is to be followed from now
    /// on. All of these are kept alive.
    pub(crate) fn meet_containers(
        &mut self,
        heap: &mut Heap<'_>,
        census: &Census,
        grown: &[Grown],
        boundaries: &[u32],
        channel: &mut Channel,
    ) {
        let Some(&boundary) = boundaries.first() else { return };
        let mut met = AddressSet::default();
        for seen in &census.containers {
            if let Some(&at) = self.by_address.get(&seen.address)
                && self.items[at].address == Some((seen.address, type_address(seen.address)))
            {
                met.insert(seen.address);
                self.items[at].note_length(seen.len as u64);
                self.items[at].pending.push((boundary, seen.len as u64));
                self.items[at].shallow = heap.shallow_bytes(seen.address) as u64;
            }
        }
        self.forget_dead(&met);
        self.set_aside.confirm(&census.containers);
        let grown_addresses = grown.iter().map(|grown| grown.seen.address);
        heap.keep(met.into_iter().chain(grown_addresses));
        let mut unknown = Vec::new();
        for grown in grown {
            if let Some(&at) = self.by_address.get(&grown.seen.address) {
                self.items[at].gained = grown.gained as u64;
                self.items[at].is_rare &= grown.rare.is_some();
            } else {
                unknown.push(grown);
            }
        }
        self.admit(heap, unknown, boundaries);
        let explained = self.items.iter_mut().filter(|item| item.explained);
        explained.for_each(|item| item.send_lengths(channel));
    }

    /// Takes in how long what is followed has become amid an epoch. What is shorter than at its end may be filled again.
    /// All of it is kept alive.
    pub(crate) fn meet_known(
        &mut self,
        heap: &mut Heap<'_>,
        census: &Census,
        boundary: u32,
        channel: &mut Channel,
    ) {
        let mut met = AddressSet::default();
        for seen in &census.containers {
            let Some(&at) = self.by_address.get(&seen.address) else { continue };
            let item = &mut self.items[at];
            if item.address != Some((seen.address, type_address(seen.address))) {
                continue;
            }
            met.insert(seen.address);
            if seen.len as u64 > item.newest() {
                item.pending.push((boundary, seen.len as u64));
                item.shallow = heap.shallow_bytes(seen.address) as u64;
            }
        }
        self.forget_dead(&met);
        heap.keep(met);
        let explained = self.items.iter_mut().filter(|item| item.explained);
        explained.for_each(|item| item.send_lengths(channel));
    }

    fn forget_dead(&mut self, met: &AddressSet) {
        for (address, at) in &self.by_address {
            if !met.contains(address) {
                self.items[*at].address = None;
            }
        }
        self.by_address.retain(|address, _| met.contains(address));
    }

    fn follow(&mut self, heap: &mut Heap<'_>, grown: &Grown, likely: u64, boundaries: &[u32]) {
        let address = grown.seen.address;
        let kind = grown.seen.shape.kind();
        let history = boundaries.iter().zip(grown.history).filter(|(_, len)| *len > 0);
        let mut pending: Vec<_> = history.map(|(boundary, len)| (*boundary, u64::from(len))).collect();
        if let Some((ago, len)) = grown.rare.filter(|(ago, _)| usize::from(*ago) >= census::HISTORY) {
            pending.extend(boundaries.get(usize::from(ago)).map(|first| (*first, u64::from(len))));
        }
        pending.reverse();
        let mut item = self.item(kind, heap.type_name(address));
        item.address = Some((address, type_address(address)));
        item.gained = grown.gained as u64;
        item.likely_bytes = likely;
        item.is_rare = grown.rare.is_some();
        item.shallow = heap.shallow_bytes(address) as u64;
        for (_, length) in &pending {
            item.note_length(*length);
        }
        item.pending = pending;
        self.by_address.insert(address, self.items.len());
        self.items.push(item);
    }

    fn item(&mut self, kind: ContainerKind, type_name: String) -> Suspect {
        Suspect::new(self.number(), kind, type_name)
    }

    /// A number that nothing else has.
    pub(crate) fn number(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id - 1
    }
}
