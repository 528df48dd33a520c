//! What libraries keep for a program.

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
}
