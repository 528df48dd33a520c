//! What modules, their classes and their objects keep directly: registries, which are found before a search goes deep.
//!
//! A search goes through one package after the other, and may reach its bound before it comes to a large one. A registry of
//! that package (`pyplot`'s open figures) is three steps from its module.

use pyo3::types::PyStringMethods as _;

use super::{Root, Search};
use crate::heap::{Address, AddressSet, Shape};

impl Search<'_, '_> {
    /// Notes what is wanted among the values of a module's names, what these refer to, and the values of their dicts.
    pub(super) fn look_at_registries(&mut self, module: &str, namespace: Address, seen: &mut AddressSet) {
        let root = Root::Module(module.to_owned());
        for value in self.children(namespace) {
            if self.missing == 0 || self.is_out_of_time() {
                return;
            }
            if !self.heap.type_of(value).collected {
                continue;
            }
            self.note_path(&root, &[namespace, value]);
            if !self.is_own(module, value) || !seen.insert(value) {
                continue;
            }
            for held in self.children(value) {
                self.note_path(&root, &[namespace, value, held]);
                if self.heap.type_of(held).shape == Shape::Dict {
                    for entry in self.children(held) {
                        self.note_path(&root, &[namespace, value, held, entry]);
                    }
                }
            }
        }
    }

    /// A class that the module defines, or an object that is no function, container or module.
    fn is_own(&mut self, module: &str, value: Address) -> bool {
        match self.heap.type_of(value).shape {
            Shape::Plain => true,
            Shape::Type => {
                let defined = self.heap.module_of_class(value);
                defined.is_some_and(|name| name.to_str().is_ok_and(|name| name == module))
            }
            _ => false,
        }
    }

    fn children(&mut self, object: Address) -> Vec<Address> {
        let mut children = Vec::new();
        self.heap.referents(object, &mut |child| children.push(child));
        self.references += children.len() + 1;
        children
    }

    /// Notes a way from a module to an object that is searched for.
    fn note_path(&mut self, root: &Root, way: &[Address]) {
        let Some(last) = way.last() else { return };
        if !self.is_wanted(*last) || self.found.contains_key(last) {
            return;
        }
        self.start(way[0], root.clone());
        for object in &way[1..] {
            let before = self.nodes.len() as u32 - 1;
            self.nodes.push((*object, before));
            self.note(*object, before + 1);
        }
    }
}
