//! What is followed by name, since the object itself is replaced: tensors and lists that are bound anew, kept graphs.

use caulk_wire::{ContainerKind, Contents, Holder, Trait};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::item::{Place, Suspect};
use super::key::{key_of, key_of_list};
use super::{Suspects, exit};
use crate::chain;
use crate::channel::Channel;
use crate::frames;
use crate::graphs::{self, KeptGraph};
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, type_address};
use crate::heap_profile::Sampler;
use crate::label::{self, Label};
use crate::replaced::{self, Renewed};
use crate::tee;

impl Suspects {
    /// Objects in which graphs are kept: the next census says whether they are alive.
    pub(crate) fn owners(&self) -> AddressSet {
        let owner = |item: &Suspect| item.place.as_ref()?.owner().map(|(owner, _)| owner);
        self.items.iter().filter_map(owner).collect()
    }

    /// Forgets the owners that did not live to see this census, and keeps the others alive.
    pub(crate) fn confirm_owners(&mut self, heap: &mut Heap<'_>, alive: &AddressMap<Address>) {
        heap.keep(alive.keys().copied());
        for item in &mut self.items {
            if let Some((owner, owner_type)) = item.place.as_ref().and_then(Place::owner)
                && alive.get(&owner) != Some(&owner_type)
            {
                item.place = None;
            }
        }
    }

    /// Measures what is followed by name, where its place is known.
    pub(crate) fn follow_names(
        &mut self,
        heap: &mut Heap<'_>,
        boundary: u32,
        sampler: Option<Sampler>,
        channel: &mut Channel,
    ) {
        for item in &mut self.items {
            let value = match &item.place {
                Some(Place::Slot { owner, .. }) => label::slot_value(heap, *owner, &item.name),
                Some(Place::Entries { owner, count, .. }) => {
                    let entries = replaced::Entries::of(heap, *owner, item.kind);
                    match entries.filter(|entries| entries.count == *count) {
                        Some(entries) => item.take_size(entries.size, boundary, channel),
                        None => item.place = None,
                    }
                    None
                }
                Some(Place::Local { function }) => local_of(heap.py, function, &item.name),
                Some(Place::AtExit) => {
                    if let Some(length) = exit::callbacks(heap.py) {
                        item.take_size(length, boundary, channel);
                    }
                    None
                }
                None => None,
            };
            let Some(value) = value else { continue };
            let head = value.as_ptr() as Address;
            if item.kind == ContainerKind::Queue && heap.type_of(head).shape == Shape::Tee {
                if let Some(waiting) = tee::waiting(heap, head) {
                    item.take_size(waiting, boundary, channel);
                }
            } else if item.kind == ContainerKind::Chain {
                heap.keep([head]);
                if let Some(length) = chain::length(heap, head) {
                    item.take_size(length, boundary, channel);
                }
            } else if item.kind == ContainerKind::Graph {
                if let Some(contents) = graphs::contents_of(&value, sampler) {
                    item.take_graph(contents, boundary, channel);
                }
            } else if let Some(size) = replaced::size_of(heap, &value) {
                item.take_size(size, boundary, channel);
            }
        }
    }

    /// Takes in names whose objects are replaced by larger ones.
    pub(crate) fn meet_renewed(&mut self, renewed: Vec<Renewed>, boundary: u32, channel: &mut Channel) {
        for Renewed { label: Label { holder, owner, .. }, entries, also, kind, sizes, type_name } in renewed {
            let place = match entries {
                Some((owner, count)) => Place::Entries { owner, owner_type: type_address(owner), count },
                None => Place::new(owner, &holder),
            };
            let key = key_of(&holder);
            if let Some(item) = self.items.iter_mut().find(|item| item.key == key) {
                if let (None, Some((_, size))) = (&item.place, sizes.last()) {
                    item.take_size(*size, boundary, channel);
                }
                item.place = Some(place);
                continue;
            }
            let mut item = self.follow_named(kind, type_name, place, holder, boundary, channel);
            item.key = key;
            item.bytes_per_element = if kind == ContainerKind::Tensor { 1 } else { 64 };
            if kind == ContainerKind::Tensor {
                let traits = [Trait::Tensor, Trait::Replaced].into_iter().chain(also).collect();
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
            let Label { holder, owner, .. } = graph.label;
            // Graphs in one list are measured together.
            let key = key_of_list(&holder);
            if let Some(item) = self.items.iter_mut().find(|item| item.key == key) {
                // A holder that was replaced by another at the same place.
                let followed = item.place.is_some();
                item.place = Some(Place::new(owner, &holder));
                if !followed {
                    item.take_graph(graph.contents, boundary, channel);
                }
                continue;
            }
            let (kind, place) = (ContainerKind::Graph, Place::new(owner, &holder));
            let mut item = self.follow_named(kind, graph.type_name, place, holder, boundary, channel);
            item.key = key;
            item.take_graph(graph.contents, boundary, channel);
            self.items.push(item);
        }
    }

    /// Something of the program's that is followed by its name from now on, which is told.
    pub(super) fn follow_named(
        &mut self,
        kind: ContainerKind,
        type_name: String,
        place: Place,
        mut holder: Holder,
        boundary: u32,
        channel: &mut Channel,
    ) -> Suspect {
        let mut item = self.item(kind, type_name);
        item.place = Some(place);
        item.take_names(&holder);
        item.by_user = true;
        item.explained = true;
        holder.id = item.id;
        holder.boundary = boundary;
        channel.send(&holder.into());
        item
    }
}

/// A local variable of the outermost running function of this name.
fn local_of<'py>(py: Python<'py>, function: &str, name: &str) -> Option<Bound<'py, PyAny>> {
    let (threads, name) = (frames::all_frames(py), PyString::intern(py, name));
    let frames = threads.iter().flat_map(|(_, stack)| stack.iter().rev());
    frames
        .filter(|frame| frames::place(frame).function == function)
        .find_map(|frame| frames::local(frame, &name))
}
