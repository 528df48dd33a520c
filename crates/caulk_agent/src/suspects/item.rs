//! One thing that grows: what is known of it, and what is told.

use caulk_wire::{ContainerKind, ContainerLen, Contents, Holder, PathStep, StepKind};

use crate::channel::Channel;
use crate::heap::{Address, Heap, type_address};
use crate::holders::{self, Root, Scope};
use crate::label;
use crate::trace::{Target, Watch};

/// Elements that are too few for a sample.
const FEW: u64 = 2;

/// One thing that grows.
pub(super) struct Suspect {
    pub(super) id: u32,
    pub(super) kind: ContainerKind,
    pub(super) type_name: String,
    /// Where it is, for containers; a graph is followed by name.
    pub(super) address: Option<(Address, Address)>,
    /// The way that led to it when its holder was searched for.
    pub(super) path: Option<holders::Path>,
    pub(super) key: String,
    pub(super) gained: u64,
    /// It grows every so many censuses: worth a look if the program keeps it itself.
    pub(super) is_rare: bool,
    /// Lengths that were not sent yet: boundary and length.
    pub(super) pending: Vec<(u32, u64)>,
    /// Nodes of a graph, or size of what is replaced, when first met.
    pub(super) first_size: Option<u64>,
    pub(super) shallow: u64,
    pub(super) name: String,
    /// Names by which source code may mention it.
    pub(super) names: Vec<String>,
    /// Type or module that defines the holder.
    pub(super) home: String,
    /// Held by the user's module or by a running function.
    pub(super) by_user: bool,
    pub(super) searches: u8,
    pub(super) explained: bool,
    /// The most elements that the queue takes whose container it is.
    pub(super) capacity: Option<u64>,
    pub(super) looked: Option<u32>,
    /// Its length at the last look.
    pub(super) looked_length: u64,
    pub(super) bytes_per_element: u64,
    /// Bytes that an element is likely to keep, by its type, until it is looked into.
    pub(super) likely_bytes: u64,
    /// Bytes that one element was seen to keep, by what lasts.
    pub(super) kept_per_element: u64,
    /// How long it was when it was counted last, at a census or between two.
    pub(super) counted: u64,
    /// The last lengths at censuses, newest first.
    lengths: [u64; 3],
    /// Lengths in a row that were not longer than the one before.
    pub(super) still: u8,
    pub(super) place: Option<Place>,
    pub(super) tries: u8,
    pub(super) hit: bool,
}

/// Where something is kept that is replaced rather than filled.
pub(crate) enum Place {
    /// An attribute of an object, or a key of a dict; the address of the object and of its type.
    Slot { owner: Address, owner_type: Address },
    /// The entries of a dict or list, taken together as long as there are as many.
    Entries { owner: Address, owner_type: Address, count: usize },
    /// A local variable of a running function.
    Local { function: String },
    /// With the functions that are to run at exit.
    AtExit,
}

impl Suspect {
    pub(super) fn new(id: u32, kind: ContainerKind, type_name: String) -> Self {
        Self {
            id,
            kind,
            type_name,
            address: None,
            path: None,
            key: String::new(),
            gained: 0,
            is_rare: false,
            pending: Vec::new(),
            first_size: None,
            shallow: 0,
            name: String::new(),
            names: Vec::new(),
            home: String::new(),
            by_user: false,
            searches: 0,
            explained: false,
            capacity: None,
            looked: None,
            looked_length: 0,
            bytes_per_element: 0,
            likely_bytes: 0,
            kept_per_element: 0,
            counted: 0,
            lengths: [0; 3],
            still: 0,
            place: None,
            tries: 0,
            hit: false,
        }
    }

    /// Is its holder to be searched for so? What the program keeps itself comes first.
    pub(super) fn is_unexplained(&self, scope: Scope) -> bool {
        let due = if scope == Scope::User { self.searches == 0 } else { self.searches > 0 && !self.is_rare };
        self.address.is_some() && !self.explained && due
    }

    /// What is followed by name and was seen once need not grow.
    pub(super) fn has_grown(&self) -> bool {
        self.address.is_some() || self.kind == ContainerKind::Graph || self.gained > 0
    }

    /// Has it not grown since the census before?
    pub(super) fn is_still(&self) -> bool {
        self.address.is_some() && self.still > 0
    }

    /// Has nobody looked into it yet?
    pub(super) fn is_unseen(&self) -> bool {
        self.address.is_some() && self.looked.is_none()
    }

    /// Does it seem light, and is it twice as long as at the last look? Its first elements may have been in use
    /// elsewhere, or may have got what they keep later.
    pub(super) fn has_outgrown_its_look(&self) -> bool {
        let known = self.address.is_some() && self.explained && self.looked.is_some();
        known && self.is_light() && self.counted >= 2 * self.looked_length.max(FEW)
    }

    pub(super) fn weight(&self) -> u64 {
        let known = if self.looked.is_some() { self.bytes_per_element } else { self.likely_bytes };
        let least = if self.kind == ContainerKind::Buffer { 1 } else { 16 };
        self.gained * known.max(least)
    }

