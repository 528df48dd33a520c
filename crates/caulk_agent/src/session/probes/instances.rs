//! Chains of instances whose number grows in step.

use std::time::Duration;

use crate::instances;
use crate::session::probe::{Due, Probe, Scene};

pub(super) struct Instances;

impl Probe for Instances {
    fn price(&self) -> Duration {
        Duration::from_millis(15)
    }

    fn due(&mut self, scene: &Scene<'_, '_>, _: Duration) -> Due {
        if scene.held.instances.is_empty() {
            Due::No
        } else if scene.suspects.follows_users() {
            Due::IfItFits
        } else {
            Due::EvenIfLong
        }
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        let groups = std::mem::take(&mut scene.held.instances);
        let kept = instances::look(scene.heap, groups, scene.suspects);
        scene.suspects.meet_lasting(kept, scene.seq, scene.channel);
    }

    fn pass_over(&mut self, scene: &mut Scene<'_, '_>) {
        scene.held.instances.clear();
    }
}
