//! Functions that are registered to run at exit.

use std::time::Duration;

use crate::session::probe::{Due, Probe, Scene};

pub(super) struct Exit;

impl Probe for Exit {
    fn price(&self) -> Duration {
        Duration::ZERO
    }

    fn due(&mut self, _: &Scene<'_, '_>, _: Duration) -> Due {
        Due::Always
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        scene.suspects.watch_exit(scene.heap.py, scene.seq, scene.channel);
    }
}
