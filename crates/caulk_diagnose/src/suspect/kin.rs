//! Containers that many objects of one class have, each its own: what one of them is seen to be grown by grows the others.

use caulk_core::wire::{ContainerKind, Holder};
use caulk_core::{Evidence, Rate, Series, State};

use super::accounted::accounted_for;
use super::item::{Suspect, bytes};
use crate::claim::Witness;
use crate::class::Signs;
use crate::files::Files;
use crate::judged::Judged;
use crate::place::{self, Located, Sought};
use crate::process::Process;
use crate::units::Scale;

/// Of so many containers of one attribute only a part was followed: the agent follows as many at a time.
const CROWD: usize = 64;
/// Part of the growth that those which are followed last must make up, for the rest to be the others'.
const SAMPLE: f64 = 0.05;

/// Gives those whose line is not known the line of one that was traced, in the same attribute of the same class. That one may
/// be followed no more: of many that are small, the agent follows some, then others.
pub(super) fn join(files: &Files<'_>, process: &Process<'_>, scale: Scale, suspects: &mut [Suspect<'_>]) {
    for at in 0..suspects.len() {
        let suspect = &suspects[at];
        let is_known = suspect.located.as_ref().is_some_and(|located| located.witness != Witness::Signs);
        if is_known || suspect.holder.owner_type.is_empty() {
            continue;
        }
        let located = suspects
            .iter()
            .filter(|other| other.series == suspect.series && is_kin(suspect, other.holder, other.kind))
            .find_map(|other| other.located.clone().filter(|located| located.traced.is_some()))
            .or_else(|| traced_before(files, process, scale, suspect));
        let Some(located) = located else { continue };
        // It was not this one that was watched.
        let located = Located { witness: Witness::OnlyLine, traced: None, ..located };
        let suspect = &mut suspects[at];
        let Suspect { holder, kind, contents, .. } = *suspect;
        suspect.by_signs = Signs { process, holder, kind, contents, located: Some(&located) }.class();
        suspect.witness = located.witness.max(suspect.witness.min(Witness::OnlyLine));
        suspect.located = Some(located);
    }
}

/// The line at which one like it was traced, that is followed no more.
fn traced_before(
    files: &Files<'_>,
    process: &Process<'_>,
    scale: Scale,
    suspect: &Suspect<'_>,
) -> Option<Located> {
    let mut ids = process.hits.keys().filter(|id| {
        let kind = process.lengths.get(id).and_then(|lengths| lengths.last()).map(|length| length.kind);
        process.holders.get(id).zip(kind).is_some_and(|(holder, kind)| is_kin(suspect, holder, kind))
    });
    let bytes_per_unit = suspect.rate.bytes_per_unit;
    ids.find_map(|id| {
        let sought = Sought { id: *id, kind: suspect.kind, bytes_per_unit };
        place::locate(files, process, scale, sought).filter(|located| located.traced.is_some())
    })
}

/// Charges a crowd that is too large to be followed with what nothing else accounts for: those that were followed are a
/// sample of it.
pub(super) fn weigh_crowd(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return };
    let is_of = |first: &Suspect<'_>, other: &Suspect<'_>| {
        other.series == Series::InUse && is_kin(first, other.holder, other.kind)
    };
    let followed = |first: &Suspect<'_>| {
        let kin = process.holders.iter().filter(|(id, holder)| {
            let lengths = process.lengths.get(id).map_or(&[][..], Vec::as_slice);
            lengths.last().is_some_and(|length| is_kin(first, holder, length.kind))
        });
        kin.count()
    };
    let here =
        |suspect: &&Suspect<'_>| suspect.series == Series::InUse && !suspect.holder.owner_type.is_empty();
    let Some(first) = suspects.iter().filter(here).find(|suspect| followed(suspect) >= CROWD) else { return };
    let count = followed(first);
    let is_member: Vec<bool> = suspects.iter().map(|other| is_of(first, other)).collect();
    let others: Vec<&Suspect<'_>> =
        suspects.iter().zip(&is_member).filter(|(_, member)| !**member).map(|(other, _)| other).collect();
    let own = bytes(suspects.iter().zip(&is_member).filter(|(_, member)| **member).map(|(one, _)| one));
    let whole = in_use.bytes_per_unit - accounted_for(process, judged, &others);
    if own < SAMPLE * in_use.bytes_per_unit || whole <= own {
        return;
    }
    let rate = Rate::new(own, scale.verdict_unit());
    for (suspect, _) in suspects.iter_mut().zip(is_member).filter(|(_, member)| *member) {
        suspect.rate.bytes_per_unit *= whole / own;
        suspect.rate.interval = None;
        suspect.beside = Some(Evidence::SampleOfMany { followed: count, rate });
    }
}

/// Is it the same attribute of another object of the class?
fn is_kin(suspect: &Suspect<'_>, holder: &Holder, kind: ContainerKind) -> bool {
    (&suspect.holder.owner_type, &suspect.holder.name) == (&holder.owner_type, &holder.name)
        && suspect.kind == kind
}
