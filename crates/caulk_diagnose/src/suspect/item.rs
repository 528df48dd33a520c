//! One thing that grows, and what all of one line come to together.

use caulk_core::wire::{ContainerKind, Contents, Holder, Trait};
use caulk_core::{Evidence, LeakClass, Series};

use crate::claim::{Standing, Witness};
use crate::class;
use crate::growth::Rate;
use crate::place::Located;

/// Something that grows.
pub(crate) struct Suspect<'a> {
    pub(super) holder: &'a Holder,
    pub(super) kind: ContainerKind,
    pub(super) contents: Option<&'a Contents>,
    pub(super) rate: Rate,
    pub(super) located: Option<Located>,
    /// The class by the signs of holder and elements.
    pub(super) by_signs: LeakClass,
    pub(super) standing: Standing,
    pub(super) witness: Witness,
    /// The memory in which most of it lies.
    pub(super) series: Series,
    /// What shows of bytes that were not found in its elements.
    pub(super) beside: Option<Evidence>,
    /// Its elements keep the same things: each for itself they would keep more than there is.
    pub(super) shares: bool,
    /// It holds so many elements at most.
    pub(super) fills: Option<u64>,
}

impl Suspect<'_> {
    /// The class in view of all that is known.
    pub(super) fn class(&self) -> LeakClass {
        class::in_view_of(self.by_signs, self.beside.as_ref())
    }

    /// The name under which a link of a chain refers to the one before it.
    pub(super) fn link(&self) -> Option<&str> {
        let links = self.contents?.traits.iter().filter_map(|fact| match fact {
            Trait::Link(name) => Some(name.as_str()),
            _ => None,
        });
        links.take(1).find(|name| !name.is_empty())
    }

    /// Is this a fact of its elements?
    pub(super) fn holds(&self, fact: &Trait) -> bool {
        self.contents.is_some_and(|contents| contents.traits.contains(fact))
    }

    /// Are its elements of a kind that one does not keep by the thousand?
    pub(super) fn is_heavy(&self) -> bool {
        [Trait::Tensor, Trait::Graph, Trait::Array, Trait::Figure, Trait::Frame]
            .iter()
            .any(|fact| self.holds(fact))
    }

    /// What grows, as its line writes it: of what is bound anew under a key, the element.
    pub(super) fn container(&self) -> String {
        let Some(located) = &self.located else { return self.holder.expression.clone() };
        let key = located.grow.as_ref().and_then(|grow| grow.key.as_ref());
        let bound_anew = matches!(self.kind, ContainerKind::Graph | ContainerKind::Tensor);
        match key.filter(|_| bound_anew) {
            Some(key) => format!("{}[{key}]", located.container),
            None => located.container.clone(),
        }
    }
}

/// Does it only refer to its elements, and keeps none (the cursors that a `sqlite3.Connection` knows, a `WeakSet`)?
pub(super) fn holds_weakly(contents: &Contents) -> bool {
    let is_weak = |name: &str| name == "weakref" || name.starts_with("weakref.");
    !contents.element_types.is_empty() && contents.element_types.iter().all(|(name, _)| is_weak(name))
}

/// What adds up of one line: graphs that it extends are one graph, met from several ends, and those of a container's
/// elements are the container's matter; what only refers to elements adds none to those that others keep.
pub(super) fn adding<'a, 'b>(group: impl IntoIterator<Item = &'b Suspect<'a>>) -> Vec<&'b Suspect<'a>>
where
    'a: 'b,
{
    let (graphs, containers): (Vec<_>, Vec<_>) =
        group.into_iter().partition(|suspect| suspect.kind == ContainerKind::Graph);
    let (weak, keeping): (Vec<_>, Vec<_>) =
        containers.into_iter().partition(|suspect| suspect.contents.is_some_and(holds_weakly));
    match (keeping.is_empty(), weak.is_empty()) {
        (false, _) => keeping,
        (true, false) => weak,
        (true, true) => graphs.into_iter().take(1).collect(),
    }
}

/// Bytes of one line per unit.
pub(super) fn bytes<'a: 'b, 'b>(group: impl IntoIterator<Item = &'b Suspect<'a>>) -> f64 {
    adding(group).iter().map(|suspect| suspect.rate.bytes_per_unit).sum()
}

/// Is the length of such a thing an amount of memory?
pub(super) fn counts_bytes(kind: ContainerKind) -> bool {
    matches!(kind, ContainerKind::Tensor | ContainerKind::Buffer)
}

pub(super) fn same_line(a: &Suspect<'_>, b: &Suspect<'_>) -> bool {
    match (&a.located, &b.located) {
        (Some(a), Some(b)) => a.path == b.path && a.spot.line == b.spot.line,
        // Registries of hooks and the like: one cause, many holders.
        (None, None) => a.class() == b.class() && a.holder.name == b.holder.name && !a.holder.name.is_empty(),
        _ => false,
    }
}
