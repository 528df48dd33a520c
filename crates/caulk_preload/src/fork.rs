//! A forked child writes nothing into its parent's slot; it claims one of its own at its first sample.
//!
//! There is no lock to be taken before a fork. A child of `vfork` runs in its parent's memory without these handlers,
//! and its few allocations count there, where their memory is.

/// Watches for forks.
pub(crate) fn watch() {
    // SAFETY: a handler that only stores numbers.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

extern "C" fn in_child() {
    crate::segment::start_anew();
}
