//! What one census finds, or why there is none.

use std::collections::TryReserveError;

use crate::heap::{Address, AddressMap, Shape};

/// A container met in a census.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) address: Address,
    pub(crate) shape: Shape,
    pub(crate) len: usize,
}

/// Count and bytes of one type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// What one census found. Addresses are good until something is called.
#[derive(Default)]
pub(crate) struct Census {
    pub(crate) objects: u64,
    pub(crate) types: AddressMap<Tally>,
    /// By address.
    pub(crate) containers: Vec<Seen>,
    pub(crate) tensors: Vec<Address>,
    /// Numpy arrays held by containers and instances; one may be listed more than once.
    pub(crate) arrays: Vec<Address>,
    /// Those of the addresses asked about that are alive, with their types.
    pub(crate) alive: AddressMap<Address>,
}

/// Why there is no census.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// This interpreter offers no safe way.
    Unavailable,
    /// It took too long.
    TooLong,
    /// No memory for what would be noted.
    NoMemory,
}

impl From<TryReserveError> for Failure {
    fn from(_: TryReserveError) -> Self {
        Self::NoMemory
    }
}
