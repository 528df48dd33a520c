//! What keeps a thing that grows, and what is in it.

use std::time::Duration;

use super::Suspects;
use super::item::Suspect;
use crate::budget::Budget;
use crate::channel::Channel;
use crate::contents::{self, Walk};
use crate::heap::{Address, AddressSet, Heap};
use crate::heap_profile::Sampler;
use crate::holders::{self, Scope};

/// Containers looked into at one boundary.
const LOOKS: usize = 12;
/// CPU time that one look is taken to cost.
const LOOK: Duration = Duration::from_millis(3);
/// Boundaries between two looks into the same container.
const LOOK_AGAIN: u32 = 4;

impl Suspects {
    /// Is there something whose holder is not known yet?
    pub(crate) fn has_unexplained(&self) -> bool {
        self.items.iter().any(Suspect::is_unexplained)
    }

    /// Finds what keeps the new ones.
    pub(crate) fn explain(&mut self, heap: &mut Heap<'_>, boundary: u32, channel: &mut Channel) {
        let unexplained = self.items.iter().filter(|item| item.is_unexplained());
        let targets: AddressSet = unexplained.filter_map(|item| Some(item.address?.0)).collect();
        // What the program itself keeps is found soon; only what is left over is worth a walk over everything.
        let again = self.items.iter().any(|item| item.is_unexplained() && item.searches > 0);
        let (paths, _) = holders::find(heap, &targets, if again { Scope::All } else { Scope::User });
        for item in self.items.iter_mut().filter(|item| item.is_unexplained()) {
            item.searches += 1;
            let path = item.address.and_then(|(address, _)| paths.get(&address));
            item.explain(heap, path, boundary, channel);
        }
    }

    /// Looks into the heaviest, each once in a while.
    pub(crate) fn look(
        &mut self,
        heap: &mut Heap<'_>,
        boundary: u32,
        epochs: u64,
        budget: &Budget,
        sampler: Option<Sampler>,
        channel: &mut Channel,
    ) {
        let due = |item: &Suspect| item.looked.is_none_or(|looked| boundary >= looked + LOOK_AGAIN);
        let mut order: Vec<usize> = (0..self.items.len())
            .filter(|at| {
                self.items[*at].explained && self.items[*at].address.is_some() && due(&self.items[*at])
            })
            .collect();
        order.sort_by_key(|at| {
            let item = &self.items[*at];
            std::cmp::Reverse((item.looked.is_none(), item.by_user, item.weight()))
        });
        for at in order.into_iter().take(LOOKS) {
            if !budget.allows(LOOK, Duration::ZERO) {
                return;
            }
            let Some((address, _)) = self.items[at].address else { continue };
            // Hooks of one object sit in the registries of several layers.
            let name = self.items[at].name.clone();
            let together: Vec<Address> = if name.ends_with("_hooks") {
                self.items
                    .iter()
                    .filter(|item| item.name == name)
                    .filter_map(|item| Some(item.address?.0))
                    .collect()
            } else {
                vec![address]
            };
            let mut look = |walk| contents::look_together(heap, &together, epochs, walk);
            let walked = self.walks.pay(budget, || look(Some(Walk { sampler })));
            let mut found = walked.unwrap_or_else(|| look(None));
            let item = &mut self.items[at];
            item.correct(&mut found);
            item.looked = Some(boundary);
            item.bytes_per_element = found.bytes_per_element;
            found.id = item.id;
            found.boundary = boundary;
            channel.send(&found.into());
        }
    }
}
