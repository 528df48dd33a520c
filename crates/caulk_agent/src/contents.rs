//! What is in a container: a sample of its younger elements, what dies with them, what their graphs pin.
//!
//! What dies with an element is found by trial deletion, the collector's own method over a side table: an object is the
//! element's if every reference to it comes from the element's own objects (CPython, Modules/gcmodule.c,
//! `subtract_refs`). Nothing is collected and nothing is changed.

use std::time::Duration;

use caulk_wire::{Contents, Trait};
use pyo3::prelude::*;

mod counts;
mod device_arrays;
mod exported;
mod facts;
mod sample;
mod whole;

use counts::by_count;
use device_arrays::DeviceArrays;
use exported::Exported;
use facts::Facts;
use sample::Sample;
pub(crate) use whole::{Walk, made_by};

use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, is_forked, loaded, member, type_address};
use crate::stopwatch::Stopwatch;
use crate::torch::{self, GraphWalk, STORAGE_BYTES, Torch};

/// Objects visited from the sampled elements.
const OBJECT_LIMIT: usize = 30_000;
/// Autograd nodes visited from them.
const NODE_LIMIT: u64 = 6_000;
/// References that an object in a cycle may lack and is gone into all the same: always, and while elements are not
/// accounted for (the artists of a figure refer to their axes by the dozen).
const SURELY: usize = 4;
const LACKING: usize = 256;
/// CPU time for one container.
const TIME_LIMIT: Duration = Duration::from_millis(30);

/// Looks into a container; `id` and `boundary` are left to the caller.
pub(crate) fn look(heap: &mut Heap<'_>, container: Address, epochs: u64) -> Contents {
    look_together(heap, &[container], 0, epochs, None)
}

/// Looks into containers whose elements belong together, such as hooks of one object on several layers: what dies with
/// them dies when all of them let go. Each had `old` elements when it began to grow, which are no part of that. Where
/// elements have graphs, all of these are gone through if `walk` says so.
pub(crate) fn look_together(
    heap: &mut Heap<'_>,
    containers: &[Address],
    old: usize,
    epochs: u64,
    walk: Option<Walk>,
) -> Contents {
    let capacity = capacity(heap, containers);
    let standing = Standing::of(heap, containers);
    let started = Stopwatch::start();
    let mut sample = Sample::default();
    for container in containers {
        sample.add(Sample::take(heap, *container, old));
    }
    sample.leave_out(heap, &standing.elements);
    let mut contents = Contents { sampled: sample.elements.len() as u32, ..Contents::default() };
    if sample.elements.is_empty() {
        return contents;
    }
    let owned = Owned::find(heap, &sample, started);
    // Up to here nothing was called that did not keep all of this alive before. So does what is asked below.
    let _alive = heap.hold(sample.addresses().chain(owned.objects.iter().copied()));
    contents.truncated = owned.truncated;
    let mut facts = Facts::default();
    if let Some(most) = capacity {
        facts.add(Trait::Capacity(most));
    }
    facts.element_types(heap, &sample.elements, &mut contents);
    facts.keys(heap, &sample, epochs);
    let mut sizes = owned.measure(heap, &standing.storages, &mut facts, &mut contents);
    facts.graphs_of(heap, &sample.elements);
    let count = sample.elements.len() as u64;
    let whole = walk.filter(|_| facts.has(&Trait::Graph)).and_then(|walk| walk.over(heap, containers));
    if let Some(whole) = whole {
        let length: usize = containers.iter().filter_map(|container| heap.length(*container)).sum();
        let share = |bytes: u64| bytes * whole.tensors / whole.walked * count / length.max(1) as u64;
        sizes.saved = share(whole.saved_bytes);
        sizes.storages = sizes.storages.max(share(whole.own_bytes));
        sizes.nodes = share(whole.node_bytes);
        sizes.on_gpu = sizes.on_gpu.max(share(whole.bytes_on_gpu));
        whole.tell(&mut contents);
    } else if sample.has_open(heap, &owned.objects) {
        // What the elements keep is kept by others too, as far as could be told: their bytes are not known.
        facts.add(Trait::Shared);
    }
    contents.bytes_per_element = (sizes.objects + sizes.storages + sizes.saved + sizes.nodes) / count;
    contents.tensor_bytes_per_element = sizes.storages / count;
    contents.saved_bytes_per_element = sizes.saved / count;
    contents.viewed_bytes_per_element = sizes.viewed / count;
    contents.cuda_bytes_per_element = sizes.on_gpu / count;
    contents.device_bytes_per_element = sizes.of_others / count;
    contents.traits = facts.traits;
    contents
}

