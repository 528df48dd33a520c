//! `--metrics`: the last samples of a run for a monitoring system, over HTTP.
//!
//! The supervisor samples as it would without; separate threads answer requests from what is there. No request
//! reaches the program or makes the supervisor look at it.

mod exporter;
mod families;
mod figures;
mod server;
mod shared;
mod tee;

pub use exporter::{BoundAddress, Exporter};
pub(crate) use tee::Tee;
