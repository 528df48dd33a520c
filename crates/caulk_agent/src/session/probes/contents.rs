//! What the elements of a suspect keep.

use std::time::Duration;

use crate::session::probe::{Due, Probe, Scene};
use crate::suspects::Looking;

pub(super) struct Contents;

impl Probe for Contents {
    fn price(&self) -> Duration {
        Duration::ZERO
    }

    /// Each suspect is paid for on its own.
    fn due(&mut self, _: &Scene<'_, '_>, _: Duration) -> Due {
        Due::Always
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        // Only the program itself may seem to hold what is measured.
        scene.held.tensors.clear();
        let Scene { heap, seq, epochs, budget, sampler, channel, .. } = scene;
        let looking = Looking { boundary: *seq, epochs: *epochs, budget, sampler: *sampler };
        scene.suspects.look(heap, &looking, channel);
    }
}
