//! Prepares the clips of a whole data set: starts workers, keeps the log, locks the folder, writes the tables.
//!
//! What a clip is, `caulk_clip` says; decoding is the worker's, a program of its own.

mod error;
mod export;
mod fetch;
mod lock;
mod log;
mod lost;
mod partial;
mod partner;
mod pool;
mod run;
mod set;
mod shard;
mod store;
mod verify;
mod worker;

pub use self::error::StoreError;
pub use self::fetch::{Fetcher, Fetching};
pub use self::log::{Logged, read_logs};
pub use self::partial::replace;
pub use self::pool::Pool;
pub use self::run::{PrepareError, Progress, Settings, prepare};
pub use self::shard::Shard;
pub use self::verify::{Checked, derive, verify};
pub use self::worker::{WORKER, Worker, WorkerError, ffmpeg_version, find};
