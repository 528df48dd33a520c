//! Bytes in use: what a process holds, as its allocators count it, and what it has mapped beside them.

use caulk_core::State;
use caulk_core::wire::Boundary;

use crate::baselines::Baselines;
use crate::process::Process;
use crate::small::Small;
use crate::units::{self, Scale};

/// Part of what is mapped beside the allocators that must be touched for it to count.
const TOUCHED: f64 = 0.5;

/// How the bytes in use of one process are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    small: Small,
    /// Private mappings count, too.
    mapped: bool,
}

impl Held {
    pub(crate) fn of(process: &Process<'_>, scale: Scale) -> Self {
        let allocated = Self { small: Small::of(process), mapped: false };
        Self { mapped: allocated.leaves_out(process, scale), ..allocated }
    }

    /// Bytes in use at a boundary, where malloc was asked.
    pub(crate) fn at(self, boundary: &Boundary) -> Option<f64> {
        let mapped = if self.mapped { boundary.mapped_bytes } else { 0 };
        let others = boundary.malloc_bytes + boundary.shm_bytes + mapped;
        (boundary.malloc_bytes > 0).then(|| others as f64 + self.small.bytes(boundary))
    }

    /// Does more and more lie in mappings beside the allocators', and is it touched? Stacks of threads and what is
    /// reserved for later are mapped as well, which costs nothing: so that it counts, what is resident must rise by what
    /// is allocated and by much of what is mapped.
    fn leaves_out(self, process: &Process<'_>, scale: Scale) -> bool {
        let judged = |value: &dyn Fn(&Boundary) -> Option<f64>| {
            Baselines::of(units::points(process, scale, value), scale).judge()
        };
        let told = |boundary: &Boundary| boundary.malloc_bytes > 0 && boundary.mapped_bytes > 0;
        let mapped = judged(&|boundary| told(boundary).then_some(boundary.mapped_bytes as f64));
        if mapped.state != State::Grows {
            return false;
        }
        let allocated = judged(&|boundary| Some(self.at(boundary)? - boundary.shm_bytes as f64));
        let touched = judged(&|boundary| {
            let others = boundary.file_bytes + boundary.shm_bytes;
            Some(boundary.rss_bytes.saturating_sub(others) as f64)
        });
        touched.slope >= allocated.slope.max(0.0) + TOUCHED * mapped.slope
    }
}
