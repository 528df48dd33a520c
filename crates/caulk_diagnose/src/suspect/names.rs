//! Two names for one thing: what an object keeps and feeds back, a function returns as well (`trend = meter.push(loss)`).

use caulk_core::wire::{ContainerKind, ContainerLen, StepKind};
use caulk_python::GrowKind;

use super::Suspect;
use crate::process::Process;

/// Boundaries at which two things must have been as large as each other to be taken for one.
const FEWEST: usize = 3;

/// Leaves out local variables whose object has another name by which it is fed back, and else that other name.
pub(super) fn leave_out(process: &Process<'_>, suspects: &mut Vec<Suspect<'_>>) {
    let mut out: Vec<u32> = Vec::new();
    for local in suspects.iter().filter(|suspect| is_bound_anew(suspect) && is_variable(suspect)) {
        let is_it = |other: &&Suspect<'_>| {
            other.kind == local.kind && !is_variable(other) && are_as_large(process, local, other)
        };
        for stored in suspects.iter().filter(is_it) {
            let other = if is_fed_back(stored) && !is_fed_back(local) { local } else { stored };
            out.push(other.holder.id);
        }
    }
    suspects.retain(|suspect| !out.contains(&suspect.holder.id));
}

/// Is it another object each time?
fn is_bound_anew(suspect: &Suspect<'_>) -> bool {
    matches!(suspect.kind, ContainerKind::Graph | ContainerKind::Tensor)
}

/// Is it the value of a local variable?
fn is_variable(suspect: &Suspect<'_>) -> bool {
    suspect.holder.path.last().is_some_and(|step| step.kind == StepKind::Local)
}

/// Is it made from itself, as far as the source tells?
fn is_fed_back(suspect: &Suspect<'_>) -> bool {
    suspect.located.as_ref().is_some_and(|located| {
        let grows = located.grow.as_ref().is_some_and(|grow| grow.kind != GrowKind::Assign);
        grows || located.facts.summed || located.facts.loop_carried.is_some()
    })
}

fn are_as_large(process: &Process<'_>, one: &Suspect<'_>, other: &Suspect<'_>) -> bool {
    let lengths =
        |suspect: &Suspect<'_>| process.lengths.get(&suspect.holder.id).map_or(&[][..], Vec::as_slice);
    let at = |boundary: u32| lengths(other).iter().find(|length| length.boundary == boundary);
    let pair = |length: &&ContainerLen| at(length.boundary).map(|other| length.len == other.len);
    let mut same = lengths(one).iter().filter_map(pair);
    let count = same.clone().count();
    count >= FEWEST && same.all(|same| same)
}
