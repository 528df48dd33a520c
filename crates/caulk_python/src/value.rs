//! An expression that is stored somewhere: its text, its place and its shape.

use caulk_core::Position;
use ruff_text_size::TextRange;

/// What a statement stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// As written.
    pub text: String,
    /// First character.
    pub start: Position,
    /// First character after it.
    pub end: Position,
    /// Variables that it reads, in order of appearance, each once; `self.x` reads `self.x`.
    pub names: Vec<String>,
    pub(crate) range: TextRange,
}
