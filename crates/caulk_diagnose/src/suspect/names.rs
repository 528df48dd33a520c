//! Two names for one thing: what an object keeps and feeds back, a function returns as well (`trend = meter.push(loss)`).

use caulk_core::wire::Trait;
use caulk_python::GrowKind;

use super::item::Suspect;
use crate::process::Process;

/// Leaves out local variables whose object has another name by which it is fed back, and else that other name.
pub(super) fn leave_out(process: &Process<'_>, suspects: &mut Vec<Suspect<'_>>) {
    let mut out: Vec<u32> = Vec::new();
    for stored in suspects.iter() {
        for variable in suspects.iter().filter(|other| is_value_of(process, stored, other)) {
            let other = if is_fed_back(stored) && !is_fed_back(variable) { variable } else { stored };
            out.push(other.holder.id);
        }
    }
    suspects.retain(|suspect| !out.contains(&suspect.holder.id));
}

/// Was it seen to be the value of this local variable as well?
fn is_value_of(process: &Process<'_>, stored: &Suspect<'_>, variable: &Suspect<'_>) -> bool {
    let looks = process.contents.get(&stored.holder.id).map_or(&[][..], Vec::as_slice);
    let (function, variable_name) = (variable.holder.function.clone(), variable.holder.expression.clone());
    let called = Trait::Also { function, variable: variable_name };
    stored.kind == variable.kind && looks.iter().any(|look| look.traits.contains(&called))
}

/// Is it made from itself, as far as the source tells?
fn is_fed_back(suspect: &Suspect<'_>) -> bool {
    suspect.located.as_ref().is_some_and(|located| {
        let grows = located.grow.as_ref().is_some_and(|grow| grow.kind != GrowKind::Assign);
        grows || located.facts.summed || located.facts.loop_carried.is_some()
    })
}
