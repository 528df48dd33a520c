//! Tensors, their storages and the autograd graphs behind them, through torch's own C-level attributes.
//!
//! Only objects whose type is exactly `torch.Tensor` or `Parameter` are asked: a subclass may run user code. Saved
//! tensors are read through `_raw_saved_*`, which never unpacks (unpacking would re-run a checkpointed forward).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyString, PyTuple, PyType};

use crate::heap::{Address, AddressMap, loaded, member, type_name};
use crate::pages::Pages;
use crate::stopwatch::Stopwatch;

/// What a node of the graph takes beside what it saves, and what a saved tensor takes beside its storage, in bytes:
/// medians over eight kinds of nodes (torch 2.11, x86-64), from the growth of `mallinfo2` over 20,000 of each.
const NODE_BYTES: u64 = 600;
const SAVED_BYTES: u64 = 450;

/// What a tensor takes beside its Python object, and its storage beside its bytes: objects of C++ and what malloc adds to
/// them, in bytes (torch 2.11, x86-64), from the growth of `mallinfo2` over 20,000 of each.
pub(crate) const STORAGE_BYTES: u64 = 164;
const TENSOR_BYTES: u64 = 192;
/// ... and what a view takes beside that: how it was made, for autograd.
const VIEW_BYTES: u64 = 336;

/// Types of nodes that keep what no attribute tells: those of functions that torch has no Python type for (extensions in
/// C++, `TorchScript`, `torch._foreach_*`), and what an operation in place on a view hides behind itself (torch,
/// `torch/csrc/autograd/python_cpp_function.cpp` and `CopySlices::fn`).
const OPAQUE: [&str; 2] = ["CppFunction", "CopySlices"];
/// What saves the tensors of a function that was written in Python, which may keep others as attributes of its own.
const PYTHON_FUNCTION: &str = "_raw_saved_tensors";

/// Storages above this size are asked for what of them was touched: they have pages of their own.
const LARGE: u64 = 1 << 20;
/// CPU time for asking.
const ASKING_LIMIT: Duration = Duration::from_millis(5);

/// A storage: where it is and how many bytes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Storage {
    pub(crate) pointer: u64,
    pub(crate) bytes: u64,
    pub(crate) on_gpu: bool,
}

/// torch, as far as the program has loaded it, with its overrides off while this value lives.
pub(crate) struct Torch<'py> {
    tensor: Bound<'py, PyAny>,
    parameter: Bound<'py, PyAny>,
    guard: Option<Bound<'py, PyAny>>,
}

impl<'py> Torch<'py> {
    /// `None` where the program has not (wholly) imported torch.
    pub(crate) fn new(py: Python<'py>) -> Option<Self> {
        let torch = loaded(py, "torch")?;
        let tensor = member(&torch, "Tensor")?;
        let parameter = member(&loaded(py, "torch.nn.parameter")?, "Parameter")?;
        // Modes such as `torch.set_default_device` would see every attribute read below.
        let guard = loaded(py, "torch._C").and_then(|c| member(&c, "DisableTorchFunction")?.call0().ok());
        let guard = guard.filter(|guard| guard.call_method0("__enter__").is_ok());
        Some(Self { tensor, parameter, guard })
    }

    /// Can this object be asked without running user code?
    pub(crate) fn is_plain(&self, object: &Bound<'py, PyAny>) -> bool {
        let object_type = object.get_type();
        object_type.is(&self.tensor) || object_type.is(&self.parameter)
    }

    pub(crate) fn is_parameter(&self, object: &Bound<'py, PyAny>) -> bool {
        object.get_type().is(&self.parameter)
    }

    /// The storage behind a tensor; `None` for tensors without one (sparse, meta, functional).
    pub(crate) fn storage(tensor: &Bound<'py, PyAny>) -> Option<Storage> {
        let storage = tensor.call_method0("untyped_storage").ok()?;
        let pointer: u64 = storage.call_method0("data_ptr").ok()?.extract().ok()?;
        let bytes: u64 = storage.call_method0("nbytes").ok()?.extract().ok()?;
        (pointer != 0).then(|| Storage { pointer, bytes, on_gpu: Self::is_cuda(tensor) })
    }

