//! A leak pattern found in source. Nobody has seen it leak: that is a [`crate::Finding`].

use serde::{Deserialize, Serialize};

use crate::{ChainStep, Confidence, Fix, LeakClass, Place, Proof, Scope, Severity, Site};

/// One pattern at one place, with why it was found and what to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnostic {
    /// The pattern.
    pub class: LeakClass,
    /// How sure.
    pub confidence: Confidence,
    /// For how long the memory is kept.
    pub scope: Scope,
    /// How harmful.
    pub severity: Severity,
    /// Which parts of it are proven and which assumed.
    pub proof: Proof,
    /// One sentence: what is kept, how often it grows, for how long.
    pub message: String,
    /// Where; the first is the line to blame, and there is always one.
    pub sites: Vec<Site>,
    /// The container as the first site writes it.
    pub container: String,
    /// From what makes the value to why it outlives the step.
    pub chain: Vec<ChainStep>,
    /// What to change.
    pub fix: Option<Fix>,
    /// Other places with the same pattern, [`MOST_TWINS`](crate::MOST_TWINS) at most.
    pub twins: Vec<Place>,
    /// So many more of them are left out.
    #[serde(default)]
    pub more_twins: usize,
}
