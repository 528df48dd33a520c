//! What could not be looked at, or not whole.

use serde::{Deserialize, Serialize};

/// A file that could not be read or parsed, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Path, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1; `None` where the whole file is meant.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
    /// What is wrong, for people.
    pub message: String,
}

impl Problem {
    /// A problem of a whole file.
    pub fn of_file(file: impl AsRef<str>, message: impl Into<String>) -> Self {
        Self { file: file.as_ref().to_owned(), line: None, column: None, message: message.into() }
    }
}
