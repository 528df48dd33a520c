//! What profilers cost, measured side by side.

pub(crate) mod contender;
pub(crate) mod ratio;
pub(crate) mod usage;
