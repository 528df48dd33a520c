//! Private memory of a process that its allocators do not account for: what was mapped past them.

use caulk_wire::Boundary;

/// How much of it there is at one boundary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// Mapped, touched or not.
    pub mapped_bytes: f64,
    /// Resident memory that the allocators neither have handed out nor keep free.
    pub touched_bytes: f64,
}

impl Beside {
    /// At a boundary at which the allocators have handed out so many bytes; `None` where nobody knows what else is mapped.
    pub fn at(boundary: &Boundary, allocated: f64) -> Option<Self> {
        (boundary.mapped_bytes > 0).then(|| Self {
            mapped_bytes: boundary.mapped_bytes as f64,
            touched_bytes: private_bytes(boundary) as f64 - allocated - free_bytes(boundary) as f64,
        })
    }

    /// Bytes that were both mapped and touched since then. Reserved room alone costs nothing (each kernel that oneDNN compiles
    /// reserves 256 KB and fills a few), and what the allocators have beyond what they count is touched but not mapped anew.
    pub fn gained_since(self, then: Self) -> f64 {
        (self.mapped_bytes - then.mapped_bytes).min(self.touched_bytes - then.touched_bytes).max(0.0)
    }
}

/// What malloc and pymalloc keep free. It was handed out once, and so it is touched.
fn free_bytes(boundary: &Boundary) -> u64 {
    boundary.malloc_free_bytes + boundary.arena_bytes.saturating_sub(boundary.small_bytes)
}

/// Resident memory that is neither a file's nor shared, in bytes.
pub fn private_bytes(boundary: &Boundary) -> u64 {
    boundary.rss_bytes.saturating_sub(boundary.file_bytes + boundary.shm_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_malloc_keeps_free_are_not_what_was_mapped() {
        const MB: u64 = 1 << 20;
        let boundary = |mapped: u64, free: u64, rss: u64| Boundary {
            mapped_bytes: mapped,
            malloc_free_bytes: free,
            rss_bytes: rss,
            ..Boundary::default()
        };
        let at = |mapped: u64, free: u64, rss: u64| {
            Beside::at(&boundary(mapped * MB, free * MB, rss * MB), 0.0).expect("told")
        };
        let first = at(100, 0, 200);
        let gained = |now: Beside| now.gained_since(first) as u64 / MB;
        assert_eq!(gained(at(160, 0, 250)), 50, "reserved, and touched in part");
        assert_eq!(gained(at(160, 45, 250)), 5, "the rest is malloc's");
        assert_eq!(gained(at(100, 0, 250)), 0, "nothing more was mapped");
    }
}
