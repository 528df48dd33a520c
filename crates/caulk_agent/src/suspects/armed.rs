//! The trace that is armed for things that grow.

use std::time::Duration;

/// A trace that is armed.
pub(super) struct Armed {
    pub(super) ids: Vec<u32>,
    pub(super) candidates: u32,
    pub(super) since: Duration,
}
