//! A forked child writes nothing into its parent's slot; it claims one of its own at its first sample. What its parent
//! had in use is in use in the child, too.
//!
//! There is no lock to be taken before a fork. A child of `vfork` runs in its parent's memory without these handlers,
//! and its few allocations count there, where their memory is.

use std::ffi::{c_int, c_void};
use std::{mem, ptr};

use crate::local::local;
use crate::{lent, live, mappings, process, python, stacks, sums, threads};

type Handler = Option<extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// Watches for forks.
pub(crate) fn watch() {
    // What `pthread_atfork` is in glibc. By name: other C libraries, into whose programs this is loaded too, lack it.
    if let Some(found) = python::symbol(c"__register_atfork") {
        // SAFETY: the symbol's type.
        let register = unsafe { mem::transmute::<*mut c_void, Register>(found) };
        // SAFETY: handlers that only store numbers and give mappings of ours back; never unloaded.
        unsafe { register(Some(before), None, Some(in_child), ptr::null_mut()) };
    }
}

/// Handlers that came before all others run last: next to nothing is allocated between here and the fork itself, but for
/// what other threads do.
extern "C" fn before() {
    sums::before_fork();
}

extern "C" fn in_child() {
    // SAFETY: this thread's own.
    let own = unsafe { local().as_mut() };
    own.forget();
    sums::begin_anew(own);
    // A handler of a signal that came in the middle of a sample may fork, and goes back there.
    let idle = own.inside == 0;
    process::start_anew(idle);
    live::forget(idle);
    stacks::forget(idle);
    mappings::forget();
    lent::forget();
    threads::forget();
}
