//! What profilers and linters cost, measured side by side.

pub(crate) mod contender;
pub(crate) mod goals;
pub(crate) mod linter;
pub(crate) mod ratio;
pub(crate) mod real;
pub(crate) mod tree;
pub(crate) mod usage;