/// The most elements that a single deque holds (`maxlen`), whatever a class that extends it calls so.
fn capacity(heap: &mut Heap<'_>, containers: &[Address]) -> Option<u64> {
    let [container] = containers else { return None };
    if heap.type_of(*container).shape != Shape::Deque {
        return None;
    }
    let deque = member(&loaded(heap.py, "collections")?, "deque")?;
    let most = deque.getattr("maxlen").ok()?.call_method1("__get__", (heap.own(*container),)).ok()?;
    most.extract().ok()
}

/// What containers have had from the beginning.
#[derive(Default)]
struct Standing {
    /// Their oldest elements.
    elements: AddressSet,
    /// Storages that these keep: elements that keep one of them as well (views of one data set, copies of a model's
    /// `state_dict`) add nothing to it.
    storages: AddressSet,
}

impl Standing {
    fn of(heap: &mut Heap<'_>, containers: &[Address]) -> Self {
        let mut standing = Self::default();
        for container in containers {
            if let Some(sample) = Sample::oldest(heap, *container) {
                standing.add(heap, &sample);
            }
        }
        standing
    }

    fn add(&mut self, heap: &mut Heap<'_>, sample: &Sample) {
        let owned = Owned::find(heap, sample, Stopwatch::start());
        let _alive = heap.hold(sample.addresses().chain(owned.objects.iter().copied()));
        let torch = Torch::new(heap.py);
        for object in owned.objects {
            let pointer = match heap.type_of(object).shape {
                Shape::Array if type_address(object) == heap.ndarray() => {
                    Some(array_bytes(&heap.own(object), torch.as_ref()).0)
                }
                Shape::Tensor => {
                    let tensor = heap.own(object);
                    let is_plain = torch.as_ref().is_some_and(|torch| torch.is_plain(&tensor));
                    let storage = is_plain.then(|| Torch::storage(&tensor)).flatten();
                    storage.map(|storage| storage.pointer as Address)
                }
                _ => None,
            };
            self.storages.extend(pointer);
        }
        self.elements.extend(sample.elements.iter().chain(&sample.keys).copied());
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
    /// Tensors that torch's C++ side holds as well: it counts as one reference of Python's, however many it has. A graph
    /// that is still there holds every parameter that went into it.
    backed: AddressSet,
    internal: AddressMap<usize>,
    order: Vec<Address>,
    entered: AddressSet,
    ready: Vec<Address>,
}

impl Search {
    /// One more reference to an object, from within.
    fn meet(&mut self, heap: &Heap<'_>, object: Address) {
        let count = self.internal.entry(object).or_insert(0);
        if *count == 0 {
            self.order.push(object);
        }
        *count += 1;
        if *count + usize::from(self.backed.contains(&object)) >= heap.references(object) {
            self.ready.push(object);
        }
    }

    /// References to an object that were not met.
    fn lacking(&self, heap: &Heap<'_>, object: Address) -> usize {
        let met = self.internal[&object] + usize::from(self.backed.contains(&object));
        heap.references(object).saturating_sub(met)
    }

    /// Asks torch about the tensors that lack one reference; false where it holds none of them. Nothing is asked in a forked
    /// process, where everything that may be let go of meanwhile would have to be copied to be kept.
    fn ask_torch(&mut self, heap: &mut Heap<'_>, sample: &Sample) -> bool {
        if is_forked() {
            return false;
        }
        let order = self.order.iter().copied();
        let asked: Vec<Address> = order
            .filter(|object| heap.type_of(*object).shape == Shape::Tensor && self.lacking(heap, *object) == 1)
            .collect();
        if asked.is_empty() {
            return false;
        }
        heap.keep(self.order.iter().copied().chain(sample.addresses()));
        if !torch::counts_for_python(heap.py) {
            return false;
        }
        let is_held = |object: &Address| {
            let tensor = heap.own(*object);
            heap.is_plain_tensor(&tensor) && torch::is_held_by_cpp(&tensor)
        };
        let backed: Vec<Address> = asked.into_iter().filter(is_held).collect();
        self.backed.extend(&backed);
        self.ready.extend(&backed);
        !backed.is_empty()
    }

