//! The parts of a release: the audit of a wheel, and the list of crates in it.

pub(crate) mod audit;
pub(crate) mod bill;
