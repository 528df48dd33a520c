//! A change of the source, with its words and its edits.

use serde::{Deserialize, Serialize};

/// Whether an edit can be applied without thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// Behaviour is provably unchanged.
    Safe,
    /// Behaviour may change; look before applying.
    Unsafe,
    /// Advice; cannot be applied as text.
    DisplayOnly,
}

/// Line and column, 1-based, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// Replaces the text from `start` up to, not including, `end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Edit {
    /// Path, as in [`crate::Site::file`].
    pub file: String,
    /// First character replaced.
    pub start: Position,
    /// First character kept.
    pub end: Position,
    /// New text.
    pub content: String,
}

/// What to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fix {
    /// Whether it can be applied without thinking.
    pub applicability: Applicability,
    /// The change in words.
    pub description: String,
    /// The change as text; empty where it cannot be written down.
    pub edits: Vec<Edit>,
}
