//! What grows, under a number each: followed over the boundaries, explained once, traced until a line is known.

use std::time::Duration;

use caulk_wire::{ContainerKind, ContainerLen, Contents, Holder, Note, StepKind, TraceHit, TraceState};
use pyo3::prelude::*;

use crate::budget::{Budget, monotonic};
use crate::census::{Census, Grown};
use crate::channel::Channel;
use crate::graphs::{self, KeptGraph};
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, type_address};
use crate::holders::{self, Root, Scope};
use crate::label::{self, Label};
use crate::peaks::Peaks;
use crate::replaced::{self, Renewed};
use crate::trace::{self, Limits, Target, Watch};
use crate::{contents, frames};

/// Containers followed at a time.
const FOLLOWED: usize = 64;
/// CPU time that a search for paths is taken to cost.
const PATHS: Duration = Duration::from_millis(40);
/// Containers looked into at one boundary.
const LOOKS: usize = 12;
/// CPU time that one look is taken to cost.
const LOOK: Duration = Duration::from_millis(3);
/// Containers watched by one armed trace.
const WATCHED: usize = 8;
/// Times that a container is watched in vain before its line is left open.
const TRIES: u8 = 3;
/// Longest time that a trace is armed: a long epoch need not be traced to its end.
const LONGEST_TRACE: Duration = Duration::from_secs(30);
/// Things followed in the whole life of a process.
const MOST_ITEMS: usize = 1000;
/// Boundaries between two looks into the same container.
const LOOK_AGAIN: u32 = 4;

/// One thing that grows.
struct Suspect {
    id: u32,
    kind: ContainerKind,
    type_name: String,
    /// Where it is, for containers; a graph is followed by name.
    address: Option<(Address, Address)>,
    key: String,
    gained: u64,
    /// Lengths that were not sent yet: boundary and length.
    pending: Vec<(u32, u64)>,
    /// Nodes of a graph, or size of what is replaced, when first met.
    first_size: Option<u64>,
    shallow: u64,
    name: String,
    /// Type or module that defines the holder.
    home: String,
    /// Held by the user's module or by a running function.
    by_user: bool,
    searches: u8,
    explained: bool,
    looked: Option<u32>,
    bytes_per_element: u64,
    place: Option<Place>,
    tries: u8,
    hit: bool,
}

/// Where a tensor is kept that is replaced rather than filled.
enum Place {
    /// An attribute of an object, or a key of a dict; the address of the object and of its type.
    Slot { owner: Address, owner_type: Address },
    /// A local variable of a running function.
    Local { function: String },
}

impl Suspect {
    fn weight(&self) -> u64 {
        self.gained * self.bytes_per_element.max(16)
    }
}

/// Everything that was seen to grow.
#[derive(Default)]
pub(crate) struct Suspects {
    items: Vec<Suspect>,
    by_address: AddressMap<usize>,
    next_id: u32,
    armed: Option<Armed>,
    refused: u8,
    peaks: Peaks,
}

struct Armed {
    ids: Vec<u32>,
    candidates: u32,
    since: Duration,
}

