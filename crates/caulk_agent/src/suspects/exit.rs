//! Functions that are to run at exit, registered time after time. The interpreter keeps them where its collector does not
//! look; how many there are it tells.

use caulk_wire::{ContainerKind, Holder, PathStep, StepKind};
use pyo3::prelude::*;

use super::Suspects;
use super::item::Place;
use crate::channel::Channel;
use crate::heap::{loaded, member};

/// Looks in a row at which there must be more of them.
const RISES: u32 = 2;

impl Suspects {
    /// Looks how many there are, and follows them once they become more.
    pub(crate) fn watch_exit(&mut self, py: Python<'_>, boundary: u32, channel: &mut Channel) {
        let Some(count) = callbacks(py) else { return };
        let before = self.exit.last.replace(count);
        let rises = before.is_some_and(|before| count > before);
        self.exit.rises = if rises { self.exit.rises + 1 } else { 0 };
        let followed = self.items.iter().any(|item| matches!(item.place, Some(Place::AtExit)));
        if followed || self.exit.rises < RISES {
            return;
        }
        let (kind, name) = (ContainerKind::List, "atexit".to_owned());
        let step = PathStep { kind: StepKind::Module, name: name.clone(), type_name: String::new() };
        let holder =
            Holder { path: vec![step], expression: name.clone(), complete: true, ..Holder::default() };
        let mut item = self.follow_named(kind, name, Place::AtExit, holder, boundary, channel);
        item.take_size(count, boundary, channel);
        self.items.push(item);
    }
}

/// Functions that are to run at exit.
pub(super) fn callbacks(py: Python<'_>) -> Option<u64> {
    member(&loaded(py, "atexit")?, "_ncallbacks")?.call0().ok()?.extract().ok()
}
