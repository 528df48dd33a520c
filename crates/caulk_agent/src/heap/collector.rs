//! Every object that the collector tracks: by a function of the interpreter, or by the collector's own lists.

use std::os::raw::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::lookahead::prefetch;
use super::{Address, loaded, read_word};
use crate::symbols;

/// Shares this process its objects with the one that it was forked from?
static FORKED: AtomicBool = AtomicBool::new(false);

/// In a forked child: the interpreter's own function counts a reference to every object that it visits, and would copy
/// every page that holds one.
pub(crate) fn write_no_more() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Shares this process its objects with another one?
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Visits every object that the collector tracks, in no particular order; stops when `visit` returns false.
///
/// Returns false where this interpreter offers no safe way; then there is no census.
pub(crate) fn visit_tracked(py: Python<'_>, visit: &mut dyn FnMut(Address) -> bool) -> bool {
    if let Some(visit_objects) = symbols::gc_visit_objects()
        && !is_forked()
    {
        let lists = Generations::find(py);
        let mut walk =
            Walk { visit, unmet: lists.as_ref().and_then(Generations::first_frozen), ended: false };
        // SAFETY: the function's documented contract: the callback must not run Python code, and does not.
        unsafe { visit_objects(forward_while, (&raw mut walk).cast()) };
        if let Some(lists) = lists.filter(|_| walk.unmet.is_some() && !walk.ended) {
            visit_list(lists.frozen(), walk.visit);
        }
        return true;
    }
    let Some(generations) = Generations::find(py) else { return false };
    generations.visit(visit)
}

/// The same in the order in which the interpreter lists them, whichever way is taken.
pub(crate) fn visit_in_order(py: Python<'_>, visit: &mut dyn FnMut(Address) -> bool) -> bool {
    if symbols::gc_visit_objects().is_some() && !is_forked() {
        return visit_tracked(py, visit);
    }
    let Some(generations) = Generations::find(py) else { return false };
    generations.heads.iter().all(|head| visit_forward(*head, visit))
}

/// A walk by the interpreter's own function.
struct Walk<'a> {
    visit: &'a mut dyn FnMut(Address) -> bool,
    /// The first object that `gc.freeze()` has taken out, until it is met: 3.12.1 and 3.13.0 leave all of these out.
    unmet: Option<Address>,
    ended: bool,
}

unsafe extern "C" fn forward_while(object: *mut ffi::PyObject, closure: *mut c_void) -> c_int {
    // SAFETY: `visit_tracked` passes a pointer to its walk, which outlives the visit.
    let walk = unsafe { &mut *closure.cast::<Walk<'_>>() };
    walk.unmet = walk.unmet.filter(|first| *first != object as Address);
    // A panic must not unwind into the collector.
    let proceed = catch_unwind(AssertUnwindSafe(|| (walk.visit)(object as Address)));
    walk.ended = !proceed.unwrap_or(false);
    c_int::from(!walk.ended)
}

/// Tries the collector's lists out, as long as there are few objects: the trial counts a reference to each.
pub(crate) fn try_lists(py: Python<'_>) {
    SOUND.get_or_init(|| {
        let sound = Generations::guess(py).and_then(|generations| generations.agrees_with_collector(py));
        sound.unwrap_or(false)
    });
}

/// Are the lists where they are looked for?
static SOUND: OnceLock<bool> = OnceLock::new();

/// The collector's lists, found without knowing where the interpreter keeps them. Reading them writes nothing.
///
/// A new object is appended to the youngest generation, so the link after it is that list's head; the heads of the
/// generations lie beside each other, as `struct gc_generation { PyGC_Head head; int threshold; int count; }` each
/// (CPython, `pycore_gc.h`, 3.8 to 3.14; up to 3.14.4 the last two are the halves of the old one). Behind them lies the
/// permanent generation, for what `gc.freeze()` has taken out. The count of objects is held against `gc.get_objects()` and
/// `gc.get_freeze_count()` once.
struct Generations {
    heads: [Address; 4],
}

/// `sizeof(PyGC_Head)`: the links before an object.
const LINKS: usize = 16;
/// From there to the length of an object that has one: often in the next line of the caches.
const LENGTH: usize = LINKS + 24;
/// `sizeof(struct gc_generation)`.
const GENERATION: usize = LINKS + 8;

impl Generations {
    fn find(py: Python<'_>) -> Option<Self> {
        if SOUND.get() == Some(&true) { Self::guess(py) } else { None }
    }

    fn guess(py: Python<'_>) -> Option<Self> {
        // Until 3.13 there is a pointer before the permanent generation (`generation0`).
        let pointer = if symbols::minor()? < 14 { size_of::<Address>() } else { 0 };
        // SAFETY: makes a tracked list; null is handled below.
        let fresh = unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyList_New(0)) }?;
        let young = next(fresh.as_ptr() as Address - LINKS);
        let permanent = young + 3 * GENERATION + pointer;
        Some(Self { heads: [young, young + GENERATION, young + 2 * GENERATION, permanent] })
    }

    fn agrees_with_collector(&self, py: Python<'_>) -> Option<bool> {
        let listed = loaded(py, "gc").or_else(|| py.import("gc").ok().map(Bound::into_any))?;
        let frozen: usize = listed.call_method0("get_freeze_count").ok()?.extract().ok()?;
        let expected = frozen + listed.call_method0("get_objects").ok()?.len().ok()?;
        let mut counted = 0_usize;
        // A wrong guess of the heads would not close the ring: twice the expected number is proof enough.
        let closed = self.visit(&mut |_| {
            counted += 1;
            counted < 2 * expected
        });
        Some(closed && counted.abs_diff(expected) <= expected / 100 + 16)
    }

    fn visit(&self, visit: &mut dyn FnMut(Address) -> bool) -> bool {
        self.heads.iter().all(|head| visit_list(*head, visit))
    }

    /// Head of the permanent generation.
    fn frozen(&self) -> Address {
        self.heads[3]
    }

    fn first_frozen(&self) -> Option<Address> {
        let first = next(self.frozen());
        (first != self.frozen()).then_some(first + LINKS)
    }
}

/// Visits the objects of one list, from both ends at once, so that the processor waits for two of them at a time; false where
/// `visit` says so or the list is torn.
fn visit_list(head: Address, visit: &mut dyn FnMut(Address) -> bool) -> bool {
    let (mut first, mut last) = (next(head), before(head));
    while first != head {
        if first == 0 || last == 0 {
            return false;
        }
        let (after, earlier) = (next(first), before(last));
        for links in [after, earlier] {
            prefetch(links);
            prefetch(links + LENGTH);
        }
        if !visit(first + LINKS) {
            return false;
        }
        if first == last {
            return true;
        }
        if !visit(last + LINKS) {
            return false;
        }
        if after == last {
            return true;
        }
        (first, last) = (after, earlier);
    }
    true
}

/// Visits the objects of one list one after the other; false where `visit` says so or the list is torn.
fn visit_forward(head: Address, visit: &mut dyn FnMut(Address) -> bool) -> bool {
    let mut links = next(head);
    while links != head {
        if links == 0 || !visit(links + LINKS) {
            return false;
        }
        links = next(links);
    }
    true
}

/// The link before this one, which the collector keeps up outside of a collection as well.
fn before(links: Address) -> Address {
    read_word(links + size_of::<Address>()) & !3
}

/// The link after this one. Its low bits are flags of the collector's.
fn next(links: Address) -> Address {
    read_word(links) & !3
}
