//! Frames of videos, decoded with FFmpeg: the only code that knows it.
//!
//! Built with the feature `ffmpeg` alone, so that the rest of the workspace needs no FFmpeg.
#![cfg(feature = "ffmpeg")]

mod cache;
mod clip;
mod decoder;
mod error;
mod input;
pub mod log;
mod scale;
mod table;
mod video;

use std::ffi::CStr;

pub use self::clip::{ClipError, Clips, prepare};
pub use self::error::{Code, DecodeError};
pub use self::scale::Target;
pub use self::video::{Decoded, Options, Wanted, decode};

/// Version of the FFmpeg in this program.
pub fn version() -> String {
    // SAFETY: gives a text of FFmpeg's own, which is never freed.
    let text = unsafe { ffmpeg_sys_next::av_version_info() };
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Has FFmpeg treat this processor as one without extensions. To be called before the first video.
pub fn use_no_vector_instructions() {
    // SAFETY: no decoder is open yet.
    unsafe { ffmpeg_sys_next::av_force_cpu_flags(0) };
}
