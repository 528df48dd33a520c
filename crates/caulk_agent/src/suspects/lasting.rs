//! The path to the bytes that last.

use caulk_wire::{Contents, StepKind, Trait};

use super::Suspects;
use super::item::Suspect;
use super::key::key_of_list;
use crate::channel::Channel;
use crate::lasting::{By, Kept, Named};

/// Things followed by name beyond which what lasts adds none.
const MOST_NAMED: usize = 16;

impl Suspects {
    /// Takes in the path to the bytes that last.
    pub(crate) fn meet_lasting(&mut self, kept: Vec<Kept>, boundary: u32, channel: &mut Channel) {
        for Kept { by, bytes } in kept {
            match by {
                By::Container(address) => {
                    let Some(&at) = self.by_address.get(&address) else { continue };
                    if self.items[at].take_kept(bytes) {
                        // Looked into again, to be told.
                        self.items[at].looked = None;
                    }
                }
                By::Named(named) => self.meet_named(*named, bytes, boundary, channel),
            }
        }
    }

    fn meet_named(&mut self, named: Named, bytes: u64, boundary: u32, channel: &mut Channel) {
        let Named { holder, place, kind, type_name, length, traits } = named;
        // What lies in a list is not found again under the list's name: each look tells of it.
        let in_list = holder.path.last().is_some_and(|step| step.kind == StepKind::Index);
        let key = key_of_list(&holder);
        let named = self.items.iter().filter(|item| !item.key.is_empty()).count();
        let Some(item) = self.items.iter_mut().find(|item| item.key == key) else {
            if named >= MOST_NAMED {
                return;
            }
            let mut item = self.follow_named(kind, type_name, place, holder, boundary, channel);
            item.key = key;
            if in_list {
                item.place = None;
            }
            item.take_size(length, boundary, channel);
            self.items.push(item);
            return;
        };
        // The owner may have been replaced by another at the same place.
        if item.place.is_none() {
            item.take_size(length, boundary, channel);
        }
        item.place = (!in_list).then_some(place);
        if item.take_kept(bytes) {
            item.bytes_per_element = item.kept_per_element;
            channel.send(&item.contents(boundary, traits).into());
        }
    }
}

impl Suspect {
    fn contents(&self, boundary: u32, traits: Vec<Trait>) -> Contents {
        Contents {
            id: self.id,
            boundary,
            sampled: 1,
            element_types: vec![(self.type_name.clone(), 1)],
            bytes_per_element: self.kept_per_element,
            tensor_bytes_per_element: self.kept_per_element,
            traits: traits.into_iter().chain([Trait::Lasts]).collect(),
            ..Contents::default()
        }
    }

    /// Puts what is known of an element by the bytes that last in place of what was found in it, where that is far less
    /// and was no whole look.
    pub(super) fn correct(&self, contents: &mut Contents) {
        let open = contents.truncated || contents.traits.contains(&Trait::Shared);
        if open && self.kept_per_element / 2 > contents.bytes_per_element {
            contents.bytes_per_element = self.kept_per_element;
            contents.tensor_bytes_per_element = self.kept_per_element;
            contents.traits.retain(|known| *known != Trait::Shared);
            contents.traits.push(Trait::Lasts);
        }
    }
}
