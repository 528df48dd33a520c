//! The versions of Python and torch on which caulk was tried.

pub(crate) mod cell;
pub(crate) mod table;
