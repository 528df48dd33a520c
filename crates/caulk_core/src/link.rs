//! The chain of a finding, from what makes a value to the reason why it lives on: `caulk_report` makes the words.

use serde::{Deserialize, Serialize};

/// One link of the chain from what makes a value to why it lives on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainStep {
    /// Path, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// The line's text.
    pub text: String,
    /// What happens there.
    pub note: String,
}

/// One place of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Path, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// The line's text.
    pub text: String,
    /// What happens there.
    pub event: LinkEvent,
}

/// What happens at a place of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// A container is made.
    Makes {
        /// Its name.
        target: String,
        /// What bounds it.
        bound: Option<String>,
    },
    /// The container grows.
    Grows,
    /// It calls a library in which something grows.
    CallsGrower,
    /// It calls the next place.
    Calls,
    /// Memory is allocated.
    Allocates,
    /// The memory that threads hold is allocated.
    AllocatesForThreads,
    /// As a rule of `check` has it.
    Rule(String),
}

impl From<&ChainStep> for Link {
    fn from(step: &ChainStep) -> Self {
        let ChainStep { file, line, text, note } = step.clone();
        Self { file, line, text, event: LinkEvent::Rule(note) }
    }
}
