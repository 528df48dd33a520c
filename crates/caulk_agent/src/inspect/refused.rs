//! The error of a census that could not be taken.

use pyo3::prelude::*;

use crate::census::Failure;

pub(super) fn refused(failure: Failure) -> PyErr {
    let cause = match failure {
        Failure::Unavailable => "this interpreter offers no safe way to walk its heap",
        Failure::TooLong => "there are too many objects to be walked in time",
        Failure::NoMemory => "there is no memory left for it",
    };
    pyo3::exceptions::PyRuntimeError::new_err(format!("no census could be taken: {cause}"))
}
