//! What malloc says of itself.

/// What malloc says of itself, in bytes; zeros where it cannot.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Malloc {
    /// Handed out.
    pub(crate) used: u64,
    /// Kept free.
    pub(crate) free: u64,
    /// In heaps, used and free.
    pub(crate) heap: u64,
    /// Free at the end of the heap, from where it can be given back.
    pub(crate) top: u64,
    /// Mapped singly, for large blocks.
    pub(crate) singly: u64,
}