    /// Is its memory of another's making (`torch.from_numpy`, `torch.frombuffer`, `DLPack`), of which it may show a part and
    /// keep the whole? Storages know that they cannot be resized then.
    pub(crate) fn is_borrowed(tensor: &Bound<'py, PyAny>) -> bool {
        let storage = tensor.call_method0("untyped_storage");
        let resizable = storage.and_then(|storage| storage.call_method0("resizable")?.is_truthy());
        resizable.is_ok_and(|resizable| !resizable)
    }

    /// Bytes of the elements that the tensor shows.
    pub(crate) fn view_bytes(tensor: &Bound<'py, PyAny>) -> u64 {
        tensor.getattr("nbytes").and_then(|bytes| bytes.extract()).unwrap_or(0)
    }

    /// Bytes of the tensor itself, without its Python object and its storage.
    pub(crate) fn own_bytes(tensor: &Bound<'py, PyAny>) -> u64 {
        let is_view = tensor.call_method0("_is_view").is_ok_and(|flag| flag.is_truthy().unwrap_or(false));
        TENSOR_BYTES + if is_view { VIEW_BYTES } else { 0 }
    }

    pub(crate) fn is_cuda(tensor: &Bound<'py, PyAny>) -> bool {
        tensor.getattr("is_cuda").is_ok_and(|flag| flag.is_truthy().unwrap_or(false))
    }

    /// The node of the graph that made a tensor.
    pub(crate) fn grad_fn(tensor: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        tensor.getattr("grad_fn").ok().filter(|node| !node.is_none())
    }

    /// The gradient of a leaf, where one has been accumulated.
    pub(crate) fn grad(tensor: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let leaf = tensor.getattr("is_leaf").is_ok_and(|flag| flag.is_truthy().unwrap_or(false));
        leaf.then(|| tensor.getattr("grad").ok())?.filter(|grad| !grad.is_none())
    }
}

impl Drop for Torch<'_> {
    fn drop(&mut self) {
        if let Some(guard) = &self.guard {
            let py = guard.py();
            // Nothing to do where leaving fails: the guard's own destructor restores the state as well.
            drop(guard.call_method1("__exit__", (py.None(), py.None(), py.None())));
        }
    }
}

/// Does torch's C++ side count as one of the references that Python counts, where it holds a tensor that Python knows? From
/// 2.10 on (pytorch/pytorch, pull request 167564); before that, it took the Python object over when Python let go of it.
pub(crate) fn counts_for_python(py: Python<'_>) -> bool {
    let version =
        loaded(py, "torch.version").and_then(|module| member(&module, "__version__")?.extract().ok());
    let version: String = version.unwrap_or_default();
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(2), Some(10))
}

/// Does torch's C++ side hold this plain tensor, beside Python?
pub(crate) fn is_held_by_cpp(tensor: &Bound<'_, PyAny>) -> bool {
    let count = tensor.call_method0(intern!(tensor.py(), "_use_count"));
    count.and_then(|count| count.extract::<u64>()).is_ok_and(|count| count > 1)
}

/// Nodes asked for what comes before them on the way back to the oldest of a graph, and those in a row that lead no
/// further back: weights, of which each call begins with some.
const MOST_ASKED: u32 = 10_000;
const IN_VAIN: u32 = 512;
/// Stands for the root of parameters' nodes, which all graphs have in common.
const LEAF: usize = usize::MAX;
/// Nodes below which they do not tell how close to each other a graph's nodes lie.
const ENOUGH: u64 = 256;
/// The oldest node that a large graph was found to begin with.
static OLDEST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Nodes that the thread has made since the oldest one that a graph reaches: what a graph too large to be walked grows
/// by. An upper bound of its size, exact where everything made since hangs on it. `None` for a leaf.
///
/// Where the way back is too long, the graph is taken to begin where the oldest of those began that could be followed to
/// their ends: it was one of them while it was smaller.
///
/// Nodes are numbered as they are made, and a leaf's accumulator has the largest number (torch, `Node::sequence_nr`).
fn nodes_since_oldest(root: &Bound<'_, PyAny>) -> Option<u64> {
    let newest = number(root)?;
    // By number, which is a node's own on its thread.
    let mut open = BTreeMap::from([(newest, root.clone())]);
    let mut met = HashSet::from([newest]);
    let (mut oldest, mut in_vain) = (newest, 0);
    for _ in 0..MOST_ASKED {
        let Some((asked, node)) = open.pop_first().filter(|_| in_vain < IN_VAIN) else {
            OLDEST.fetch_min(oldest, Ordering::Relaxed);
            return Some(newest - oldest);
        };
        in_vain = if asked < oldest { 0 } else { in_vain + 1 };
        oldest = oldest.min(asked);
        let next = node.getattr("next_functions").ok()?.cast_into::<PyTuple>().ok()?;
        let functions =
            next.iter().filter_map(|pair| pair.get_item(0).ok()).filter(|function| !function.is_none());
        let numbered = functions.filter_map(|function| Some((number(&function)?, function)));
        open.extend(numbered.filter(|(number, _)| met.insert(*number)));
    }
    Some(newest - oldest.min(OLDEST.load(Ordering::Relaxed)))
}