impl Suspects {
    /// Is this one of the containers that grow?
    pub(crate) fn is_container(&self, address: Address) -> bool {
        self.by_address.contains_key(&address)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn follows_graphs(&self) -> bool {
        self.items.iter().any(|item| item.kind == ContainerKind::Graph)
    }

    /// Takes in a census: lengths of what is followed, and what is to be followed from now on.
    pub(crate) fn meet_containers(
        &mut self,
        heap: &mut Heap<'_>,
        census: &Census,
        grown: &[Grown],
        boundaries: &[u32],
        channel: &mut Channel,
    ) {
        let Some(&boundary) = boundaries.first() else { return };
        let mut met = AddressSet::default();
        for seen in &census.containers {
            if let Some(&at) = self.by_address.get(&seen.address)
                && self.items[at].address == Some((seen.address, type_address(seen.address)))
            {
                met.insert(seen.address);
                self.items[at].pending.push((boundary, seen.len as u64));
                self.items[at].shallow = heap.shallow_bytes(seen.address) as u64;
            }
        }
        self.forget_dead(&met);
        for grown in grown {
            match self.by_address.get(&grown.seen.address) {
                Some(&at) => self.items[at].gained = grown.gained as u64,
                None if self.by_address.len() < FOLLOWED && self.items.len() < MOST_ITEMS => {
                    self.follow(heap, grown, boundaries);
                }
                None => {}
            }
        }
        let explained = self.items.iter_mut().filter(|item| item.explained);
        explained.for_each(|item| item.send_lengths(channel));
    }

    fn forget_dead(&mut self, met: &AddressSet) {
        for (address, at) in &self.by_address {
            if !met.contains(address) {
                self.items[*at].address = None;
            }
        }
        self.by_address.retain(|address, _| met.contains(address));
    }

    fn follow(&mut self, heap: &mut Heap<'_>, grown: &Grown, boundaries: &[u32]) {
        let address = grown.seen.address;
        let kind = match grown.seen.shape {
            Shape::Dict => ContainerKind::Dict,
            Shape::Set => ContainerKind::Set,
            Shape::Deque => ContainerKind::Deque,
            Shape::Buffer => ContainerKind::Buffer,
            _ => ContainerKind::List,
        };
        let history = boundaries.iter().zip(grown.history).filter(|(_, len)| *len > 0);
        let mut pending: Vec<_> = history.map(|(boundary, len)| (*boundary, u64::from(len))).collect();
        pending.reverse();
        let mut item = self.item(kind, heap.type_name(address));
        item.address = Some((address, type_address(address)));
        item.gained = grown.gained as u64;
        item.shallow = heap.shallow_bytes(address) as u64;
        item.pending = pending;
        self.by_address.insert(address, self.items.len());
        self.items.push(item);
    }

    fn item(&mut self, kind: ContainerKind, type_name: String) -> Suspect {
        let id = self.next_id;
        self.next_id += 1;
        Suspect {
            id,
            kind,
            type_name,
            address: None,
            key: String::new(),
            gained: 0,
            pending: Vec::new(),
            first_size: None,
            shallow: 0,
            name: String::new(),
            home: String::new(),
            by_user: false,
            searches: 0,
            explained: false,
            looked: None,
            bytes_per_element: 0,
            place: None,
            tries: 0,
            hit: false,
        }
    }

    /// Objects in which graphs are kept: the next census says whether they are alive.
    pub(crate) fn owners(&self) -> AddressSet {
        let owner = |item: &Suspect| match item.place {
            Some(Place::Slot { owner, .. }) => Some(owner),
            _ => None,
        };
        self.items.iter().filter_map(owner).collect()
    }

    /// Forgets the owners that did not live to see this census.
    pub(crate) fn confirm_owners(&mut self, alive: &AddressMap<Address>) {
        for item in &mut self.items {
            if let Some(Place::Slot { owner, owner_type }) = item.place
                && alive.get(&owner) != Some(&owner_type)
            {
                item.place = None;
            }
        }
    }

    /// Measures what is followed by name, where its place is known.
    pub(crate) fn follow_names(&mut self, heap: &mut Heap<'_>, boundary: u32, channel: &mut Channel) {
        for item in &mut self.items {
            let value = match &item.place {
                Some(Place::Slot { owner, .. }) => label::slot_value(heap, *owner, &item.name),
                Some(Place::Local { function }) => local_of(heap.py, function, &item.name),
                None => None,
            };
            let Some(value) = value else { continue };
            if item.kind == ContainerKind::Graph {
                if let Some(contents) = graphs::contents_of(&value) {
                    item.take_graph(contents, boundary, channel);
                }
            } else if let Some(size) = replaced::size_of(heap, &value) {
                item.take_size(size, boundary, channel);
            }
        }
    }

    /// Takes in names whose objects are replaced by larger ones.
    pub(crate) fn meet_renewed(&mut self, renewed: Vec<Renewed>, boundary: u32, channel: &mut Channel) {
        for Renewed { label: Label { mut holder, owner, .. }, kind, sizes, type_name } in renewed {
            let key = format!("{}:{}", holder.function, holder.expression);
            if let Some(item) = self.items.iter_mut().find(|item| item.key == key) {
                if let (None, Some((_, size))) = (&item.place, sizes.last()) {
                    item.take_size(*size, boundary, channel);
                }
                item.place = Some(Place::new(owner, &holder));
                continue;
            }
            let mut item = self.item(kind, type_name);
            item.place = Some(Place::new(owner, &holder));
            item.key = key;
            item.name.clone_from(&holder.name);
            item.home = home_of(&holder);
            item.by_user = true;
            item.explained = true;
            item.bytes_per_element = if kind == ContainerKind::Tensor { 1 } else { 64 };
            holder.id = item.id;
            holder.boundary = boundary;
            channel.send(&holder.into());
            if kind == ContainerKind::Tensor {
                let traits = vec!["tensor".into(), "replaced".into()];
                let id = item.id;
                let contents = Contents {
                    id,
                    boundary,
                    sampled: 1,
                    bytes_per_element: 1,
                    tensor_bytes_per_element: 1,
                    traits,
                    ..Contents::default()
                };
                channel.send(&contents.into());
            }
            for (boundary, size) in sizes {
                item.take_size(size, boundary, channel);
            }
            self.items.push(item);
        }
    }

    /// Takes in graphs that were found to be kept by name.
    pub(crate) fn meet_graphs(&mut self, graphs: Vec<KeptGraph>, boundary: u32, channel: &mut Channel) {
        for graph in graphs {
            let Label { mut holder, owner, .. } = graph.label;
            let key = format!("{}:{}", holder.function, holder.expression);
            if let Some(item) = self.items.iter_mut().find(|item| item.key == key) {
                // A holder that was replaced by another at the same place.
                let followed = item.place.is_some();
                item.place = Some(Place::new(owner, &holder));
                if !followed {
                    item.take_graph(graph.contents, boundary, channel);
                }
                continue;
            }
            let mut item = self.item(ContainerKind::Graph, graph.type_name);
            item.place = Some(Place::new(owner, &holder));
            item.key = key;
            item.name.clone_from(&holder.name);
            item.home = home_of(&holder);
            item.by_user = true;
            item.explained = true;
            holder.id = item.id;
            holder.boundary = boundary;
            channel.send(&holder.into());
            item.take_graph(graph.contents, boundary, channel);
            self.items.push(item);
        }
    }

    /// Finds what keeps the new ones, and looks into the heaviest.
    pub(crate) fn explain(
        &mut self,
        heap: &mut Heap<'_>,
        boundary: u32,
        epochs: u64,
        budget: &Budget,
        channel: &mut Channel,
    ) {
        let wanted = |item: &Suspect| item.address.is_some() && !item.explained;
        let targets: AddressSet =
            self.items.iter().filter(|item| wanted(item)).filter_map(|item| Some(item.address?.0)).collect();
        if !targets.is_empty() && budget.allows(PATHS, Duration::ZERO) {
            // What the program itself keeps is found soon; only what is left over is worth a walk over everything.
            let again = self.items.iter().any(|item| wanted(item) && item.searches > 0);
            let (paths, _) = holders::find(heap, &targets, if again { Scope::All } else { Scope::User });
            for item in self.items.iter_mut().filter(|item| item.address.is_some() && !item.explained) {
                item.searches += 1;
                let path = item.address.and_then(|(address, _)| paths.get(&address));
                item.explain(heap, path, boundary, channel);
            }
        }
        self.look(heap, boundary, epochs, budget, channel);
    }

    fn look(
        &mut self,
        heap: &mut Heap<'_>,
        boundary: u32,
        epochs: u64,
        budget: &Budget,
        channel: &mut Channel,
    ) {
        let due = |item: &Suspect| item.looked.is_none_or(|looked| boundary >= looked + LOOK_AGAIN);
        let mut order: Vec<usize> = (0..self.items.len())
            .filter(|at| {
                self.items[*at].explained && self.items[*at].address.is_some() && due(&self.items[*at])
            })
            .collect();
        order.sort_by_key(|at| {
            let item = &self.items[*at];
            std::cmp::Reverse((item.looked.is_none(), item.by_user, item.weight()))
        });
        for at in order.into_iter().take(LOOKS) {
            if !budget.allows(LOOK, Duration::ZERO) {
                return;
            }
            let Some((address, _)) = self.items[at].address else { continue };
            // Hooks of one object sit in the registries of several layers.
            let name = self.items[at].name.clone();
            let together: Vec<Address> = if name.ends_with("_hooks") {
                self.items
                    .iter()
                    .filter(|item| item.name == name)
                    .filter_map(|item| Some(item.address?.0))
                    .collect()
            } else {
                vec![address]
            };
            let mut found = contents::look_together(heap, &together, epochs);
            let item = &mut self.items[at];
            item.looked = Some(boundary);
            item.bytes_per_element = found.bytes_per_element;
            found.id = item.id;
            found.boundary = boundary;
            channel.send(&found.into());
        }
    }

    /// Watches for the peak of an epoch in which memory has stood far above its level now.
    pub(crate) fn watch_peak(&mut self, py: Python<'_>, boundary: u32, in_use: u64, headroom: u64) {
        if self.armed.is_none() {
            self.peaks.arm(py, boundary, in_use, headroom);
        }
    }

    /// Tells of the peak since the boundary before.
    pub(crate) fn finish_peak(&mut self, py: Python<'_>, channel: &mut Channel) {
        self.peaks.finish(py, &mut self.next_id, channel);
    }

    /// Arms the trace for the heaviest whose line is not known yet.
    pub(crate) fn arm(&mut self, heap: &Heap<'_>, channel: &mut Channel) {
        if self.armed.is_some() || self.refused >= TRIES {
            return;
        }
        let mut order: Vec<usize> = (0..self.items.len())
            .filter(|at| {
                let item = &self.items[*at];
                let there = item.address.is_some() || item.place.is_some();
                item.explained
                    && there
                    && !item.hit
                    && item.tries < TRIES
                    && !item.name.is_empty()
                    && item.kind != ContainerKind::LruCache
            })
            .collect();
        order.sort_by_key(|at| std::cmp::Reverse((self.items[*at].by_user, self.items[*at].weight())));
        order.truncate(WATCHED);
        let watches: Vec<Watch> = order.iter().filter_map(|at| self.items[*at].watch(heap)).collect();
        if watches.is_empty() {
            return;
        }
        let ids: Vec<u32> = watches.iter().map(|watch| watch.id).collect();
        let armed = if trace::has_other_threads() {
            Err("before Python 3.12 lines are not traced while other threads run".to_owned())
        } else {
            trace::arm(heap.py, watches, &Limits::default())
        };
        match armed {
            Ok(candidates) => {
                for at in order {
                    self.items[at].tries += 1;
                }
                self.armed = Some(Armed { ids, candidates: candidates as u32, since: monotonic() });
            }
            Err(reason) => {
                self.refused += 1;
                let state = TraceState {
                    ids,
                    state: "refused".into(),
                    text: reason.clone(),
                    ..TraceState::default()
                };
                channel.send(&state.into());
                if self.refused == 1 {
                    channel.send(&Note { code: "trace-refused".into(), text: reason }.into());
                }
            }
        }
    }

    /// Has the trace been armed for too long?
    pub(crate) fn trace_is_overdue(&self) -> bool {
        self.armed.as_ref().is_some_and(|armed| monotonic().saturating_sub(armed.since) > LONGEST_TRACE)
            || self.peaks.is_overdue()
    }

    /// Takes the trace down once every watched container was seen growing often enough.
    pub(crate) fn finish_trace_if_enough(&mut self, py: Python<'_>, channel: &mut Channel) {
        if self.armed.is_some() {
            let progress = trace::poll(py);
            if progress.enough
                || progress.stopped.is_some()
                || self.trace_is_overdue()
                || trace::has_other_threads()
            {
                self.finish_trace(py, channel);
            }
        }
        if self.peaks.is_overdue() {
            self.finish_peak(py, channel);
        }
    }

    /// Takes the trace down and tells what it saw.
    pub(crate) fn finish_trace(&mut self, py: Python<'_>, channel: &mut Channel) {
        let Some(armed) = self.armed.take() else { return };
        let progress = trace::poll(py);
        let hits = trace::disarm(py);
        for item in self.items.iter_mut().filter(|item| armed.ids.contains(&item.id)) {
            item.hit = hits.iter().any(|hit| hit.id == item.id);
        }
        let (state, text) = match progress.stopped {
            Some(reason) => ("stopped", reason),
            None if progress.blind => ("blind", "watched functions ran but no event was seen".to_owned()),
            None if hits.is_empty() => ("silent", String::new()),
            None => ("hit", String::new()),
        };
        channel.send(
            &TraceState {
                ids: armed.ids,
                state: state.into(),
                text,
                candidates: armed.candidates,
                armed_ns: monotonic().saturating_sub(armed.since).as_nanos() as u64,
            }
            .into(),
        );
        for hit in hits {
            let hit: TraceHit = hit.into();
            channel.send(&hit.into());
        }
    }
}

impl Place {
    fn new(owner: Option<Address>, holder: &Holder) -> Self {
        match owner {
            Some(owner) => Self::Slot { owner, owner_type: type_address(owner) },
            None => Self::Local { function: holder.function.clone() },
        }
    }
}

impl Suspect {
    fn take_graph(&mut self, mut contents: Contents, boundary: u32, channel: &mut Channel) {
        let first = *self.first_size.get_or_insert(contents.graph_nodes);
        self.gained = contents.graph_nodes.saturating_sub(first);
        self.bytes_per_element = contents.bytes_per_element;
        // Beyond the bound of the walk the count would stand still while the graph grows on.
        if !contents.truncated || self.looked.is_none() {
            self.pending.push((boundary, contents.graph_nodes));
            self.looked = Some(boundary);
        }
        contents.id = self.id;
        contents.boundary = boundary;
        channel.send(&contents.into());
        self.send_lengths(channel);
    }

