//! Sizes of suspects that are followed by name.

use std::time::Duration;

use crate::session::probe::{Due, Probe, Scene};

pub(super) struct Names;

impl Probe for Names {
    fn price(&self) -> Duration {
        Duration::from_millis(2)
    }

    fn due(&mut self, _: &Scene<'_, '_>, _: Duration) -> Due {
        Due::IfItFits
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        scene.suspects.follow_names(scene.heap, scene.seq, scene.sampler, scene.channel);
    }
}