    pub(super) fn take_graph(&mut self, mut contents: Contents, boundary: u32, channel: &mut Channel) {
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

    pub(super) fn take_size(&mut self, size: u64, boundary: u32, channel: &mut Channel) {
        self.note_length(size);
        let first = *self.first_size.get_or_insert(size);
        self.gained = size.saturating_sub(first);
        self.pending.push((boundary, size));
        self.send_lengths(channel);
    }

    pub(super) fn note_length(&mut self, length: u64) {
        let [newest, before, _] = self.lengths;
        self.still = if length > newest { 0 } else { self.still.saturating_add(1) };
        self.lengths = [length, newest, before];
        self.counted = length;
    }

    /// Its last length.
    pub(super) fn newest(&self) -> u64 {
        self.lengths[0]
    }

    /// Takes in how many bytes last through it that were made between the last but one census and the last: is that much
    /// more than was known?
    pub(super) fn take_kept(&mut self, bytes: u64) -> bool {
        let [newest, before, oldest] = self.lengths;
        let grew =
            if oldest > 0 && before > oldest { before - oldest } else { newest.saturating_sub(before) };
        // The first length is no growth.
        if before == 0 || grew == 0 {
            return false;
        }
        self.kept_per_element = bytes / grew;
        self.kept_per_element >= 2 * self.bytes_per_element.max(64)
    }

    pub(super) fn explain(
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
        self.path = Some(path.clone());
        self.by_user = match &path.root {
            Root::Local { .. } => true,
            Root::Module(name) => label::is_user_module(heap.py, name),
        };
        if let Some(wrapper) = label.cache {
            self.kind = ContainerKind::LruCache;
            label.place_of_cached(heap, wrapper);
        } else if let Some(queue) = &label.queue {
            self.kind = ContainerKind::Queue;
            self.capacity = queue.most;
        }
        let mut holder = label.holder;
        self.take_names(&holder);
        holder.id = self.id;
        holder.boundary = boundary;
        channel.send(&holder.into());
        self.explained = true;
        self.send_lengths(channel);
    }

    /// Takes over how source mentions what is held.
    pub(super) fn take_names(&mut self, holder: &Holder) {
        self.name.clone_from(&holder.name);
        self.names = label::mentioned_as(holder);
        self.home = home_of(holder);
    }

    pub(super) fn send_lengths(&mut self, channel: &mut Channel) {
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

    pub(super) fn watch(&self, heap: &Heap<'_>) -> Option<Watch> {
        let target = match (&self.place, self.address) {
            (Some(Place::Slot { owner, .. } | Place::Entries { owner, .. }), _) => {
                Target::Slot { owner: heap.own(*owner).unbind(), name: self.name.clone() }
            }
            (Some(Place::Local { function }), _) => {
                Target::Local { function: function.clone(), name: self.name.clone() }
            }
            (None, Some((address, _))) => Target::Object(heap.own(address).unbind()),
            (Some(Place::AtExit), _) | (None, None) => return None,
        };
        let links = self.kind == ContainerKind::Chain;
        let is_local = self.by_user && self.home.is_empty();
        let (names, home) = (self.names.clone(), self.home.clone());
        Some(Watch { id: self.id, target, names, home, is_local, links })
    }
}

impl Place {
    pub(crate) fn new(owner: Option<Address>, holder: &Holder) -> Self {
        match owner {
            Some(owner) => Self::Slot { owner, owner_type: type_address(owner) },
            None => Self::Local { function: holder.function.clone() },
        }
    }

    /// The object by which it is reached, and the address of its type.
    pub(super) fn owner(&self) -> Option<(Address, Address)> {
        match self {
            Self::Slot { owner, owner_type } | Self::Entries { owner, owner_type, .. } => {
                Some((*owner, *owner_type))
            }
            Self::Local { .. } | Self::AtExit => None,
        }
    }
}

/// The type, or else the module, whose code is likely to mention what is held: that of the object whose attribute it is, or
/// leads to it by keys and indices alone.
pub(super) fn home_of(holder: &Holder) -> String {
    if !holder.owner_type.is_empty() {
        return holder.owner_type.clone();
    }
    let inside = |step: &PathStep| matches!(step.kind, StepKind::Key | StepKind::Index | StepKind::Internal);
    let named = holder.path.iter().rposition(|step| !inside(step));
    let attribute = named.filter(|at| holder.path[*at].kind == StepKind::Attribute);
    let owner = attribute.and_then(|at| holder.path.get(at.checked_sub(1)?));
    match (owner, holder.path.first()) {
        (Some(owner), _) if !owner.type_name.is_empty() => owner.type_name.clone(),
        (_, Some(step)) if step.kind == StepKind::Module => step.name.clone(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_light_is_inspected_again_once_it_is_twice_as_long() {
        let mut item = Suspect::new(0, ContainerKind::List, "list".into());
        (item.address, item.explained, item.counted) = (Some((1, 1)), true, 9);
        assert!(!item.has_outgrown_its_look(), "its first look is due anyway");
        (item.looked, item.looked_length) = (Some(3), 1);
        assert!(item.has_outgrown_its_look());
        item.looked_length = 5;
        assert!(!item.has_outgrown_its_look());
        (item.looked_length, item.gained, item.bytes_per_element) = (1, 8, 1 << 20);
        assert!(!item.has_outgrown_its_look(), "it is known to be heavy");
    }

    fn check(path: &[(StepKind, &str, &str)], home: &str) {
        let step = |(kind, name, of): &(StepKind, &str, &str)| PathStep {
            kind: *kind,
            name: (*name).to_owned(),
            type_name: (*of).to_owned(),
        };
        let holder = Holder { path: path.iter().map(step).collect(), ..Holder::default() };
        assert_eq!(home_of(&holder), home);
    }

    #[test]
    fn what_an_object_keeps_under_a_key_is_at_home_where_the_object_is() {
        let (main, engine) =
            ((StepKind::Function, "main", ""), (StepKind::Local, "engine", "engines.Engine"));
        let handlers = (StepKind::Attribute, "handlers", "collections.defaultdict");
        let of_event = (StepKind::Key, "'done'", "list");
        check(&[main, engine, handlers, of_event], "engines.Engine");
        check(&[main, (StepKind::Local, "rows", "dict"), of_event], "");
        let module = (StepKind::Module, "engines", "");
        check(&[module, (StepKind::Global, "KEPT", "dict"), of_event], "engines");
    }
}
