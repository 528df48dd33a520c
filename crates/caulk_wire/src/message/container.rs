//! What grows: its length, what holds it, what is in it, which line grows it.

use crate::codec::{codes, records};
use crate::message::codes::TraceOutcome;
use crate::message::traits::Trait;

codes! {
    /// What kind of thing grows.
    ContainerKind {
        /// `list` and subclasses.
        #[default]
        List = 0 "list",
        /// `dict`, `OrderedDict`, `defaultdict`, `Counter` and subclasses.
        Dict = 1 "dict",
        /// `set` and subclasses.
        Set = 2 "set",
        /// `collections.deque`.
        Deque = 3 "deque",
        /// `queue.Queue` and relatives.
        Queue = 4 "queue",
        /// The cache of a `functools.lru_cache` wrapper.
        LruCache = 5 "lru_cache",
        /// One tensor behind which the autograd graph grows; `len` counts graph nodes.
        Graph = 6 "graph",
        /// One tensor or array that is replaced by a larger one; `len` counts bytes.
        Tensor = 7 "tensor",
        /// `bytearray`, `array.array`, ctypes buffers; `len` counts bytes.
        Buffer = 8 "buffer",
        /// Objects of one type, each of which refers to the one before it; `len` counts them.
        Chain = 9 "chain",
    }

    /// What one step of a holder path is.
    StepKind {
        /// A module, by its name in `sys.modules`.
        #[default]
        Module = 0 "module",
        /// A running function, by qualified name.
        Function = 1 "function",
        /// A local variable of it.
        Local = 2 "local",
        /// An attribute of an instance.
        Attribute = 3 "attribute",
        /// An attribute of a class.
        ClassAttribute = 4 "class attribute",
        /// A name in a module.
        Global = 5 "global",
        /// `[key]` of a dict.
        Key = 6 "key",
        /// `[index]` of a list, tuple or deque.
        Index = 7 "index",
        /// A variable of a closure.
        Closure = 8 "closure",
        /// A default argument.
        Default = 9 "default",
        /// A bound method's object, a partial's argument, a generator's frame and the like.
        Internal = 10 "internal",
        /// A thread, by its name.
        Thread = 11 "thread",
        /// Held by C code: nothing that Python can reach points to it.
        Native = 12 "held from C",
    }
}

records! {
    /// Length of a container (nodes of a graph, bytes of a buffer) that has grown, at a boundary.
    ContainerLen {
        /// Boundary of the census.
        boundary: u32,
        /// Number that this container keeps in this process.
        id: u32,
        /// What it is.
        kind: ContainerKind,
        /// Its type's qualified name.
        type_name: String,
        /// Elements, nodes or bytes.
        len: u64,
        /// Shallow bytes of the container itself.
        shallow_bytes: u64,
    }

    /// One step from a root to a container.
    PathStep {
        /// What the step is.
        kind: StepKind,
        /// Its name: `validate`, `metrics`, `'iou'`, `3`.
        name: String,
        /// Type of the object arrived at.
        type_name: String,
    }

    /// What keeps a container alive.
    Holder {
        /// The container.
        id: u32,
        /// Boundary at which the path was found.
        boundary: u32,
        /// From a root to the container.
        path: Vec<PathStep>,
        /// The path as a person would type it: `trainer.metrics['iou']`.
        expression: String,
        /// For paths from a running function: its qualified name.
        function: String,
        /// ... its file,
        file: String,
        /// ... and the line it was on, from 1.
        line: u32,
        /// Name by which source code must mention the container: the last attribute, variable or key.
        name: String,
        /// Qualified name of the class whose attribute it is, if it is one.
        owner_type: String,
        /// False where the search ended without reaching a root.
        complete: bool,
    }

    /// What of something was made by one stack.
    MadeBy {
        /// The stack: [`crate::HeapStack`].
        stack: u32,
        /// Bytes, estimated from samples.
        bytes: u64,
    }

    /// What is in a container, from a sample of its youngest elements; what its graphs pin, from all of them.
    Contents {
        /// The container.
        id: u32,
        /// Boundary at which it was looked at.
        boundary: u32,
        /// Elements looked at.
        sampled: u32,
        /// ... in pages that this process has copied since it was forked, if that was measured.
        copied: u32,
        /// Types of the elements, most frequent first.
        element_types: Vec<(String, u32)>,
        /// Bytes that die with one element, mean of the sample: objects, tensor storages, graphs.
        bytes_per_element: u64,
        /// ... in tensor and array storages (distinct ones),
        tensor_bytes_per_element: u64,
        /// ... saved for backward by the elements' graphs.
        saved_bytes_per_element: u64,
        /// Bytes of the views themselves, where they pin larger storages.
        viewed_bytes_per_element: u64,
        /// Autograd nodes reachable from the sample.
        graph_nodes: u64,
        /// Saved bytes reachable from the sample, each storage once.
        saved_bytes: u64,
        /// The walk stopped at its bound: figures are "at least".
        truncated: bool,
        /// Node types, most frequent first.
        node_types: Vec<(String, u32)>,
        /// Facts that decide the class.
        traits: Vec<Trait>,
        /// Tensors with a graph in the whole container, as far as they were gone through.
        tensors: u64,
        /// ... of which so many, the youngest, were walked together for the figures that follow; 0 where none was.
        walked: u64,
        /// Nodes of all their graphs.
        walked_nodes: u64,
        /// Distinct storages that these saved for backward, the tensors' own and parameters left out,
        walked_storages: u64,
        /// ... and their bytes.
        walked_bytes: u64,
        /// Stacks that made those storages, most bytes first, as far as the heap was sampled.
        made_by: Vec<MadeBy>,
        /// Part of `bytes_per_element` that lies on a GPU.
        cuda_bytes_per_element: u64,
        /// Of `saved_bytes`, those that lie in pages which were ever touched,
        saved_touched: u64,
        /// ... and of `walked_bytes`: the rest is reserved, and releasing it frees nothing.
        walked_touched: u64,
        /// Nodes visited that keep memory only torch can see.
        opaque_nodes: u64,
        /// Bytes of the nodes of the graphs themselves, of those walked together where some were.
        node_bytes: u64,
        /// Part of `cuda_bytes_per_element` in arrays of other libraries than torch.
        device_bytes_per_element: u64,
    }

    /// A line that made a watched container grow.
    TraceHit {
        /// The container.
        id: u32,
        /// File of the line.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
        /// Innermost line of the user's own code on the stack; the same where the line is the user's.
        user_file: String,
        /// ... line, from 1,
        user_line: u32,
        /// ... function.
        user_function: String,
        /// Elements (nodes, bytes) it added while armed.
        growth: u64,
        /// Times it was seen to grow.
        count: u32,
    }

    /// How an armed trace ended.
    TraceState {
        /// Containers that were watched.
        ids: Vec<u32>,
        /// How it ended.
        state: TraceOutcome,
        /// Reason, for people.
        text: String,
        /// Functions that were watched.
        candidates: u32,
        /// CPU time spent while armed is not known; this is the wall time it was armed, in nanoseconds.
        armed_ns: u64,
    }
}
