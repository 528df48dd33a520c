//! Checking sources on disk: settings, projects, and what is found in them.

pub(crate) mod baseline;
mod cache;
mod config;
mod fixes;
mod project;
mod report;
mod settings;
pub(crate) mod silence;
mod targets;

pub(crate) use fixes::Changes;
pub(crate) use project::{Found, Project};
pub(crate) use report::Collected;
pub(crate) use settings::Settings;
pub(crate) use targets::{Buffers, STDIN, targets};
