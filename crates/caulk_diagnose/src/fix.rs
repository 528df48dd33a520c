//! What to change, per class; as an edit where the source allows one.

use caulk_core::wire::ContainerKind;
use caulk_core::{Applicability, Fix, LeakClass};
use caulk_python::GrowKind;

use crate::place::Located;

/// The change for something that grows.
pub(crate) fn of_kind(
    class: LeakClass,
    kind: ContainerKind,
    located: Option<&Located>,
    name: &str,
) -> Option<Fix> {
    let advice = beyond_bounds(class, kind, located).map(|text| display(text.to_owned()));
    advice.or_else(|| of(class, located, name))
}

/// The change for a finding.
pub(crate) fn of(class: LeakClass, located: Option<&Located>, name: &str) -> Option<Fix> {
    let edit = located.and_then(|located| edit(class, located, name));
    edit.or_else(|| advice(class).map(|text| display(text.to_owned())))
}

/// What to do about histories that no `maxlen` bounds.
fn beyond_bounds(class: LeakClass, kind: ContainerKind, located: Option<&Located>) -> Option<&'static str> {
    if !matches!(class, LeakClass::UnboundedHistory | LeakClass::GlobalAccumulation) {
        return None;
    }
    let grow = located.map(|located| located.grow.as_ref().map(|grow| grow.kind));
    match (kind, grow?) {
        (ContainerKind::Buffer, _) => {
            Some("write it to a file as it comes, or empty it (`.clear()`) once it is used")
        }
        (_, Some(GrowKind::Register)) => {
            Some("register it once, before the loop, or take it out again when it is done with")
        }
        // The line calls a library, which stores into a container of its own.
        (_, None) => Some("make this call once, or undo it when what it adds is done with"),
        _ => None,
    }
}

fn display(description: String) -> Fix {
    Fix { applicability: Applicability::DisplayOnly, description, edits: Vec::new() }
}

fn edit(class: LeakClass, located: &Located, name: &str) -> Option<Fix> {
    let (module, line) = (&located.module, located.spot.line);
    let grow = located.grow.as_ref();
    match class {
        LeakClass::GraphKeptInContainer | LeakClass::LossKeptWithGraph | LeakClass::StateNotDetached => {
            module.detach_fix(grow?)
        }
        LeakClass::GraphRetained if grow.is_none() => module.grad_none_fix(line),
        LeakClass::GraphRetained => module.detach_fix(grow?),
        LeakClass::StepOutputsNotCleared => module.clear_fix(grow?),
        LeakClass::UnboundedHistory | LeakClass::GlobalAccumulation | LeakClass::UnboundedCache => {
            module.bound_fix(grow?)
        }
        LeakClass::UnboundedQueue => {
            let made = module.creations_of(name, &located.owner).into_iter().next();
            module.queue_fix(made.map_or(line, |made| made.spot.line))
        }
        LeakClass::HookNeverRemoved => module.remove_handle_fix(line),
        LeakClass::FigureNotClosed => module.close_figure_fix(line),
        LeakClass::ExceptionKeepsFrames => module.traceback_fix(grow?),
        LeakClass::ViewPinsStorage => module.clone_fix(grow?),
        LeakClass::CacheKeyedByTensor | LeakClass::CachedMethod => module.uncache_fix(&located.spot.function),
        LeakClass::GradientsNeverCleared => module.zero_grad_fix(line),
        _ => None,
    }
}

fn advice(class: LeakClass) -> Option<&'static str> {
    Some(match class {
        LeakClass::GraphKeptInContainer | LeakClass::LossKeptWithGraph | LeakClass::StateNotDetached => {
            "store the value without its graph: `.detach()`, or `.item()` where a number will do"
        }
        LeakClass::GraphRetained => "drop the gradients with `p.grad = None`, and store losses detached",
        LeakClass::StepOutputsNotCleared => "clear the list at the end of the epoch's hook",
        LeakClass::UnboundedHistory => {
            "bound it: `collections.deque(maxlen=...)`, or keep running statistics"
        }
        LeakClass::GlobalAccumulation => "clear it once it is consumed, or bound it",
        LeakClass::UnboundedCache => "bound the cache, or key it by what comes back",
        LeakClass::CachedMethod => {
            "cache on the instance (`functools.cached_property`, a bounded dict) instead of the class"
        }
        LeakClass::CacheKeyedByTensor => "key the cache by what identifies the tensor, or take the cache off",
        LeakClass::UnboundedQueue => "give the queue a `maxsize`, and decide what happens when it is full",
        LeakClass::HookNeverRemoved => {
            "keep the handle and call `.remove()` on it, or register the hook once"
        }
        LeakClass::CallbackKeepsTensor => {
            "clear the stored functions once they have run, and let them capture numbers or detached tensors"
        }
        LeakClass::ExceptionKeepsFrames => {
            "store what the exception says (`str(exc)`), or `exc.with_traceback(None)`"
        }
        LeakClass::LogRecordsKept => {
            "store the formatted message (`record.getMessage()`), or bound the buffer"
        }
        LeakClass::OptimizerRecreated => "keep one optimizer and reset its state, or drop the old ones",
        LeakClass::MutableDefaultGrows => "make the default `None` and a new container in the function",
        LeakClass::FigureNotClosed => "close the figure after saving: `plt.close(fig)`",
        LeakClass::RowsKeptUntilEnd => {
            "write each row when it is made (`csv.writer(...).writerow(row)`), not all at the end"
        }
        LeakClass::AugmentationPerFold => {
            "make augmented data once for all folds: take the fold out of the key, and filter by the fold's members"
        }
        LeakClass::ReferenceCycle => {
            "refer back through `weakref.ref(...)`, so that the objects are free with their last use; or let the collector \
             run: once per epoch `gc.collect()` is enough"
        }
        LeakClass::ViewPinsStorage => {
            "store a copy: `.clone()` (numpy: `.copy()`), so that the large storage goes"
        }
        LeakClass::NativeGrowth => {
            "give back what is allocated here: call the library's free, close or release function when done"
        }
        LeakClass::AllocatorFragmentation => {
            "where it matters: `ctypes.CDLL(None).malloc_trim(0)` once per epoch, `MALLOC_ARENA_MAX=2` in the environment \
             of programs with many threads, `MALLOC_MMAP_THRESHOLD_=65536` for large blocks between small ones, or \
             another allocator (jemalloc) preloaded"
        }
        LeakClass::FileHandlesGrow => "open files with `with`, or close them when they are done with",
        LeakClass::ThreadNeverEnds => {
            "make threads once, before the loop (a pool), or let them end and `join()` them"
        }
        LeakClass::SharedMemoryLeft => {
            "the process that makes a segment calls `unlink()` on it at the end, also after errors (`try`, `finally`)"
        }
        LeakClass::OrphanProcess => {
            "end child processes before the program ends: `with`, `terminate()` and `wait()`, or a pool that is closed"
        }
        LeakClass::LoaderPerEpoch => {
            "make the loader once, before the epochs; `persistent_workers=True` keeps its workers between them"
        }
        LeakClass::WorkerCopyOnWrite => {
            "keep it in numpy arrays, tensors or one bytes object, which are read without counting references"
        }
        LeakClass::GradientsNeverCleared => "call `optimizer.zero_grad()` before each backward pass",
        _ => return None,
    })
}
