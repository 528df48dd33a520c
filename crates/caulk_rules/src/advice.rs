//! Fixes in words, where no edit can be certain.

use caulk_core::{Applicability, Fix};

#[expect(clippy::unnecessary_wraps, reason = "what a diagnostic holds")]
pub(crate) fn advice(description: &str) -> Option<Fix> {
    Some(Fix {
        applicability: Applicability::DisplayOnly,
        description: description.to_owned(),
        edits: Vec::new(),
    })
}
