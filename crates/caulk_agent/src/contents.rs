//! What is in a container: a sample of its younger elements, what dies with them, what their graphs pin.
//!
//! What dies with an element is found by trial deletion, the collector's own method over a side table: an object is the
//! element's if every reference to it comes from the element's own objects (CPython, Modules/gcmodule.c,
//! `subtract_refs`). Nothing is collected and nothing is changed.

use std::collections::HashMap;
use std::time::Duration;

use caulk_wire::Contents;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

use crate::budget::thread_time;
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, is_a, loaded, member, type_address};
use crate::torch::{GraphWalk, Torch};

/// Elements looked at.
const SAMPLE: usize = 8;
/// Objects visited from them.
const OBJECT_LIMIT: usize = 30_000;
/// Autograd nodes visited from them.
const NODE_LIMIT: u64 = 6_000;
/// References that an object in a cycle may lack and is gone into all the same: always, and while elements are not
/// accounted for (the artists of a figure refer to their axes by the dozen).
const SURELY: usize = 4;
const LACKING: usize = 256;
/// Columns of a row.
const COLUMNS: usize = 256;
/// CPU time for one container.
const TIME_LIMIT: Duration = Duration::from_millis(30);

/// Elements of a container: keys beside values for dicts.
///
/// Taken evenly from the younger half, the very youngest left out: what was stored last is often in use elsewhere still
/// (a batch in flight), and would not die with the container.
struct Sample {
    elements: Vec<Address>,
    keys: Vec<Address>,
    first_key: Option<Address>,
    /// The keys stored last.
    last_keys: Vec<Address>,
}

/// Positions to look at in a container of this length.
fn positions(length: usize) -> Vec<usize> {
    if length <= SAMPLE {
        return (0..length).collect();
    }
    let (start, end) = (length / 2, length - length / 8 - 1);
    let span = (end - start).max(SAMPLE);
    (0..SAMPLE).map(|at| (start + at * span / SAMPLE).min(length - 1)).collect()
}

/// Looks into a container; `id` and `boundary` are left to the caller.
pub(crate) fn look(heap: &mut Heap<'_>, container: Address, epochs: u64) -> Contents {
    look_together(heap, &[container], epochs)
}

/// Looks into containers whose elements belong together, such as hooks of one object on several layers: what dies with
/// them dies when all of them let go.
pub(crate) fn look_together(heap: &mut Heap<'_>, containers: &[Address], epochs: u64) -> Contents {
    let started = thread_time();
    let mut sample =
        Sample { elements: Vec::new(), keys: Vec::new(), first_key: None, last_keys: Vec::new() };
    for container in containers {
        sample.add(Sample::take(heap, *container));
    }
    let mut contents = Contents { sampled: sample.elements.len() as u32, ..Contents::default() };
    if sample.elements.is_empty() {
        return contents;
    }
    let owned = Owned::find(heap, &sample, started);
    contents.truncated = owned.truncated;
    let mut facts = Facts::default();
    facts.element_types(heap, &sample.elements, &mut contents);
    facts.keys(heap, &sample, epochs);
    let sizes = owned.measure(heap, &mut facts, &mut contents);
    let count = sample.elements.len() as u64;
    // What the elements keep is kept by others too, as far as could be told: their bytes are not known.
    if sample.has_open(heap, &owned.objects) {
        facts.add("shared");
    }
    contents.bytes_per_element = (sizes.objects + sizes.storages + sizes.saved) / count;
    contents.tensor_bytes_per_element = sizes.storages / count;
    contents.saved_bytes_per_element = sizes.saved / count;
    contents.viewed_bytes_per_element = sizes.viewed / count;
    contents.traits = facts.traits;
    contents
}

