//! Autograd graphs that grow behind a tensor.

use std::time::Duration;

use crate::graphs::Graphs;
use crate::session::probe::{Due, Probe, Scene};

#[derive(Default)]
pub(super) struct KeptGraphs(Graphs);

impl Probe for KeptGraphs {
    fn price(&self) -> Duration {
        Duration::from_millis(10)
    }

    fn due(&mut self, _: &Scene<'_, '_>, _: Duration) -> Due {
        Due::IfItFits
    }

    fn look(&mut self, scene: &mut Scene<'_, '_>) {
        let Scene { heap, held, tracker, suspects, sampler, .. } = scene;
        let graphs = self.0.look(heap, &held.tensors, tracker, suspects, *sampler);
        scene.suspects.meet_graphs(graphs, scene.seq, scene.channel);
    }
}
