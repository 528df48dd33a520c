//! The tool of `sys.monitoring`.

use pyo3::prelude::*;

/// Our tool, with what it instruments.
pub(super) struct Tool {
    pub(super) monitoring: Py<PyAny>,
    pub(super) number: u8,
    pub(super) codes: Vec<Py<PyAny>>,
}