    fn take_size(&mut self, size: u64, boundary: u32, channel: &mut Channel) {
        let first = *self.first_size.get_or_insert(size);
        self.gained = size.saturating_sub(first);
        self.pending.push((boundary, size));
        self.send_lengths(channel);
    }

    fn explain(
        &mut self,
        heap: &mut Heap<'_>,
        path: Option<&holders::Path>,
        boundary: u32,
        channel: &mut Channel,
    ) {
        let Some(path) = path else {
            // A search that ended at its bound is tried again; then it is held from where Python cannot look.
            if self.searches >= 2 {
                self.explained = true;
                channel.send(&label::held_from_c(self.id, boundary, &self.type_name).into());
                self.send_lengths(channel);
            }
            return;
        };
        let mut label = label::describe(heap, path);
        self.by_user = match &path.root {
            Root::Local { .. } => true,
            Root::Module(name) => label::is_user_module(heap.py, name),
        };
        if let Some(wrapper) = label.cache {
            self.kind = ContainerKind::LruCache;
            label.place_of_cached(heap, wrapper);
        } else if label.queue.is_some() {
            self.kind = ContainerKind::Queue;
        }
        let mut holder = label.holder;
        self.name.clone_from(&holder.name);
        self.home = home_of(&holder);
        holder.id = self.id;
        holder.boundary = boundary;
        channel.send(&holder.into());
        self.explained = true;
        self.send_lengths(channel);
    }

