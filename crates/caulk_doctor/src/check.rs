//! How a check of a machine came out.

use serde::Serialize;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// As it should be.
    Good,
    /// It could not be found out.
    Unknown,
    /// It may do harm, depending on the program.
    Advice,
    /// A training is likely to fail or to be slow.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name: `memory`, `swap`, `shared-memory`.
    pub name: &'static str,
    /// How it came out.
    pub state: CheckState,
    /// What was found, with figures.
    pub text: String,
    /// What to do; empty where there is nothing to do.
    pub advice: String,
}

impl Check {
    pub(crate) fn new(
        name: &'static str,
        state: CheckState,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name, state, text: text.into(), advice: advice.into() }
    }

    pub(crate) fn good(name: &'static str, text: impl Into<String>) -> Self {
        Self::new(name, CheckState::Good, text, "")
    }
}
