//! What the program does at all: it decides whether a criterion applies.

use caulk_core::wire::Message;

use crate::Observed;

/// Backward passes were seen: there are gradients and graphs.
pub(crate) fn trains(observed: &Observed<'_>) -> bool {
    let steps = |message: &Message| match message {
        Message::BackwardSite(site) => site.count > 0,
        Message::Boundary(boundary) => boundary.steps > 0,
        _ => false,
    };
    observed.recording.events.iter().any(|event| steps(&event.message))
}

/// Backward passes for which caulk looked whether gradients were left over, and those that began with them.
pub(crate) fn gradients(observed: &Observed<'_>) -> (u64, u64) {
    let mut last = std::collections::BTreeMap::new();
    for event in &observed.recording.events {
        if let Message::BackwardSite(site) = &event.message {
            last.insert((event.pid, &site.file, site.line), (site.checked, site.stale_gradients));
        }
    }
    last.into_values().fold((0, 0), |(checked, stale), own| (checked + own.0, stale + own.1))
}
