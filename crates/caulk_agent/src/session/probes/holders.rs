//! Who holds a suspect: paths from the program's own roots, then from all modules.

use std::time::Duration;

use crate::holders::Scope;
use crate::session::probe::{Due, Probe, Scene};

/// The search for holders within a scope: once for each suspect, however long the pause is. Without a name it is worth
/// nothing.
pub(super) struct Holders(pub(super) Scope);

impl Probe for Holders {
    fn price(&self) -> Duration {
        Duration::from_millis(if self.0 == Scope::User { 20 } else { 60 })
    }

    fn due(&mut self, scene: &Scene<'_, '_>, price: Duration) -> Due {
        let unexplained = scene.suspects.has_unexplained(self.0, scene.is_sparing(price));
        if unexplained { Due::EvenIfLong } else { Due::No }
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        scene.suspects.explain(scene.heap, self.0, scene.seq, scene.channel);
    }
}