    /// Goes into everything that is accounted for; false where a bound was hit.
    fn settle(&mut self, heap: &mut Heap<'_>, sample: &Sample, started: Stopwatch) -> bool {
        loop {
            while let Some(object) = self.ready.pop() {
                if self.order.len() > OBJECT_LIMIT || started.work() > TIME_LIMIT {
                    return false;
                }
                self.enter(heap, object);
            }
            if !self.ask_torch(heap, sample) {
                return true;
            }
        }
    }

    /// Goes into what lacks no more than so many references.
    fn guess(&mut self, heap: &mut Heap<'_>, lacking: usize) {
        let near =
            |object: &Address| !self.entered.contains(object) && self.lacking(heap, *object) <= lacking;
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
        heap.counted_referents(object, &mut |child| children.push(child));
        // A module's names are not its functions', however few functions there are.
        let globals = heap.globals_of(object);
        for child in children.into_iter().filter(|child| Some(*child) != globals) {
            if !matches!(heap.type_of(child).shape, Shape::Module | Shape::Type | Shape::Code) {
                self.meet(heap, child);
            }
        }
    }
}

#[derive(Default)]
struct Sizes {
    objects: u64,
    storages: u64,
    saved: u64,
    /// The graphs themselves.
    nodes: u64,
    viewed: u64,
    /// Part of storages and saved bytes that lies on a GPU,
    on_gpu: u64,
    /// ... in arrays of other libraries.
    of_others: u64,
}

impl Owned {
    /// Objects are gone into once every reference to them is accounted for, so that the search does not wander off into
    /// what the whole program shares. Objects in cycles never are: a few that lack little are gone into all the same,
    /// and the trial deletion decides.
    fn find(heap: &mut Heap<'_>, sample: &Sample, started: Stopwatch) -> Self {
        let mut search = Search::default();
        // The container itself holds each element once.
        for element in sample.elements.iter().chain(&sample.keys) {
            search.meet(heap, *element);
        }
        let mut truncated = !search.settle(heap, sample, started);
        let mut objects = Self::without_shared(heap, &search);
        let mut lacking = 1;
        // Cycles: rounds of guesses, each wider than the last, while elements are not accounted for.
        while lacking < LACKING && !truncated && (lacking < SURELY || sample.has_open(heap, &objects)) {
            lacking *= 2;
            search.guess(heap, lacking);
            truncated = !search.settle(heap, sample, started);
            objects = Self::without_shared(heap, &search);
        }
        Self { objects, truncated }
    }