impl Sample {
    fn take(heap: &mut Heap<'_>, container: Address) -> Self {
        let mut sample =
            Self { elements: Vec::new(), keys: Vec::new(), first_key: None, last_keys: Vec::new() };
        let length = heap.length(container).unwrap_or(0);
        match heap.type_of(container).shape {
            Shape::Dict => sample.take_dict(heap, container, length),
            Shape::List => {
                let list = heap.own(container);
                for index in positions(length) {
                    // SAFETY: a list or a subclass, an index within it; returns a borrowed reference.
                    let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), index as isize) };
                    sample.elements.push(item as Address);
                }
            }
            Shape::Buffer => {}
            _ => {
                // Traversed in their own order: a deque's from the oldest, a set's in none.
                let mut all = Vec::new();
                heap.referents(container, &mut |item| all.push(item));
                sample.elements = positions(all.len()).into_iter().map(|at| all[at]).collect();
            }
        }
        sample
    }

    /// Is an element that the collector knows not among what dies with the sample?
    fn has_open(&self, heap: &mut Heap<'_>, owned: &[Address]) -> bool {
        let owned: AddressSet = owned.iter().copied().collect();
        self.elements.iter().any(|element| heap.type_of(*element).collected && !owned.contains(element))
    }

    fn add(&mut self, other: Self) {
        self.elements.extend(other.elements);
        self.keys.extend(other.keys);
        self.first_key = self.first_key.or(other.first_key);
        self.last_keys = other.last_keys;
    }

    fn take_dict(&mut self, heap: &Heap<'_>, container: Address, length: usize) {
        let dict = heap.own(container);
        let mut wanted = positions(length).into_iter().peekable();
        let (mut position, mut key, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        let mut count = 0;
        // SAFETY: a dict that does not change meanwhile; borrowed references.
        while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut position, &raw mut key, &raw mut value) } != 0
        {
            self.first_key.get_or_insert(key as Address);
            if wanted.next_if_eq(&count).is_some() {
                self.keys.push(key as Address);
                self.elements.push(value as Address);
            }
            if count + SAMPLE >= length {
                self.last_keys.push(key as Address);
            }
            count += 1;
        }
    }
}

/// Objects that die with the sampled elements.
struct Owned {
    objects: Vec<Address>,
    truncated: bool,
}

/// References met so far, and what is left to look at.
#[derive(Default)]
struct Search {
    internal: AddressMap<usize>,
    order: Vec<Address>,
    entered: AddressSet,
    ready: Vec<Address>,
}

impl Search {
    /// One more reference to an object, from within.
    fn meet(&mut self, object: Address) {
        let count = self.internal.entry(object).or_insert(0);
        if *count == 0 {
            self.order.push(object);
        }
        *count += 1;
        if *count >= Heap::references(object) {
            self.ready.push(object);
        }
    }

    /// Goes into everything that is accounted for; false where a bound was hit.
    fn settle(&mut self, heap: &mut Heap<'_>, started: Duration) -> bool {
        while let Some(object) = self.ready.pop() {
            if self.order.len() > OBJECT_LIMIT || thread_time().saturating_sub(started) > TIME_LIMIT {
                return false;
            }
            self.enter(heap, object);
        }
        true
    }

    /// Goes into what lacks no more than so many references.
    fn guess(&mut self, heap: &mut Heap<'_>, lacking: usize) {
        let near = |object: &Address| {
            !self.entered.contains(object)
                && Heap::references(*object).saturating_sub(self.internal[object]) <= lacking
        };
        let wanted: Vec<Address> = self.order.iter().copied().filter(near).collect();
        for object in wanted {
            self.enter(heap, object);
        }
    }

    fn enter(&mut self, heap: &mut Heap<'_>, object: Address) {
        if !self.entered.insert(object) || heap.length(object).is_some_and(|length| length > OBJECT_LIMIT) {
            return;
        }
        let mut children = Vec::new();
        heap.referents(object, &mut |child| children.push(child));
        for child in children {
            if !matches!(heap.type_of(child).shape, Shape::Module | Shape::Type | Shape::Code) {
                self.meet(child);
            }
        }
    }
}

#[derive(Default)]
struct Sizes {
    objects: u64,
    storages: u64,
    saved: u64,
    viewed: u64,
}

impl Owned {
    /// Objects are gone into once every reference to them is accounted for, so that the search does not wander off into
    /// what the whole program shares. Objects in cycles never are: a few that lack little are gone into all the same,
    /// and the trial deletion decides.
    fn find(heap: &mut Heap<'_>, sample: &Sample, started: Duration) -> Self {
        let mut search = Search::default();
        // The container itself holds each element once.
        for element in sample.elements.iter().chain(&sample.keys) {
            search.meet(*element);
        }
        let mut truncated = !search.settle(heap, started);
        let mut objects = Self::without_shared(heap, &search.order, &search.internal);
        let mut lacking = 1;
        // Cycles: rounds of guesses, each wider than the last, while elements are not accounted for.
        while lacking < LACKING && !truncated && (lacking < SURELY || sample.has_open(heap, &objects)) {
            lacking *= 2;
            search.guess(heap, lacking);
            truncated = !search.settle(heap, started);
            objects = Self::without_shared(heap, &search.order, &search.internal);
        }
        Self { objects, truncated }
    }

