//! Names whose objects are replaced by larger ones.

use std::time::Duration;

use crate::session::probe::{Due, Probe, Scene};

pub(super) struct RenewedNames;

impl Probe for RenewedNames {
    fn price(&self) -> Duration {
        Duration::from_millis(5)
    }

    fn due(&mut self, _: &Scene<'_, '_>, _: Duration) -> Due {
        Due::IfItFits
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        let fresh = std::mem::take(&mut scene.held.fresh);
        let renewed = scene.replaced.look(scene.heap, fresh, scene.suspects, scene.seq);
        scene.suspects.meet_renewed(renewed, scene.seq, scene.channel);
    }

    fn pass_over(&mut self, scene: &mut Scene<'_, '_>) {
        drop(std::mem::take(&mut scene.held.fresh));
    }
}
