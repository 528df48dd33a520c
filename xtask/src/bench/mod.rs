//! What profilers and linters cost, measured side by side.

pub(crate) mod contender;
pub(crate) mod linter;
pub(crate) mod ratio;
pub(crate) mod usage;