    /// Drops what others refer to as well, and everything reachable from it.
    fn without_shared(heap: &mut Heap<'_>, order: &[Address], internal: &AddressMap<usize>) -> Vec<Address> {
        let mut shared = AddressSet::default();
        let mut stack: Vec<Address> =
            order.iter().copied().filter(|object| Heap::references(*object) > internal[object]).collect();
        while let Some(object) = stack.pop() {
            if shared.insert(object) {
                heap.referents(object, &mut |child| {
                    if internal.contains_key(&child) {
                        stack.push(child);
                    }
                });
            }
        }
        order.iter().copied().filter(|object| !shared.contains(object)).collect()
    }

    fn measure(&self, heap: &mut Heap<'_>, facts: &mut Facts, contents: &mut Contents) -> Sizes {
        let mut sizes = Sizes::default();
        let torch = Torch::new(heap.py);
        let mut storages: AddressMap<(u64, u64)> = AddressMap::default();
        let mut walk = GraphWalk::new();
        for object in &self.objects {
            sizes.objects += heap.shallow_bytes(*object).next_multiple_of(16) as u64;
            let info = heap.type_of(*object);
            match info.shape {
                Shape::Exception => facts.add("exception"),
                Shape::Frame => facts.add("frame"),
                // A subclass may have attributes of its own making.
                Shape::Array if type_address(*object) == heap.ndarray() => {
                    facts.add("array");
                    let (pointer, held, shown) = array_bytes(&heap.own(*object));
                    let entry = storages.entry(pointer).or_insert((held, 0));
                    entry.1 += shown;
                }
                Shape::Tensor => {
                    facts.add("tensor");
                    let tensor = heap.own(*object);
                    let Some(torch) = torch.as_ref().filter(|torch| torch.is_plain(&tensor)) else {
                        continue;
                    };
                    if let Some(storage) = Torch::storage(&tensor).filter(|_| !torch.is_parameter(&tensor)) {
                        let entry = storages.entry(storage.pointer as Address).or_insert((storage.bytes, 0));
                        entry.1 += Torch::view_bytes(&tensor);
                    }
                    if Torch::is_cuda(&tensor) {
                        facts.add("device:cuda");
                    }
                    if let Some(node) = Torch::grad_fn(&tensor) {
                        facts.add("graph");
                        walk.follow(torch, node, NODE_LIMIT, true);
                    }
                }
                _ => {}
            }
        }
        for (pointer, (bytes, shown)) in &storages {
            sizes.storages += bytes;
            sizes.viewed += (*shown).min(*bytes);
            walk.saved.remove(pointer);
        }
        sizes.saved = walk.saved_bytes();
        sizes.objects += walk.own_bytes();
        contents.graph_nodes = walk.nodes;
        contents.saved_bytes = sizes.saved;
        contents.truncated |= walk.truncated;
        contents.node_types = by_count(walk.node_types);
        sizes
    }
}

/// Address of an array's memory, bytes of it, and bytes that the array shows; views are followed to what they view.
fn array_bytes(array: &Bound<'_, PyAny>) -> (Address, u64, u64) {
    let bytes =
        |array: &Bound<'_, PyAny>| array.getattr("nbytes").and_then(|n| n.extract::<u64>()).unwrap_or(0);
    let shown = bytes(array);
    let mut base = array.clone();
    for _ in 0..16 {
        match base.getattr("base") {
            Ok(next) if next.get_type().is(array.get_type()) => base = next,
            _ => break,
        }
    }
    (base.as_ptr() as Address, bytes(&base), shown)
}

fn by_count(counts: HashMap<String, u32>) -> Vec<(String, u32)> {
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(8);
    rows
}

/// Facts about the elements that decide a leak's class.
#[derive(Default)]
struct Facts {
    traits: Vec<String>,
}

impl Facts {
    fn add(&mut self, fact: &str) {
        if !self.traits.iter().any(|known| known == fact) {
            self.traits.push(fact.to_owned());
        }
    }

    fn element_types(&mut self, heap: &mut Heap<'_>, elements: &[Address], contents: &mut Contents) {
        let mut types: HashMap<String, u32> = HashMap::new();
        let (mut scalars, mut records) = (0, 0);
        for element in elements {
            *types.entry(heap.type_name(*element)).or_default() += 1;
            let object = heap.own(*element);
            scalars += usize::from(is_scalar(&object));
            records += usize::from(is_record(heap, *element));
            for fact in kinds(&object) {
                self.add(fact);
            }
        }
        if scalars == elements.len() {
            self.add("scalar");
        }
        if records == elements.len() {
            self.add("record");
        }
        contents.element_types = by_count(types);
    }

