//! Memory in use over time, for a picture.

use caulk_core::wire::{Message, Unit};
use caulk_core::{Recording, Role};

/// Bytes in use at the epochs of the training process, or at its other boundaries if it has no epochs.
pub(crate) fn in_use(recording: &Recording) -> Vec<u64> {
    let of = |pid: u32| {
        let own = recording.events.iter().filter(move |event| event.pid == pid);
        own.filter_map(|event| match &event.message {
            Message::Boundary(boundary) => Some(boundary),
            _ => None,
        })
    };
    let main =
        recording.processes.iter().filter(|process| process.role == Role::Main).map(|process| process.pid);
    let mut candidates = std::iter::once(recording.info.root_pid).chain(main);
    let Some(pid) = candidates.find(|pid| of(*pid).next().is_some()) else { return Vec::new() };
    let epochs = of(pid).any(|boundary| boundary.unit == Unit::Epoch);
    let wanted = of(pid).filter(|boundary| !epochs || boundary.unit == Unit::Epoch);
    wanted.map(|boundary| boundary.malloc_bytes + boundary.small_bytes).collect()
}
