//! What libraries' functions, classes and methods give, as tables: one file per library.
//!
//! Names are dotted and canonical. `prefix.*` stands for anything below a prefix, `prefix.A*` for what begins with a
//! capital: classes. The most exact entry counts.

mod imaging;
pub(crate) mod joins;
mod matplotlib;
pub(crate) mod numbers;
mod numpy;
mod python;
pub(crate) mod roles;
mod tables;
mod torch;
mod trainers;

use rustc_hash::{FxHashMap, FxHashSet};

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

const fn gives(name: &'static str, gives: Gives) -> Entry {
    Entry { name, gives, noted: false }
}

const fn noted(name: &'static str, gives: Gives) -> Entry {
    Entry { name, gives, noted: true }
}

/// Everything that is known of libraries.
#[derive(Debug)]
pub(crate) struct Library {
    entries: FxHashMap<&'static str, Entry>,
    /// Last parts of all names, and names of methods that many libraries have.
    last_names: FxHashSet<&'static str>,
}

impl Library {
    pub(crate) fn new() -> Self {
        let tables = [
            python::TABLE,
            torch::TABLE,
            numpy::TABLE,
            matplotlib::TABLE,
            tables::TABLE,
            imaging::TABLE,
            trainers::TABLE,
        ];
        let entries: FxHashMap<_, _> =
            tables.into_iter().flatten().map(|entry| (entry.name, *entry)).collect();
        let own = entries.keys().filter_map(|name| name.rsplit('.').next());
        let last_names = own.chain(roles::COMMON_METHODS.iter().copied()).collect();
        Self { entries, last_names }
    }

    /// Whether some library has a function or method of this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.last_names.contains(name)
    }

    /// The entry for a canonical name.
    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        if let Some(exact) = self.entries.get(name) {
            return Some(*exact);
        }
        let class = name.rsplit('.').next()?.chars().next().is_some_and(char::is_uppercase);
        let mut prefix = name;
        while let Some(at) = prefix.rfind('.') {
            prefix = &prefix[..at];
            let classes = class.then(|| self.entries.get(format!("{prefix}.A*").as_str())).flatten();
            if let Some(found) = classes.or_else(|| self.entries.get(format!("{prefix}.*").as_str())) {
                return Some(*found);
            }
        }
        None
    }
}

/// The name that the tables use for something with several names.
pub(crate) fn canonical(name: &str) -> String {
    const MOVED: &[(&str, &str)] = &[
        ("pytorch_lightning", "lightning"),
        ("lightning.pytorch", "lightning"),
        ("lightning_fabric", "lightning.fabric"),
        ("pylab", "matplotlib.pyplot"),
        ("torch.functional", "torch"),
        ("torch.multiprocessing", "multiprocessing"),
        ("multiprocess", "multiprocessing"),
        ("tqdm.auto", "tqdm"),
        ("tqdm.notebook", "tqdm"),
        ("tqdm.rich", "tqdm"),
        ("torch.cuda.amp", "torch.amp"),
        ("torch.tensor.Tensor", "torch.Tensor"),
        ("torch.autograd.grad_mode", "torch"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch.utils.data.dataloader", "torch.utils.data"),
        ("torch.utils.data.dataset", "torch.utils.data"),
        ("torch.nn.modules.module", "torch.nn"),
        ("torch.optim.optimizer", "torch.optim"),
        ("builtins", ""),
    ];
    for (from, to) in MOVED {
        if let Some(rest) = name.strip_prefix(from)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return format!("{to}{rest}").trim_start_matches('.').to_owned();
        }
    }
    name.to_owned()
}
