//! Prepared video clips: which frames, how they are varied, how they are written down.
//!
//! Knows no files, processes or decoders: values in, values out. `caulk_ffmpeg` decodes, `caulk_prepare` goes through a
//! whole data set.

pub mod augment;
pub mod folds;
pub mod h264;
pub mod index;
pub mod job;
pub mod manifest;
pub mod memory;
pub mod moov;
pub mod npy;
pub mod picture;
pub mod place;
pub mod plan;
pub mod pt;
pub mod random;
pub mod record;
mod selection;
pub mod table;
pub mod told;

pub use self::selection::{Selection, SelectionError};
