//! Bytes that pymalloc has mapped for small objects since the sampler began.

use std::sync::atomic::{AtomicUsize, Ordering};

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// So many more.
pub(crate) fn mapped(bytes: usize) {
    BYTES.fetch_add(bytes, Ordering::Relaxed);
}

/// So many less. An arena from before the hook was never counted.
pub(crate) fn unmapped(bytes: usize) {
    let less = |all: usize| Some(all.saturating_sub(bytes));
    let _ = BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// Their number.
pub(crate) fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}
