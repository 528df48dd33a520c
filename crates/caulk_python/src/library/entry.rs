//! One name of a library, and what a call of it gives.

/// What a call gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    /// Nobody knows.
    Unknown,
    /// Nothing worth telling: an object of the library.
    Library,
    None,
    Number,
    /// A number taken out of a tensor.
    Measured,
    /// Where something is: of what is made again and again, a number that hardly comes twice.
    Address,
    /// A number that hardly comes twice.
    Unique,
    Text,
    /// A tensor with the graphs of what goes in.
    Tensor,
    /// A tensor that shares the receiver's storage, with its graph.
    View,
    /// A tensor without graph.
    Fresh,
    /// A tensor that requires gradients.
    Leaf,
    /// The receiver or first argument without graph.
    Detached,
    /// The receiver or first argument in memory of its own.
    Copied,
    /// The receiver, or the first argument of a function.
    Same,
    /// The first argument, whoever is asked.
    Argument,
    /// A tuple of tensors with the graphs of what goes in.
    Tensors,
    /// Parameters, one after another.
    Parameters,
    /// A dict of tensors without graph that share the parameters' storage.
    State,
    /// The output of a model: tensors with a graph.
    Prediction,
    Array,
    Module,
    /// A module without parameters: its loss has the graphs of what goes in.
    Criterion,
    /// A list of models.
    Modules,
    /// Parts of a model, one after another, with their names where the method says so.
    Layers,
    Optimizer,
    Loader,
    Figure,
    /// A figure with its axes.
    FigureAndAxes,
    Axes,
    Table,
    Distribution,
    /// Of a distribution's parameters: with their graph.
    Handle,
    File,
    Thread,
    Process,
    /// A task of an event loop.
    Task,
    Video,
    /// All frames of a video.
    Frames,
    /// One frame of a video.
    Frame,
    /// Sound as it was read, with its rate.
    Sound,
    /// A picture as it was read.
    Picture,
    /// A random tensor.
    Random,
    Profiler,
    SharedMemory,
    Exception,
    /// The first argument, with other values in some fields.
    Replaced,
    /// A list of parts of a text, which come back though the text does not.
    Words,
    List,
    Dict,
    Set,
    Tuple,
    /// A class of tuples with named fields.
    NamedTuple,
    /// One of them.
    Packed,
    /// An object with the attributes that it is given.
    Namespace,
    Deque,
    Queue,
    /// Elements of the first argument.
    Elements,
    /// Numbers with elements of the first argument.
    Enumerated,
    /// Elements of all arguments.
    Zipped,
    /// Results of calling the first argument with elements of the others.
    Mapped,
    /// What the first argument gives when it is called, where it is a function: `optimizer.step(closure)`.
    Called,
    /// Names with the tensors that the receiver holds under them.
    Items,
    /// An element of the receiver or first argument.
    Element,
    /// Whole numbers.
    Range,
    /// A dict of `torch.load`, a checkpoint.
    Loaded,
}

/// One name of a library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) gives: Gives,
    /// Rules ask where this is called.
    pub(crate) noted: bool,
}

pub(crate) const fn gives(name: &'static str, gives: Gives) -> Entry {
    Entry { name, gives, noted: false }
}

pub(crate) const fn noted(name: &'static str, gives: Gives) -> Entry {
    Entry { name, gives, noted: true }
}
