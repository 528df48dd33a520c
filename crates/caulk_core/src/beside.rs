//! Private memory of a process that its allocators do not account for: what was mapped past them.

use caulk_wire::Boundary;

/// How much of it there is at one boundary, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// Mapped, touched or not.
    pub mapped: f64,
    /// Resident memory that the allocators do not account for.
    pub touched: f64,
}

impl Beside {
    /// At a boundary at which the allocators have handed out so many bytes; `None` where nobody knows what else is mapped.
    pub fn at(boundary: &Boundary, allocated: f64) -> Option<Self> {
        (boundary.mapped_bytes > 0).then(|| Self {
            mapped: boundary.mapped_bytes as f64,
            touched: private(boundary) as f64 - allocated,
        })
    }

    /// Bytes that were both mapped and touched since then. Reserved room alone costs nothing, and pages that the allocators
    /// keep are touched but not mapped anew.
    pub fn gained_since(self, then: Self) -> f64 {
        (self.mapped - then.mapped).min(self.touched - then.touched).max(0.0)
    }
}

/// Resident memory that is neither a file's nor shared, in bytes.
pub fn private(boundary: &Boundary) -> u64 {
    boundary.rss_bytes.saturating_sub(boundary.file_bytes + boundary.shm_bytes)
}