    /// Drops what others refer to as well, and everything reachable from it.
    fn without_shared(heap: &mut Heap<'_>, search: &Search) -> Vec<Address> {
        let Search { order, internal, .. } = search;
        let mut shared = AddressSet::default();
        let mut stack: Vec<Address> =
            order.iter().copied().filter(|object| search.lacking(heap, *object) > 0).collect();
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

    /// `standing`: storages that are not counted.
    fn measure(
        &self,
        heap: &mut Heap<'_>,
        standing: &AddressSet,
        facts: &mut Facts,
        contents: &mut Contents,
    ) -> Sizes {
        let mut sizes = Sizes::default();
        let torch = Torch::new(heap.py);
        let mut storages: AddressMap<(u64, u64)> = AddressMap::default();
        let mut on_gpu = AddressSet::default();
        let mut of_tensors = AddressSet::default();
        let mut exported = Exported::default();
        let device_arrays = DeviceArrays::find(heap.py);
        let mut of_others: AddressMap<u64> = AddressMap::default();
        let mut mapped = AddressSet::default();
        let mut walk = GraphWalk::new();
        for object in &self.objects {
            sizes.objects += heap.shallow_bytes(*object).next_multiple_of(16) as u64;
            let info = heap.type_of(*object);
            match info.shape {
                Shape::Exception => facts.add(Trait::Exception),
                Shape::Frame => facts.add(Trait::Frame),
                Shape::Exporter => {
                    if let Some((pointer, bytes)) = exported.of(*object)
                        && mapped.insert(pointer)
                    {
                        sizes.objects += bytes;
                    }
                }
                Shape::Stream | Shape::TextStream => {
                    sizes.objects += exported::of_stream(&heap.own(*object), info.shape);
                }
                // A subclass may have attributes of its own making.
                Shape::Array if type_address(*object) == heap.ndarray() => {
                    facts.add(Trait::Array);
                    let (pointer, held, shown) = array_bytes(&heap.own(*object), torch.as_ref());
                    let entry = storages.entry(pointer).or_insert((held, 0));
                    entry.1 += shown;
                }
                Shape::Tensor => {
                    facts.add(Trait::Tensor);
                    let tensor = heap.own(*object);
                    let Some(torch) = torch.as_ref().filter(|torch| torch.is_plain(&tensor)) else {
                        continue;
                    };
                    // Parameters as well: those that others use are not among what dies. Their gradients are held from
                    // C++, where the trial does not come.
                    for held in Torch::grad(&tensor).iter().chain([&tensor]) {
                        sizes.objects += Torch::own_bytes(held);
                        if let Some(storage) = Torch::storage(held) {
                            let entry =
                                storages.entry(storage.pointer as Address).or_insert((storage.bytes, 0));
                            entry.1 += Torch::view_bytes(held);
                            of_tensors.insert(storage.pointer as Address);
                            if storage.on_gpu {
                                on_gpu.insert(storage.pointer as Address);
                            } else if Torch::is_borrowed(held) {
                                facts.add(Trait::Borrowed);
                            }
                        }
                    }
                    if Torch::is_cuda(&tensor) {
                        facts.add(Trait::OnCuda);
                    }
                    if let Some(node) = Torch::grad_fn(&tensor) {
                        facts.add(Trait::Graph);
                        walk.follow(torch, node, NODE_LIMIT, true);
                    }
                }
                _ => {
                    if let Some(block) = device_arrays.block(type_address(*object), || heap.own(*object)) {
                        facts.add(Trait::Array);
                        facts.add(Trait::OnCuda);
                        of_others.insert(block.address, block.bytes);
                    }
                }
            }
        }
        sizes.of_others = of_others.values().sum();
        storages.retain(|pointer, _| !standing.contains(pointer));
        sizes.storages = sizes.of_others;
        for (pointer, (bytes, shown)) in &storages {
            sizes.storages += bytes;
            // An array has none of its own.
            sizes.objects += if of_tensors.contains(pointer) { STORAGE_BYTES } else { 0 };
            sizes.viewed += (*shown).min(*bytes);
            walk.saved.remove(pointer);
        }
        let own_on_gpu = storages.iter().filter(|(pointer, _)| on_gpu.contains(pointer));
        sizes.on_gpu =
            own_on_gpu.map(|(_, (bytes, _))| bytes).sum::<u64>() + walk.saved_on_gpu() + sizes.of_others;
        sizes.saved = walk.saved_bytes();
        sizes.nodes = walk.own_bytes();
        // An element may well have several tensors of one graph.
        if walk.separate() < walk.roots().min(contents.sampled as usize) {
            facts.add(Trait::Overlapping);
        }
        contents.graph_nodes = walk.nodes;
        contents.saved_bytes = sizes.saved;
        contents.saved_touched = walk.saved_touched();
        contents.opaque_nodes = walk.opaque;
        contents.node_bytes = sizes.nodes;
        contents.truncated |= walk.truncated;
        contents.node_types = by_count(walk.node_types);
        sizes
    }
}

/// Address of the memory behind an array, bytes of it, and bytes that the array shows. Views are followed to what they
/// view: another array, or the tensor whose memory `Tensor.numpy()` shows.
pub(crate) fn array_bytes(array: &Bound<'_, PyAny>, torch: Option<&Torch<'_>>) -> (Address, u64, u64) {
    let bytes =
        |array: &Bound<'_, PyAny>| array.getattr("nbytes").and_then(|n| n.extract::<u64>()).unwrap_or(0);
    let shown = bytes(array);
    let mut base = array.clone();
    for _ in 0..16 {
        match base.getattr("base") {
            Ok(next) if next.get_type().is(array.get_type()) => base = next,
            Ok(next) if torch.is_some_and(|torch| torch.is_plain(&next)) => match Torch::storage(&next) {
                Some(storage) => return (storage.pointer as Address, storage.bytes, shown),
                None => break,
            },
            _ => break,
        }
    }
    (base.as_ptr() as Address, bytes(&base), shown)
}
