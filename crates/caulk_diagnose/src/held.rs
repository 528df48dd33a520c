//! Bytes in use: what a process holds, as its allocators count it, and what it has mapped beside them.

use caulk_core::wire::Boundary;
use caulk_core::{Beside, State};

use crate::baselines::Baselines;
use crate::process::Process;
use crate::small::Small;
use crate::units::{self, Scale};

/// Part of what is mapped beside the allocators that must be touched for it to count: stacks of threads and what is reserved
/// for later cost nothing.
const TOUCHED: f64 = 0.1;

/// How the bytes in use of one process are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    small: Small,
    /// What lay beside the allocators at the first boundary, where more and more does.
    beside: Option<Beside>,
}

impl Held {
    pub(crate) fn of(process: &Process<'_>, scale: Scale) -> Self {
        let allocated = Self { small: Small::of(process), beside: None };
        let first = process.of_unit(scale.unit).find_map(|boundary| allocated.beside(boundary));
        let whole = Self { beside: first, ..allocated };
        if whole.rises_beside(process, scale) { whole } else { allocated }
    }

    /// Is more and more of it mapped beside the allocators?
    pub(crate) fn is_mapped(self) -> bool {
        self.beside.is_some()
    }

    /// Bytes in use at a boundary, if malloc was read; if mapped memory counts too, only where that was read as well.
    pub(crate) fn at(self, boundary: &Boundary) -> Option<f64> {
        let gained = if self.is_mapped() { self.gained(boundary)? } else { 0.0 };
        Some(self.allocated(boundary)? + boundary.shm_bytes as f64 + gained)
    }

    fn allocated(self, boundary: &Boundary) -> Option<f64> {
        (boundary.malloc_bytes > 0).then(|| boundary.malloc_bytes as f64 + self.small.bytes(boundary))
    }

    fn beside(self, boundary: &Boundary) -> Option<Beside> {
        Beside::at(boundary, self.allocated(boundary)?)
    }

    /// What was mapped and touched since the first boundary.
    fn gained(self, boundary: &Boundary) -> Option<f64> {
        Some(self.beside(boundary)?.gained_since(self.beside?))
    }

    fn rises_beside(self, process: &Process<'_>, scale: Scale) -> bool {
        let judged = |value: &dyn Fn(&Boundary) -> Option<f64>| {
            Baselines::of(units::points(process, scale, value), scale).judge()
        };
        let gained = judged(&|boundary| self.gained(boundary));
        let mapped = judged(&|boundary| Some(self.beside(boundary)?.mapped_bytes));
        gained.state == State::Grows && gained.slope >= TOUCHED * mapped.slope
    }
}
