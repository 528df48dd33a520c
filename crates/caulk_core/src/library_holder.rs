//! What libraries keep for a program, and how each lets go of it.

use crate::{Applicability, Fix};

/// Something that a library keeps until the program releases it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LibraryHolder {
    /// The state of a metric (torchmetrics, ignite and the like): every update, until it is reset.
    MetricState,
    /// Models, optimizers and loaders that `Accelerator.prepare` was given.
    Prepared,
    /// Threads of `threading.Timer` that wait for their time.
    Timers,
    /// Every object that one `pickle.Pickler` has written, for later references to it.
    Pickled,
    /// Every object that one `pickle.Unpickler` has read.
    Unpickled,
    /// Everything that the first pass of `itertools.cycle` gave.
    Cycled,
    /// What one iterator of `itertools.tee` has read and another has not.
    Teed,
    /// Tasks of asyncio, with their results, in a set.
    TasksInSet,
    /// ... in another container.
    Tasks,
    /// ... that have not ended, in a container that each leaves at its end.
    TasksPending,
    /// Futures of an executor, with their results.
    Futures,
    /// Tensors as keys or as elements of a set: equal numbers are different keys.
    TensorKeys,
    /// Texts of warnings that were shown.
    Warnings,
    /// What a `contextlib.ExitStack` is to close.
    ExitStack,
}

impl LibraryHolder {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::MetricState,
        Self::Prepared,
        Self::Timers,
        Self::Pickled,
        Self::Unpickled,
        Self::Cycled,
        Self::Teed,
        Self::TasksInSet,
        Self::Tasks,
        Self::TasksPending,
        Self::Futures,
        Self::TensorKeys,
        Self::Warnings,
        Self::ExitStack,
    ];

    /// The release in words. `object`: what keeps it, as the program writes it.
    fn words(self, object: &str) -> String {
        match self {
            Self::MetricState => format!(
                "call `{object}.reset()` once its result is read, after each `compute()`: until then it keeps what every \
                 update was given"
            ),
            Self::Prepared => format!(
                "call `{object}.free_memory()` when what `prepare` was given is done with: it keeps models, optimizers and \
                 loaders until then"
            ),
            Self::Timers => "call `cancel()` on each `threading.Timer` when it is no longer needed: until its time it is a \
                             thread that keeps its arguments"
                .to_owned(),
            Self::Pickled => format!(
                "call `{object}.clear_memo()` after each `dump`, or use `pickle.dump(...)` for each record: a pickler keeps \
                 every object that it has written"
            ),
            Self::Unpickled => "make a new `pickle.Unpickler` for each record, or use `pickle.load(...)`: it keeps every \
                                object that it has read"
                .to_owned(),
            Self::Cycled => "replace `itertools.cycle(...)` by a generator that begins again: `while True: yield from loader`. \
                             `cycle` keeps a copy of all that its first pass gives"
                .to_owned(),
            Self::Teed => "read the iterators of `itertools.tee(...)` in step: what one has read is kept until the others have \
                           read it, too"
                .to_owned(),
            Self::TasksInSet => format!(
                "have each task leave the set when it is done: `task.add_done_callback({object}.discard)`. A task that is \
                 done keeps its result"
            ),
            Self::Tasks => format!(
                "take each task out of `{object}` when it is done: a task that is done keeps its result"
            ),
            Self::TasksPending => format!(
                "let the tasks in `{object}` end: each leaves it at its end, and none does. See what they wait for, or start no \
                 more than a limit allows (`asyncio.Semaphore`)"
            ),
            Self::Futures => format!(
                "take each future out of `{object}` once its result is read: it keeps the result and what it was called with"
            ),
            Self::TensorKeys => format!(
                "use numbers as keys of `{object}`, `.tolist()` or `.item()`: tensors are compared by identity, so that each \
                 one is a new key, and counts and look-ups by value are wrong"
            ),
            Self::Warnings => "give the warning a constant text: each different text is remembered, to be shown once".to_owned(),
            Self::ExitStack => format!(
                "close `{object}` when the work of one step is done, `with contextlib.ExitStack() as ...:` within the loop: \
                 it keeps everything that was entered until then"
            ),
        }
    }

    /// The release as a fix that is only shown.
    pub fn release(self, object: &str) -> Fix {
        Fix { applicability: Applicability::DisplayOnly, description: self.words(object), edits: Vec::new() }
    }
}
