//! What one entry of a growth costs.

use std::collections::BTreeSet;

use caulk_core::Certainty;
use caulk_python::program::{Contents, Kinds, OriginId, Traits, Value};

/// What one entry costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Nothing is known.
    Unknown,
    /// Numbers and text.
    Plain,
    /// Tasks of an event loop, each with what its function holds.
    Tasks,
    /// Arrays, tables.
    Host,
    /// Tensors, figures, processes.
    Tensors,
    /// Tensors with their graphs.
    Graphs,
}

impl Weight {
    /// Of what a container gets; a graph counts as its tensor.
    pub(crate) fn of(contents: &Contents) -> Self {
        match contents.heavy.or(contents.graph) {
            Some(value) if value.kinds.has(Kinds::TENSOR) => Self::Tensors,
            Some(_) => Self::Host,
            None if contents.kinds.has(Kinds::TASK) => Self::Tasks,
            None if contents.is_plain() => Self::Plain,
            None => Self::Unknown,
        }
    }

    /// What it is, in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Tensors | Self::Graphs => "tensors",
            Self::Host => "arrays",
            Self::Tasks => "tasks",
            Self::Plain => "numbers",
            Self::Unknown => "objects",
        }
    }

    /// Whether its size is a reason to report it.
    pub(crate) const fn counts(self) -> bool {
        !matches!(self, Self::Plain | Self::Unknown)
    }
}

/// Whether entries are tensors, arrays or tables.
pub(crate) fn largeness(contents: &Contents) -> Certainty {
    let Some(value) = contents.heavy.or(contents.graph) else {
        return if contents.kinds.has(Kinds::TASK) { Certainty::Proven } else { Certainty::Assumed };
    };
    // A number in a tensor takes some hundred bytes.
    if value.traits.has(Traits::SCALAR) {
        return Certainty::Assumed;
    }
    // An element of an array may be a number.
    Certainty::proven_if(value.only(Kinds::TENSOR.with(Kinds::ARRAY).with(Kinds::TABLE)), Certainty::Likely)
}

/// Whether a value carries a graph. The name of what is called shows nothing; a backward pass over the same graph does.
pub(crate) fn graphness(value: &Value, differentiated: &BTreeSet<OriginId>) -> Certainty {
    let used = || value.origin.is_some_and(|origin| differentiated.contains(&origin));
    if !value.carries_graph() || !value.traits.has(Traits::PROVED) && !used() {
        return Certainty::Assumed;
    }
    Certainty::proven_if(!value.kinds.has(Kinds::UNKNOWN), Certainty::Likely)
}
