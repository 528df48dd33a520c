//! `caulk heal`: runs a command in copies of its project, with and without edits, and writes down which edits help.
//!
//! The engine `caulk_heal` decides; here files are copied, processes started, and results written.

mod apply;
mod document;
mod html;
mod journal;
mod markdown;
mod outputs;
mod place;
mod runner;
mod session;
mod shadow;
mod text;

pub(crate) use document::{Document, Outcome};
pub(crate) use html::html;
pub(crate) use journal::{begin, find, key};
pub(crate) use place::{RunPlace, claim};
pub(crate) use session::{Healed, heal};
pub(crate) use {apply::apply, apply::changed, apply::diff, markdown::markdown, shadow::Shadow, text::text};
