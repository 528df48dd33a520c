//! Paths to objects that have lived for several censuses.

use std::time::Duration;

use crate::lasting;
use crate::session::probe::{Due, Probe, Scene};

pub(super) struct Lasting;

impl Probe for Lasting {
    fn price(&self) -> Duration {
        Duration::from_millis(15)
    }

    fn due(&mut self, scene: &Scene<'_, '_>, _: Duration) -> Due {
        if scene.held.fresh.lasting.is_empty() {
            Due::No
        } else if scene.suspects.follows_users() {
            Due::IfItFits
        } else {
            // Nothing of the program's own is known to grow: the pause was made for this.
            Due::EvenIfLong
        }
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        let fresh = &mut scene.held.fresh;
        let (lasting, elders) = (std::mem::take(&mut fresh.lasting), std::mem::take(&mut fresh.elders));
        let look = lasting::look(scene.heap, lasting, elders, scene.suspects, scene.tracker);
        scene.replaced.remember(&look.picked);
        scene.suspects.meet_lasting(look.kept, scene.seq, scene.channel);
    }

    fn pass_over(&mut self, scene: &mut Scene<'_, '_>) {
        let fresh = &mut scene.held.fresh;
        drop((std::mem::take(&mut fresh.lasting), std::mem::take(&mut fresh.elders)));
    }
}
