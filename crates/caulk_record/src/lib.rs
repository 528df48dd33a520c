//! The recording on disk: append, recover, read.
//!
//! A run leaves one folder:
//!
//! | file | while it runs | afterwards |
//! |---|---|---|
//! | `run.json` | [`RunInfo`](caulk_core::RunInfo) with `complete: false` | the same with its end, `complete: true` |
//! | `samples`, `system`, `processes`, `phases`, `census`, `holders`, `heap`, `events`, `gpus` | `NAME.arrows`, an Arrow IPC stream | `NAME.parquet` |
//! | `ring-N.log` | everything recent, one checked frame per record | removed |
//! | `index.log` | checksums of the batches in the streams | checksums and footers of the Parquet files |
//!
//! Every record goes to the ring at once, with one `write`, so that a SIGKILL of the recorder loses nothing; it goes to
//! its table's stream together with its neighbours when half a minute or a thousand rows have gathered, because a batch
//! of one row is mostly padding. The ring keeps samples at their full rate for [`RING_NS`]; the streams keep the
//! highest sample of every [`WINDOW_NS`] and process, and the one with the proportional set size. A finished recording
//! has both: full rate for the last ten minutes, thinned before. All events are kept as they came.
//!
//! The ring is written, not mapped: a store into a mapped page of a full disk is a SIGBUS, a `write` an error.
//!
//! Where no disk has room, [`RecordingInMemory`] keeps a recording in memory until its report is made.
//!
//! Nothing is synced: a recording survives the death of any process, not that of the machine.
//!
//! Every row carries `order`, the number of its record in the run; by it readers drop what they see twice (in the ring
//! and in a stream, in a stream and in Parquet), so that reading while a run is being recorded needs no lock.

mod columns;
mod entry;
mod error;
mod finish;
mod frames;
mod head;
mod held;
mod home;
mod index;
mod messages;
mod parquet_file;
mod pending;
mod private;
mod reader;
mod record;
mod redact;
mod ring;
mod stream;
mod tables;
mod thin;
mod writer;

pub use entry::RunEntry;
pub use error::{Candidate, HomeError, ReadError, WriteError};
pub use held::RecordingInMemory;
pub use home::{HOME_VARIABLE, home, list, make_home, new_run_folder, resolve, run_name};
pub use private::{refuse_foreign, write_file};
pub use reader::{read, read_info};
pub use redact::{redact, redact_variable};
pub use ring::RING_NS;
pub use thin::WINDOW_NS;
pub use writer::Writer;

/// Version of the recording's layout. It rises when old readers would misread new recordings; new columns and keys
/// leave it as it is.
pub const SCHEMA: u32 = 1;

/// Version of caulk, as `run.json` and the tables carry it.
const VERSION: &str = env!("CARGO_PKG_VERSION");