    fn keys(&mut self, heap: &mut Heap<'_>, sample: &Sample, epochs: u64) {
        let has_tensor = |heap: &mut Heap<'_>, key: Address| {
            let mut found = heap.type_of(key).shape == Shape::Tensor;
            let mut inner = Vec::new();
            heap.referents(key, &mut |item| inner.push(item));
            found |= inner.iter().any(|item| heap.type_of(*item).shape == Shape::Tensor);
            found
        };
        if sample.keys.iter().any(|key| has_tensor(heap, *key)) {
            self.add("tensor-key");
        }
        if let Some(first) = sample.first_key
            && counts_epochs(heap, first, &sample.last_keys, epochs)
        {
            self.add("epoch-key");
        }
        // functools makes a key of the arguments; a method's first argument is the instance.
        let has_instance = |heap: &mut Heap<'_>, key: &Address| {
            let Ok(tuple) = heap.own(*key).cast_into_exact::<PyTuple>() else { return false };
            let Ok(first) = tuple.get_item(0) else { return false };
            let info = heap.type_of(first.as_ptr() as Address);
            info.collected && info.shape == Shape::Plain
        };
        if !sample.keys.is_empty() && sample.keys.iter().all(|key| has_instance(heap, key)) {
            self.add("self-key");
        }
    }
}

/// Is one part of the keys the number of the epoch in which the entry was made?
///
/// The youngest keys agree in it, the oldest key has another, and the distance is the number of epochs between, give or
/// take one.
fn counts_epochs(heap: &Heap<'_>, first: Address, keys: &[Address], epochs: u64) -> bool {
    let parts = |key: Address| -> Vec<Option<i64>> {
        let key = heap.own(key);
        match key.cast_exact::<PyTuple>() {
            Ok(tuple) => tuple.iter().map(|item| integer(&item)).collect(),
            Err(_) => Vec::new(),
        }
    };
    let first = parts(first);
    let youngest: Vec<_> = keys.iter().map(|key| parts(*key)).collect();
    (0..first.len()).any(|at| {
        let value = youngest.last().and_then(|key| key.get(at).copied().flatten());
        let agree = youngest.iter().all(|key| key.get(at).copied().flatten() == value);
        match (first[at], value) {
            (Some(old), Some(new)) if agree && youngest.len() >= 2 => {
                let distance = new.abs_diff(old);
                distance >= 1 && distance.abs_diff(epochs) <= 1
            }
            _ => false,
        }
    })
}

fn integer(object: &Bound<'_, PyAny>) -> Option<i64> {
    object.cast_exact::<PyInt>().ok()?.extract().ok()
}

fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    let name = object.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
    let module = object.get_type().module().map_or_else(|_| String::new(), |name| name.to_string());
    matches!(name.as_str(), "int" | "float" | "str" | "bool" | "NoneType" | "bytes" | "complex")
        || (module == "numpy" && !matches!(name.as_str(), "ndarray"))
        || matches!(module.as_str(), "datetime" | "pathlib" | "decimal")
}

/// A row: a dict with string keys, a tuple or a list, of scalars only (two columns or more).
fn is_record(heap: &mut Heap<'_>, element: Address) -> bool {
    let object = heap.own(element);
    if let Ok(dict) = object.cast::<PyDict>() {
        return (2..=COLUMNS).contains(&dict.len())
            && dict.iter().all(|(key, value)| is_scalar(&key) && is_scalar(&value));
    }
    if !matches!(heap.type_of(element).shape, Shape::Tuple | Shape::List) {
        return false;
    }
    if heap.length(element).is_none_or(|length| !(2..=COLUMNS).contains(&length)) {
        return false;
    }
    let mut items = Vec::new();
    heap.referents(element, &mut |item| items.push(item));
    items.len() >= 2 && items.iter().all(|item| is_scalar(&heap.own(*item)))
}

/// What an element is, as far as that names a class.
fn kinds(object: &Bound<'_, PyAny>) -> Vec<&'static str> {
    const BY_CLASS: [(&str, &str, &str); 8] = [
        ("torch.optim.optimizer", "Optimizer", "optimizer"),
        ("torch.nn.modules.module", "Module", "module"),
        ("matplotlib.figure", "Figure", "figure"),
        ("matplotlib.backend_bases", "FigureManagerBase", "figure"),
        ("logging", "LogRecord", "log-record"),
        ("functools", "partial", "function"),
        ("types", "FunctionType", "function"),
        ("types", "MethodType", "function"),
    ];
    let is_a = |module: &str, class: &str| {
        loaded(object.py(), module)
            .and_then(|module| member(&module, class))
            .is_some_and(|class| is_a(object, &class))
    };
    BY_CLASS.iter().filter(|(module, class, _)| is_a(module, class)).map(|(_, _, kind)| *kind).collect()
}
