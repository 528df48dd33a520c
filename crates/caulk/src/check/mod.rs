//! Checking sources on disk: settings, projects, and what is found in them.

pub(crate) mod baseline;
mod config;
mod project;
mod report;
mod settings;
mod targets;

pub(crate) use project::Project;
pub(crate) use report::Collected;
pub(crate) use settings::Settings;
pub(crate) use targets::{Buffers, STDIN, targets};
