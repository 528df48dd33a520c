//! Containers that many objects of one class have, each its own: what one of them is seen to be grown by grows the others.

use caulk_core::Confidence;

use super::item::Suspect;
use crate::place::Located;

/// Gives those whose line is not known the line of one that was traced, in the same attribute of the same class.
pub(super) fn join(suspects: &mut [Suspect<'_>]) {
    for at in 0..suspects.len() {
        let suspect = &suspects[at];
        let is_known =
            suspect.located.as_ref().is_some_and(|located| located.confidence != Confidence::Suspected);
        if is_known || suspect.holder.owner_type.is_empty() {
            continue;
        }
        let is_kin = |other: &&Suspect<'_>| is_traced(other) && is_same_attribute(suspect, other);
        let Some(kin) = suspects.iter().find(is_kin) else { continue };
        let (located, class, confidence) = (kin.located.clone(), kin.class, kin.confidence);
        // It was not this one that was watched.
        let untraced = |located: Located| Located { confidence: Confidence::Likely, traced: None, ..located };
        let suspect = &mut suspects[at];
        suspect.located = located.map(untraced);
        suspect.class = class;
        suspect.confidence = confidence.max(Confidence::Likely);
    }
}

fn is_traced(suspect: &Suspect<'_>) -> bool {
    suspect.located.as_ref().is_some_and(|located| located.traced.is_some())
}

fn is_same_attribute(a: &Suspect<'_>, b: &Suspect<'_>) -> bool {
    let of = |suspect: &Suspect<'_>| (suspect.kind, suspect.series);
    (&a.holder.owner_type, &a.holder.name) == (&b.holder.owner_type, &b.holder.name) && of(a) == of(b)
}
