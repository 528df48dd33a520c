//! `caulk check` on published packages: what it costs on real code, and every finding for a person to judge.

pub(crate) mod packages;
pub(crate) mod result;
pub(crate) mod tables;