/// Number of a node in the order in which its thread made them; `None` for those that have none (`AccumulateGrad`).
fn number(node: &Bound<'_, PyAny>) -> Option<u64> {
    let number: u64 = node.call_method0(intern!(node.py(), "_sequence_nr")).ok()?.extract().ok()?;
    (number < 1 << 62).then_some(number)
}

/// A walk over autograd graphs, each node and storage once, the newest nodes first.
///
/// Visited nodes are kept alive while the walk lasts: a node's Python object is made on demand, and the address of one
/// that died could come back as another.
pub(crate) struct GraphWalk<'py> {
    pub(crate) nodes: u64,
    pub(crate) node_types: HashMap<String, u32>,
    /// Storages saved for backward, parameters apart.
    pub(crate) saved: AddressMap<Storage>,
    /// Nodes that keep what cannot be seen: what is saved is at least what was found.
    pub(crate) opaque: u64,
    pub(crate) truncated: bool,
    /// Of each root an earlier one whose graph has nodes in common with its own, parameters' apart; else itself.
    roots: Vec<usize>,
    /// The lowest number of a node that was visited since the last root, and that root's; how many have one.
    numbers: Option<(u64, u64)>,
    numbered: u64,
    /// With the root that they were met from.
    visited: AddressMap<usize>,
    /// Nodes that were found in what hooks packed, to be followed like others.
    hidden: Vec<Bound<'py, PyAny>>,
    kept: Vec<Bound<'py, PyAny>>,
    saved_names: AddressMap<Rc<[Bound<'py, PyString>]>>,
}

