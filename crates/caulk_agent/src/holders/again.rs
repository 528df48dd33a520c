//! Holders found again by the way that led to them last time: what they hold is counted without a census.
//!
//! Every node of a path must still be a referent of the one before it, from a module or a running function on. So nothing is
//! read but what is alive, and what was let go of meanwhile is left to the next census.

use pyo3::prelude::*;
use pyo3::types::PyModule;

use super::{Path, Root, locals};
use crate::frames;
use crate::heap::{Address, Heap, Shape, loaded};

/// Dicts that an object refers to itself which may be its namespace.
const NAMESPACES: usize = 4;

/// Where paths begin, as it is now.
pub(crate) struct Roots<'py> {
    locals: Vec<(Root, Bound<'py, PyAny>)>,
}

impl<'py> Roots<'py> {
    pub(crate) fn now(py: Python<'py>) -> Self {
        let frames = frames::all_frames(py);
        Self { locals: locals(py, &frames) }
    }

    /// Does this path still lead to its end? Where it does, nothing is made or called after that is known.
    pub(crate) fn lead_to_end_of(&self, heap: &mut Heap<'py>, path: &Path) -> bool {
        let Some(first) = path.nodes.first().copied() else { return false };
        let begins = match &path.root {
            Root::Module(name) => namespace(heap.py, name) == Some(first),
            Root::Local { .. } => {
                let is_it = |(root, value): &(Root, Bound<'py, PyAny>)| {
                    root.is_same_variable(&path.root) && value.as_ptr() as Address == first
                };
                self.locals.iter().any(is_it)
            }
        };
        begins && path.nodes.windows(2).all(|pair| refers(heap, pair[0], pair[1]))
    }
}

impl Root {
    /// Are these the same variable of a function, at whatever line that is?
    fn is_same_variable(&self, other: &Self) -> bool {
        let variable = |root: &Self| match root {
            Self::Local { function, file, variable, thread, .. } => {
                Some((function.clone(), file.clone(), variable.clone(), thread.clone()))
            }
            Self::Module(_) => None,
        };
        variable(self).is_some_and(|known| variable(other) == Some(known))
    }
}

fn namespace(py: Python<'_>, module: &str) -> Option<Address> {
    Some(loaded(py, module)?.cast::<PyModule>().ok()?.dict().as_ptr() as Address)
}

/// Does an object refer to another one, itself or through its namespace, which may have been made since?
fn refers(heap: &mut Heap<'_>, object: Address, wanted: Address) -> bool {
    let mut dicts = Vec::new();
    holds(heap, object, wanted, &mut dicts) || {
        dicts
            .into_iter()
            .any(|dict| heap.type_of(dict).shape == Shape::Dict && holds(heap, dict, wanted, &mut Vec::new()))
    }
}

/// Is it one of the referents? The first of the others are handed back.
fn holds(heap: &mut Heap<'_>, object: Address, wanted: Address, others: &mut Vec<Address>) -> bool {
    let mut found = false;
    heap.referents(object, &mut |referent| {
        found |= referent == wanted;
        if others.len() < NAMESPACES {
            others.push(referent);
        }
    });
    found
}
