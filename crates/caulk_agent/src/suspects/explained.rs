//! What keeps a thing that grows, and what is in it.

use std::time::Duration;

use caulk_wire::Trait;

use super::Suspects;
use super::item::Suspect;
use crate::budget::{Budget, RESERVE};
use crate::channel::Channel;
use crate::contents::{self, Walk};
use crate::heap::{Address, AddressSet, Heap};
use crate::heap_profile::Sampler;
use crate::holders::{self, Scope};
use crate::stopwatch::Stopwatch;

/// Containers looked into at one boundary.
const LOOKS: usize = 12;
/// CPU time that one look is taken to cost.
const LOOK: Duration = Duration::from_millis(3);
/// CPU time for looks at new ones after a pause that finding their holders has made too long.
const LATE_LOOKS: Duration = Duration::from_millis(10);
/// CPU time for looks into what has outgrown the last one, in the whole life of a process, however little of its budget is
/// left: each container is twice as long at the next, so they are few.
const MOST_AGAIN: Duration = Duration::from_millis(100);
/// Boundaries between two looks into the same container.
const LOOK_AGAIN: u32 = 4;
/// ... that was found to keep next to nothing.
const LIGHT_AGAIN: u32 = 4 * LOOK_AGAIN;

/// When the contents of what grows are inspected, and at what price.
#[derive(Clone, Copy)]
pub(crate) struct Looking<'a> {
    pub(crate) boundary: u32,
    pub(crate) epochs: u64,
    pub(crate) budget: &'a Budget,
    pub(crate) sampler: Option<Sampler>,
}

impl Suspects {
    /// Is there something whose holder is to be searched for so? `sparing`: and that may weigh something.
    pub(crate) fn has_unexplained(&self, scope: Scope, sparing: bool) -> bool {
        self.items.iter().any(|item| item.is_unexplained(scope) && !(sparing && item.is_light()))
    }

    /// What is set aside for things whose contents or holder nobody knows, `paths` for a search for holders; `sparing`: for
    /// those that may weigh something.
    pub(crate) fn waiting(&self, paths: Duration, sparing: bool) -> Duration {
        // What the program does not keep itself may never be searched for.
        let unseen = |item: &&Suspect| {
            let due = item.explained || item.is_unexplained(Scope::User);
            item.address.is_some() && item.looked.is_none() && due && !(sparing && item.is_light())
        };
        let looks = LOOK * self.items.iter().filter(unseen).take(LOOKS).count() as u32;
        looks + if self.has_unexplained(Scope::User, sparing) { paths } else { Duration::ZERO }
    }

    /// Finds what keeps the new ones. What the program itself keeps is found soon; only what is left over is worth a walk
    /// over everything.
    pub(crate) fn explain(
        &mut self,
        heap: &mut Heap<'_>,
        scope: Scope,
        boundary: u32,
        channel: &mut Channel,
    ) {
        let unexplained = self.items.iter().filter(|item| item.is_unexplained(scope));
        let targets: AddressSet = unexplained.filter_map(|item| Some(item.address?.0)).collect();
        let (paths, _) = holders::find(heap, &targets, scope);
        for item in self.items.iter_mut().filter(|item| item.is_unexplained(scope)) {
            item.searches += 1;
            let path = item.address.and_then(|(address, _)| paths.get(&address));
            item.explain(heap, path, boundary, channel);
        }
    }

    /// Looks into the heaviest, each once in a while, and into what has outgrown its last look.
    pub(crate) fn look(&mut self, heap: &mut Heap<'_>, scene: &Looking<'_>, channel: &mut Channel) {
        let (sparing, boundary) = (!scene.budget.affords(LOOK, RESERVE), scene.boundary);
        let due = |item: &Suspect| {
            let again = if item.is_light() { LIGHT_AGAIN } else { LOOK_AGAIN };
            let in_turn = item.looked.is_none_or(|looked| boundary >= looked + again);
            in_turn && !(sparing && item.is_light()) || item.has_outgrown_its_look()
        };
        self.look_into(heap, due, scene, channel);
    }

    fn look_into(
        &mut self,
        heap: &mut Heap<'_>,
        due: impl Fn(&Suspect) -> bool,
        scene: &Looking<'_>,
        channel: &mut Channel,
    ) {
        let Looking { boundary, epochs, budget, sampler } = *scene;
        let is_due = |item: &Suspect| item.explained && item.address.is_some() && due(item);
        let mut order: Vec<usize> = (0..self.items.len()).filter(|at| is_due(&self.items[*at])).collect();
        order.sort_by_key(|at| {
            let item = &self.items[*at];
            std::cmp::Reverse((item.looked.is_none(), item.by_user, item.weight()))
        });
        let started = Stopwatch::start();
        for at in order.into_iter().take(LOOKS) {
            let Some((address, _)) = self.items[at].address else { continue };
            // What nobody has looked into is a suspect for whatever else nobody knows.
            let new = self.items[at].looked.is_none() && started.work() <= LATE_LOOKS;
            let again = self.items[at].has_outgrown_its_look() && self.looked_again <= MOST_AGAIN;
            let late = new && budget.affords(LOOK, Duration::ZERO) || again && started.work() <= LATE_LOOKS;
            if !(late || budget.allows(LOOK, Duration::ZERO)) {
                continue;
            }
            let begun = started.work();
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
            let item = &self.items[at];
            let old = if together.len() > 1 { 0 } else { item.newest().saturating_sub(item.gained) as usize };
            let mut look = |walk| contents::look_together(heap, &together, old, epochs, walk);
            let walk = || look(Some(Walk { sampler }));
            // Short programs end before the next look.
            let walked =
                if new { self.walks.pay_at_last(budget, walk) } else { self.walks.pay(budget, walk) };
            let mut found = walked.unwrap_or_else(|| look(None));
            let item = &mut self.items[at];
            item.correct(&mut found);
            found.traits.extend(item.capacity.map(Trait::Capacity));
            (item.looked, item.looked_length) = (Some(boundary), item.counted);
            item.bytes_per_element = found.bytes_per_element;
            found.id = item.id;
            found.boundary = boundary;
            channel.send(&found.into());
            if again {
                self.looked_again += started.work().saturating_sub(begun);
            }
        }
    }
}