impl<'py> GraphWalk<'py> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: 0,
            node_types: HashMap::new(),
            saved: AddressMap::default(),
            opaque: 0,
            truncated: false,
            roots: Vec::new(),
            numbers: None,
            numbered: 0,
            visited: AddressMap::default(),
            hidden: Vec::new(),
            kept: Vec::new(),
            saved_names: AddressMap::default(),
        }
    }

    /// Counts what is reachable from `root` and was not met before; with `saved`, also what it saved for backward.
    pub(crate) fn follow(
        &mut self,
        torch: &Torch<'py>,
        root: Bound<'py, PyAny>,
        limit: u64,
        saved: bool,
    ) -> u64 {
        let before = self.nodes;
        let mut open = BTreeMap::new();
        let mut met = 0_usize;
        let mut meet = |open: &mut BTreeMap<(u64, usize), Bound<'py, PyAny>>, node: Bound<'py, PyAny>| {
            met += 1;
            open.insert((number(&node).unwrap_or(u64::MAX), met), node);
        };
        self.numbers = number(&root).map(|newest| (newest, newest));
        self.numbered = 0;
        let own = self.roots.len();
        self.roots.push(own);
        self.join(own, &root);
        meet(&mut open, root);
        while let Some((found, node)) = open.pop_last().or_else(|| Some(((u64::MAX, 0), self.hidden.pop()?)))
        {
            let Entry::Vacant(place) = self.visited.entry(node.as_ptr() as Address) else { continue };
            place.insert(own);
            self.nodes += 1;
            self.numbers = self.numbers.map(|(oldest, newest)| (oldest.min(found.0), newest));
            self.numbered += u64::from(found.0 != u64::MAX);
            if saved {
                self.read_saved(torch, &node);
            }
            if let Ok(next) = node.getattr("next_functions").and_then(|next| Ok(next.cast_into::<PyTuple>()?))
            {
                if next.is_empty() {
                    self.visited.insert(node.as_ptr() as Address, LEAF);
                }
                for pair in next.iter() {
                    let Some(function) = pair.get_item(0).ok().filter(|function| !function.is_none()) else {
                        continue;
                    };
                    if !self.join(own, &function) {
                        meet(&mut open, function);
                    }
                }
            }
            self.kept.push(node);
            if self.nodes >= limit {
                self.truncated |= !open.is_empty() || !self.hidden.is_empty();
                self.hidden.clear();
                break;
            }
        }
        self.nodes - before
    }

    /// Notes that a root leads to this node; false where it was not met before.
    fn join(&mut self, root: usize, node: &Bound<'_, PyAny>) -> bool {
        let Some(&met_from) = self.visited.get(&(node.as_ptr() as Address)) else { return false };
        if met_from != LEAF && met_from != root {
            let [first, second] = [root, met_from].map(|root| self.first_of(root));
            self.roots[first.max(second)] = first.min(second);
        }
        true
    }

    /// The first root of those whose graphs hang together with this one's.
    fn first_of(&self, root: usize) -> usize {
        let mut root = root;
        while self.roots[root] != root {
            root = self.roots[root];
        }
        root
    }

    /// Graphs that have no node in common but those of parameters.
    pub(crate) fn separate(&self) -> usize {
        self.roots.iter().enumerate().filter(|(index, first)| index == *first).count()
    }

    /// Roots that were followed.
    pub(crate) fn roots(&self) -> usize {
        self.roots.len()
    }

    /// Was this node met, and with it what is behind it, as far as the walk went?
    pub(crate) fn has_visited(&self, node: &Bound<'_, PyAny>) -> bool {
        self.visited.contains_key(&(node.as_ptr() as Address))
    }

    /// How many nodes there are behind the last root, where they lie as close to each other everywhere as among those that were
    /// visited: nodes of other graphs, which are gone, have numbers too.
    pub(crate) fn nodes_by_number(&self, root: &Bound<'_, PyAny>) -> Option<u64> {
        let (oldest, newest) = self.numbers.filter(|_| self.numbered >= ENOUGH)?;
        let whole = nodes_since_oldest(root)?;
        let numbered = self.numbered as f64 * whole as f64 / (newest - oldest).max(1) as f64;
        Some(self.nodes - self.numbered + numbered as u64)
    }

    /// Numbers of the oldest node behind the last root, of those not met before, and of that root.
    pub(crate) fn numbers(&self) -> Option<(u64, u64)> {
        self.numbers
    }

    /// Bytes of what was saved, each storage once.
    pub(crate) fn saved_bytes(&self) -> u64 {
        self.saved.values().map(|storage| storage.bytes).sum()
    }

    /// The part of them that was ever touched, which is what releasing them would free: workspaces are reserved as a whole
    /// (oneDNN's for an LSTM are three fifths air). What there was no time to ask for is taken to be like the rest of what
    /// is large.
    pub(crate) fn saved_touched(&self) -> u64 {
        let all = self.saved_bytes();
        let large = self.saved.values().filter(|storage| storage.bytes > LARGE && !storage.on_gpu);
        let Ok(pages) = Pages::open() else { return all };
        let started = Stopwatch::start();
        let (mut asked, mut touched, mut left) = (0, 0, 0);
        for storage in large {
            let told = (started.work() < ASKING_LIMIT)
                .then(|| pages.touched(storage.pointer as Address, storage.bytes as usize).ok());
            match told.flatten() {
                Some(bytes) => (asked, touched) = (asked + storage.bytes, touched + bytes as u64),
                None => left += storage.bytes,
            }
        }
        let untouched = (asked - touched) as f64 / asked.max(1) as f64;
        all - ((asked + left) as f64 * untouched) as u64
    }

    /// The part of them that lies on a GPU.
    pub(crate) fn saved_on_gpu(&self) -> u64 {
        self.saved.values().filter(|storage| storage.on_gpu).map(|storage| storage.bytes).sum()
    }

    /// Bytes of the nodes and of the tensors that they saved, without the storages.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.nodes * NODE_BYTES + self.saved.len() as u64 * SAVED_BYTES
    }

    fn read_saved(&mut self, torch: &Torch<'py>, node: &Bound<'py, PyAny>) {
        let node_type = node.get_type();
        let name = type_name(&node_type);
        self.opaque += u64::from(OPAQUE.contains(&name.as_str()));
        *self.node_types.entry(name).or_default() += 1;
        let key = node_type.as_ptr() as Address;
        let names = Rc::clone(self.saved_names.entry(key).or_insert_with(|| saved_names(&node_type).into()));
        for name in names.iter() {
            // Raises once a custom function's saved tensors are released.
            let Ok(value) = node.getattr(name) else { continue };
            for item in items(value) {
                let Ok(data) = item.getattr("data") else { continue };
                match data.cast::<PyTuple>() {
                    // A hook may pack a tensor with what it needs to unpack it (`save_on_cpu`).
                    Ok(packed) => packed.iter().for_each(|part| self.save(torch, &part)),
                    Err(_) => self.save(torch, &data),
                }
                self.hidden.extend(checkpointed(torch, &item));
            }
            if name == PYTHON_FUNCTION {
                self.read_attributes(torch, node);
            }
        }
    }

    /// Tensors that a function of the user's keeps as attributes of its context, with the graphs behind them. They are owned
    /// before anything is asked of them: another thread may set more meanwhile.
    fn read_attributes(&mut self, torch: &Torch<'py>, node: &Bound<'py, PyAny>) {
        let attributes =
            node.getattr("__dict__").ok().and_then(|found| found.cast_into_exact::<PyDict>().ok());
        let values: Vec<Bound<'py, PyAny>> =
            attributes.map_or_else(Vec::new, |attributes| attributes.values().iter().collect());
        for value in values {
            for tensor in items(value).iter().filter(|item| torch.is_plain(item)) {
                self.save(torch, tensor);
                self.hidden.extend(Torch::grad_fn(tensor));
            }
        }
    }

    fn save(&mut self, torch: &Torch<'py>, tensor: &Bound<'py, PyAny>) {
        if torch.is_plain(tensor)
            && !torch.is_parameter(tensor)
            && let Some(storage) = Torch::storage(tensor)
        {
            self.saved.insert(storage.pointer as Address, storage);
        }
    }
}