    fn send_lengths(&mut self, channel: &mut Channel) {
        for (boundary, len) in self.pending.drain(..) {
            channel.send(
                &ContainerLen {
                    boundary,
                    id: self.id,
                    kind: self.kind,
                    type_name: self.type_name.clone(),
                    len,
                    shallow_bytes: self.shallow,
                }
                .into(),
            );
        }
    }

    fn watch(&self, heap: &Heap<'_>) -> Option<Watch> {
        let target = match (&self.place, self.address) {
            (Some(Place::Slot { owner, .. }), _) => {
                Target::Slot { owner: heap.own(*owner).unbind(), name: self.name.clone() }
            }
            (Some(Place::Local { function }), _) => {
                Target::Local { function: function.clone(), name: self.name.clone() }
            }
            (None, Some((address, _))) => Target::Object(heap.own(address).unbind()),
            (None, None) => return None,
        };
        Some(Watch { id: self.id, target, name: self.name.clone(), home: self.home.clone() })
    }
}

/// The type, or else the module, whose code is likely to mention what is held.
fn home_of(holder: &Holder) -> String {
    match holder.path.first() {
        _ if !holder.owner_type.is_empty() => holder.owner_type.clone(),
        Some(step) if step.kind == StepKind::Module => step.name.clone(),
        _ => String::new(),
    }
}

/// A local variable of the outermost running function of this name.
fn local_of<'py>(py: Python<'py>, function: &str, name: &str) -> Option<Bound<'py, PyAny>> {
    let threads = frames::all_frames(py);
    let frames = threads.iter().flat_map(|(_, stack)| stack.iter().rev());
    frames
        .filter(|frame| frames::place(frame).function == function)
        .find_map(|frame| frames::local(frame, name))
}
