//! A forked child writes nothing into its parent's slot; it claims one of its own at its first sample.
//!
//! There is no lock to be taken before a fork. A child of `vfork` runs in its parent's memory without these handlers,
//! and its few allocations count there, where their memory is.

use std::ffi::{c_int, c_void};
use std::{mem, ptr};

use crate::local::local;
use crate::{lent, live, mappings, python, segment, stacks, threads};

type Handler = Option<extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// Watches for forks.
pub(crate) fn watch() {
    // What `pthread_atfork` is in glibc. By name: other C libraries, into whose programs this is loaded too, lack it.
    if let Some(found) = python::symbol(c"__register_atfork") {
        // SAFETY: the symbol's type.
        let register = unsafe { mem::transmute::<*mut c_void, Register>(found) };
        // SAFETY: a handler that only stores numbers and gives mappings of ours back; never unloaded.
        unsafe { register(None, None, Some(in_child), ptr::null_mut()) };
    }
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
