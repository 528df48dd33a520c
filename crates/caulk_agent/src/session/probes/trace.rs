//! The armed trace: which line makes a suspect grow.

use std::time::Duration;

use crate::session::probe::{Due, Probe, Scene};

#[derive(Default)]
pub(super) struct Trace {
    is_sparing: bool,
}

impl Probe for Trace {
    fn price(&self) -> Duration {
        Duration::from_millis(8)
    }

    fn due(&mut self, scene: &Scene<'_, '_>, price: Duration) -> Due {
        self.is_sparing = scene.is_sparing(price);
        Due::EvenIfLong
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        scene.suspects.arm(scene.heap, self.is_sparing, scene.channel);
    }
}
