//! Backward passes under way.

use std::ffi::c_void;
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::symbols::find;

type Lend = extern "C" fn() -> u32;
type TakeBack = extern "C" fn(u32);

/// Of all threads, one inside the other too.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// A backward pass that this thread has begun: what torch's threads allocate until it is dropped is its doing.
#[derive(Debug)]
pub(crate) struct Pass {
    ticket: u32,
}

impl Pass {
    pub(crate) fn begin() -> Self {
        UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        Self { ticket: lending().map_or(0, |lending| (lending.lend)()) }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(lending) = lending() {
            (lending.take_back)(self.ticket);
        }
        // One that its process has begun before it forked is under way no more.
        let one_less = |passes: u32| passes.checked_sub(1);
        let _ = UNDER_WAY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }
}

/// The sampler's functions around a backward pass.
#[derive(Clone, Copy)]
struct Lending {
    lend: Lend,
    take_back: TakeBack,
}

fn lending() -> Option<Lending> {
    static FOUND: OnceLock<Option<Lending>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let (lend, take_back) = (find(c"caulk_heap_lend")?, find(c"caulk_heap_take_back")?);
        // SAFETY: the types of the sampler's functions.
        let lend = unsafe { mem::transmute::<*mut c_void, Lend>(lend) };
        // SAFETY: as above.
        let take_back = unsafe { mem::transmute::<*mut c_void, TakeBack>(take_back) };
        Some(Lending { lend, take_back })
    })
}

/// In the child of a fork: the passes are its parent's.
pub(crate) fn after_fork() {
    UNDER_WAY.store(0, Ordering::Relaxed);
}

/// Is there any?
pub(crate) fn are_under_way() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) > 0
}

/// Backward passes under way, one inside the other, on whatever thread.
#[pyfunction]
fn passes() -> u32 {
    UNDER_WAY.load(Ordering::Relaxed)
}

/// Adds what Python calls.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(passes, module)?)
}
