//! What to do about each class in general, where no edit of the source can be certain.

use crate::{Applicability, Fix, LeakClass};

impl LeakClass {
    /// The change in words.
    const fn remedy(self) -> &'static str {
        match self {
            Self::GraphKeptInContainer | Self::LossKeptWithGraph | Self::StateNotDetached => {
                "store the value without its graph: `.detach()`, or `.item()` where a number will do"
            }
            Self::GraphRetained => "drop the gradients with `p.grad = None`, and store losses detached",
            Self::StepOutputsNotCleared => "clear the list at the end of the epoch's hook",
            Self::UnboundedHistory => "bound it: `collections.deque(maxlen=...)`, or keep running statistics",
            Self::GlobalAccumulation => "clear it once it is consumed, or bound it",
            Self::UnboundedCache => "bound the cache, or key it by what comes back",
            Self::CachedMethod => {
                "cache on the instance (`functools.cached_property`, a bounded dict) instead of the class"
            }
            Self::CacheKeyedByTensor => "key the cache by what identifies the tensor, or take the cache off",
            Self::UnboundedQueue => "give the queue a `maxsize`, and decide what happens when it is full",
            Self::HookNeverRemoved => "keep the handle and call `.remove()` on it, or register the hook once",
            Self::CallbackKeepsTensor => {
                "take a function out again when what it works for is done, or store it once, before the loop; let it capture \
                 numbers or detached tensors"
            }
            Self::ExceptionKeepsFrames => {
                "store what the exception says (`str(exc)`), or `exc.with_traceback(None)`"
            }
            Self::LogRecordsKept => {
                "store the formatted message (`record.getMessage()`), or bound the buffer"
            }
            Self::OptimizerRecreated => "keep one optimizer and reset its state, or drop the old ones",
            Self::MutableDefaultGrows => "make the default `None` and a new container in the function",
            Self::FigureNotClosed => "close the figure after saving: `plt.close(fig)`",
            Self::RowsKeptUntilEnd => {
                "write each row when it is made (`csv.writer(...).writerow(row)`), not all at the end"
            }
            Self::AugmentationPerFold => {
                "make augmented data once for all folds: take the fold out of the key, and filter by the fold's members"
            }
            Self::ReferenceCycle => {
                "refer back through `weakref.ref(...)`, so that the objects are free with their last use; or let the collector \
                 run: once per epoch `gc.collect()` is enough"
            }
            Self::ViewPinsStorage => {
                "store a copy: `.clone()` (numpy: `.copy()`), so that the large storage goes"
            }
            Self::NativeGrowth => {
                "give back what is allocated here: call the library's free, close or release function when done"
            }
            Self::AllocatorFragmentation => {
                "where it matters: `ctypes.CDLL(None).malloc_trim(0)` once per epoch, `MALLOC_ARENA_MAX=2` in the environment \
                 of programs with many threads, `MALLOC_MMAP_THRESHOLD_=65536` for large blocks between small ones, or \
                 another allocator (jemalloc) preloaded"
            }
            Self::FileHandlesGrow => "open files with `with`, or close them when they are done with",
            Self::ThreadNeverEnds => {
                "make threads once, before the loop (a pool), or let them end and `join()` them"
            }
            Self::SharedMemoryLeft => {
                "the process that makes a segment calls `unlink()` on it when the others are done with it, before it makes the next \
                 one, also after errors (`try`, `finally`)"
            }
            Self::OrphanProcess => {
                "end child processes before the program ends: `with`, `terminate()` and `wait()`, or a pool that is closed"
            }
            Self::LoaderPerEpoch => {
                "make the loader once, before the epochs; `persistent_workers=True` keeps its workers between them"
            }
            Self::WorkerCopyOnWrite => {
                "keep it in numpy arrays, tensors or one bytes object, which are read without counting references"
            }
            Self::GradientsNeverCleared => "call `optimizer.zero_grad()` before each backward pass",
            Self::EvaluationWithGrad => "evaluate under `torch.no_grad()` or `torch.inference_mode()`",
            Self::ContextAttributeTensor => "hand inputs and outputs to `ctx.save_for_backward(...)` instead",
            Self::DeviceTensorKept => "keep a copy on the host (`.cpu()`), a number, or only the last few",
            Self::PlotEveryEpoch => "gather the numbers, and draw one figure at the end",
            Self::WorkerMemoryGrows => {
                "keep nothing of a sample in the data set, or bound what is kept: every worker has its own"
            }
            Self::WorkersOversubscribed => "use no more workers than there are CPUs for this process",
            Self::PinnedMemoryUnneeded => "leave `pin_memory` out where no GPU reads the batches",
            Self::WholeVideoLoad => "choose the frames first, by their number, and decode only these",
            Self::UnseededAugmentation => "draw from a generator that is seeded by the sample and the epoch",
            Self::LargeLocalKept => "`del` it after its last use, or make it in a function of its own",
            Self::NoReleaseAfterValidation => {
                "empty it when its metrics are computed, at the end of the validation"
            }
            Self::CleanupAsPlaster => "find what keeps the memory, and call this once per epoch at most",
            Self::CallsRecorded => {
                "call `mock.reset_mock()` after each step, or use a plain function or object that records nothing"
            }
            Self::ProfilerLeftOn => "profile a few steps: a schedule, or `with` around them",
        }
    }

    /// The general change as a fix that is only shown.
    pub fn advice(self) -> Fix {
        let description = self.remedy().to_owned();
        Fix { applicability: Applicability::DisplayOnly, description, edits: Vec::new() }
    }
}
