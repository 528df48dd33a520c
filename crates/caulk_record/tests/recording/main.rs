//! Recordings on real files: what was given comes back, whatever happens to the recorder or the folder.
#![expect(clippy::unwrap_used, reason = "tests")]

mod damage;
mod folders;
mod full_disk;
mod kill;
mod private;
mod round_trip;
mod size;
mod story;
