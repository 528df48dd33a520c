//! A forked child writes nothing into its parent's slot; it claims one of its own at its first sample.
//!
//! There is no lock to be taken before a fork. A child of `vfork` runs in its parent's memory without these handlers,
//! and its few allocations count there, where their memory is.

use crate::local::local;
use crate::{lent, live, mappings, segment, stacks, threads};

/// Watches for forks.
pub(crate) fn watch() {
    // SAFETY: handlers that only store numbers and give mappings of ours back.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

extern "C" fn in_child() {
    // SAFETY: this thread's own.
    let own = unsafe { local().as_mut() };
    own.forget();
    // A handler of a signal that came in the middle of a sample may fork, and goes back there.
    let idle = own.inside == 0;
    segment::start_anew(idle);
    live::forget(idle);
    stacks::forget(idle);
    mappings::forget();
    lent::forget();
    threads::forget();
}
