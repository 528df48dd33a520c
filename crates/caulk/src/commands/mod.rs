//! One module per command: resolve settings, load, decide, render.

pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod clips;
mod cuda_snapshot;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod guarded;
pub(crate) mod heal;
pub(crate) mod help;
pub(crate) mod live;
mod metrics;
pub(crate) mod plan;
pub(crate) mod recording;
pub(crate) mod report;
mod resumed;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod selftest;
pub(crate) mod server;
pub(crate) mod top;
pub(crate) mod verify;

/// Report of a run, kept in its folder so that lists need not judge it again.
pub(crate) const KEPT_REPORT: &str = "report.json";