/// The elements of a tuple or list, or the value itself.
fn items(value: Bound<'_, PyAny>) -> Vec<Bound<'_, PyAny>> {
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return tuple.iter().collect();
    }
    match value.cast_exact::<PyList>() {
        Ok(list) => list.iter().collect(),
        Err(_) => vec![value],
    }
}

/// The node that holds the inputs of a checkpointed part, from which its forward pass will be run again: the hook that
/// unpacks refers to it (torch, `torch.utils.checkpoint._CheckpointFrame.input_saver`).
fn checkpointed<'py>(torch: &Torch<'py>, saved: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let hook = saved.getattr("unpack_hook").ok()?.cast_into::<PyFunction>().ok()?;
    let class = member(&loaded(saved.py(), "torch.utils.checkpoint")?, "_CheckpointFrame")?;
    let cells = hook.getattr("__closure__").ok()?.cast_into::<PyTuple>().ok()?;
    let contents = cells.iter().filter_map(|cell| cell.getattr("cell_contents").ok());
    let frame = contents.into_iter().find(|content| content.get_type().is(&class))?;
    let inputs = frame.getattr("input_saver").ok().filter(|inputs| torch.is_plain(inputs))?;
    Torch::grad_fn(&inputs)
}

/// Names of a node type's raw saved variables.
fn saved_names<'py>(node_type: &Bound<'py, PyType>) -> Vec<Bound<'py, PyString>> {
    let mut names = Vec::new();
    for base in node_type.mro().iter() {
        let Ok(namespace) = base.getattr("__dict__") else { continue };
        let Ok(keys) = PyDict::new(base.py()).into_any().get_type().call1((namespace,)) else { continue };
        let Ok(keys) = keys.cast_into::<PyDict>() else { continue };
        for key in keys.keys() {
            if let Ok(key) = key.cast_into::<PyString>()
                && key.to_string_lossy().starts_with("_raw_saved_")
            {
                names.push(key);
            }
        }
    }
    names
}
