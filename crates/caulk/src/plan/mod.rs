//! What `caulk plan` reads and writes: models, machines, tables, files.

mod apply;
mod before;
mod document;
mod machine;
mod measure;
mod progress;
mod table;
mod trace;
mod yaml;

pub(crate) use apply::read;
pub(crate) use before::{before, set_loader};
pub(crate) use document::{Document, SCHEMA};
pub(crate) use machine::machine;
pub(crate) use measure::{measure, of_run};
pub(crate) use progress::Progress;
pub(crate) use table::{Outcome, head, measured, saved, sizes, text};
pub(crate) use trace::{trace, trace_training};
pub(crate) use yaml::write as yaml;
