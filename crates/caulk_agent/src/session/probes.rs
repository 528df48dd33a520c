//! The list of probes, in the order in which they look after a census.

use std::time::Duration;

mod contents;
mod exit;
mod graphs;
mod holders;
mod instances;
mod lasting;
mod names;
mod replaced;
mod trace;

use super::probe::{Due, Probe, Scene};
use crate::budget::{Budget, Price, RESERVE};
use crate::holders::Scope;
use crate::suspects::Suspects;

/// Every probe, with what a look of it is taken to cost.
pub(super) struct Probes(Vec<Slot>);

struct Slot {
    probe: Box<dyn Probe>,
    price: Price,
}

/// Where the search for holders stands in the list.
const HOLDERS: usize = 0;

impl Default for Probes {
    /// A new kind of evidence is a file and a line here.
    fn default() -> Self {
        let probes: Vec<Box<dyn Probe>> = vec![
            Box::new(holders::Holders(Scope::User)),
            Box::new(holders::Holders(Scope::All)),
            Box::new(names::Names),
            Box::new(exit::Exit),
            Box::new(lasting::Lasting),
            Box::new(instances::Instances),
            Box::new(replaced::RenewedNames),
            Box::new(graphs::KeptGraphs::default()),
            Box::new(contents::Contents),
            Box::new(trace::Trace::default()),
        ];
        let slot = |probe: Box<dyn Probe>| Slot { price: Price::new(probe.price()), probe };
        Self(probes.into_iter().map(slot).collect())
    }
}

impl Probes {
    /// Has every probe look that is due and that the budget allows.
    pub(super) fn look(&mut self, scene: &mut Scene<'_, '_>) {
        let budget = scene.budget;
        for Slot { probe, price } in &mut self.0 {
            let looked = match probe.due(scene, price.expected()) {
                Due::No => continue,
                Due::Always => {
                    probe.look(scene);
                    continue;
                }
                Due::IfItFits => price.pay(budget, || probe.look(scene)),
                Due::EvenIfLong => price.pay_at_last(budget, || probe.look(scene)),
            };
            if looked.is_none() {
                probe.pass_over(scene);
            }
        }
    }

    /// CPU time that is left for suspects whose contents or holder is unknown.
    pub(super) fn reserved(&self, suspects: &Suspects, budget: &Budget) -> Duration {
        let price = self.0.get(HOLDERS).map_or(Duration::ZERO, |slot| slot.price.expected());
        suspects.waiting(price, !budget.affords(price, RESERVE))
    }
}
