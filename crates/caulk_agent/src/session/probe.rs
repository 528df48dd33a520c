//! What a probe is: one kind of evidence about a growing heap, collected after a census.

use std::time::Duration;

use pyo3::prelude::*;

use crate::budget::{Budget, RESERVE};
use crate::census::Tracker;
use crate::channel::Channel;
use crate::heap::Heap;
use crate::heap_profile::Sampler;
use crate::instances::Group;
use crate::replaced::{Fresh, Replaced};
use crate::suspects::Suspects;

/// One kind of evidence. A probe keeps what it needs from census to census.
pub(in crate::session) trait Probe: Send {
    /// CPU time that the first look is taken to cost. Later looks cost what the last ones did.
    fn price(&self) -> Duration;

    /// Is there something to look for? `price`: what the look is taken to cost now.
    fn due(&mut self, scene: &Scene<'_, '_>, price: Duration) -> Due;

    /// Looks, and sends messages about what it finds.
    fn look(&mut self, scene: &mut Scene<'_, '_>);

    /// The budget did not allow a look that was due: lets go of what was kept for it.
    fn pass_over(&mut self, _: &mut Scene<'_, '_>) {}
}

/// Is a look due, and how much may it cost?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Due {
    No,
    /// If the budget allows it and the pause is not too long.
    IfItFits,
    /// If the budget allows it, however long the pause is.
    EvenIfLong,
    /// It costs next to nothing, or bounds its cost itself.
    Always,
}

/// What a probe has to work with at one boundary.
pub(in crate::session) struct Scene<'a, 'py> {
    pub(in crate::session) heap: &'a mut Heap<'py>,
    pub(in crate::session) suspects: &'a mut Suspects,
    pub(in crate::session) replaced: &'a mut Replaced,
    pub(in crate::session) channel: &'a mut Channel,
    pub(in crate::session) tracker: &'a Tracker,
    pub(in crate::session) budget: &'a Budget,
    pub(in crate::session) sampler: Option<Sampler>,
    /// Number of the boundary.
    pub(in crate::session) seq: u32,
    pub(in crate::session) epochs: u64,
    pub(in crate::session) held: Held<'py>,
}

/// Objects of the census that are kept alive for the probes that inspect them.
pub(in crate::session) struct Held<'py> {
    pub(in crate::session) tensors: Vec<Bound<'py, PyAny>>,
    pub(in crate::session) fresh: Fresh<'py>,
    /// Of the classes whose number of instances grows in step.
    pub(in crate::session) instances: Vec<Group<'py>>,
}

impl Scene<'_, '_> {
    /// Is so little of the budget left that a look is only for what may weigh something?
    pub(in crate::session) fn is_sparing(&self, price: Duration) -> bool {
        !self.budget.affords(price, RESERVE)
    }
}
