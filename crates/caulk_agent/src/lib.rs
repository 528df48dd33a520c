//! The agent inside the program: `caulk._agent`.
//!
//! Reads what the process holds at the boundaries that `caulk._bootstrap` cuts, finds the containers and graphs that
//! grow, what keeps them and which line grows them, and tells the supervisor. It runs with the GIL held, on the
//! program's own threads, and conducts itself as a guest: it starts no thread, writes no file, prints nothing, imports
//! nothing, runs no user code and never collects garbage. Every part fails closed.

use pyo3::prelude::*;

mod around;
mod board;
mod budget;
mod census;
mod chain;
mod channel;
mod clock;
mod contents;
mod copied;
mod copied_files;
mod cuda;
mod cuda_blocks;
mod cuda_history;
mod cuda_ledger;
mod exclusive;
mod exhausted;
mod frames;
mod garbage;
mod graphs;
mod handlers;
mod heap;
mod heap_profile;
mod holders;
mod in_use;
mod inspect;
mod instances;
mod label;
mod lasting;
mod later;
mod opened;
mod own;
mod pages;
mod passes;
mod peaks;
mod profiler;
mod replaced;
mod segments;
mod session;
mod sharing;
mod stopwatch;
mod suspects;
mod symbols;
mod tee;
mod torch;
mod trace;

#[global_allocator]
static ALLOCATOR: own::Own = own::Own;

/// The module `caulk._agent`.
#[pymodule]
fn _agent(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    own::outlive_forks();
    heap::try_lists(module.py());
    around::register(module)?;
    clock::register(module)?;
    frames::register(module)?;
    handlers::register(module)?;
    inspect::register(module)?;
    passes::register(module)?;
    trace::register(module)?;
    session::register(module)
}
