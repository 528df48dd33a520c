//! The changes that end a leak, as text: what is stored without its graph, a bound, a release.
//!
//! Edits are given only where the text makes them certain to fit; otherwise the fix is advice. Edited source parses,
//! and asked again about it no fix has further edits.

mod backward;
mod bounds;
mod calls;
mod store;
mod tasks;
mod tries;

use caulk_core::{Applicability, Edit, Fix};

pub(crate) use backward::needs as backward_needs;
pub(crate) use bounds::{bound, clear};
pub(crate) use calls::{close_figure, grad_none, queue, remove_handle, uncache, zero_grad};
pub(crate) use store::{clone, detach, float, traceback};
pub(crate) use tasks::{discard_when_done, leave_when_done};
pub(crate) use tries::{by_calls, callers, close_saved, cut_chain, left_on, tries, without_frames};

/// A change of behaviour: to be looked at before it is applied.
#[expect(clippy::unnecessary_wraps, reason = "what every search for a fix ends with")]
fn change(description: impl Into<String>, edits: Vec<Edit>) -> Option<Fix> {
    Some(Fix { applicability: Applicability::Unsafe, description: description.into(), edits })
}

/// Words only.
#[expect(clippy::unnecessary_wraps, reason = "what every search for a fix ends with")]
fn advice(description: impl Into<String>) -> Option<Fix> {
    Some(Fix {
        applicability: Applicability::DisplayOnly,
        description: description.into(),
        edits: Vec::new(),
    })
}
