//! Why a video cannot be decoded.

use std::ffi::{CStr, c_int};

use caulk_clip::{SelectionError, memory};
use ffmpeg_sys_next as ffmpeg;

/// Why a video gives no frames.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The path holds a zero byte.
    #[error("the path holds a zero byte")]
    Path,
    /// The file is not there, or no container that is known.
    #[error("cannot open: {0}")]
    Open(Code),
    /// Only sound, subtitles or a cover.
    #[error("no video in this file")]
    NoVideo,
    /// Decoders are built in for the common codecs alone.
    #[error("no decoder for the codec `{0}`")]
    NoDecoder(String),
    /// The parameters of the stream make no sense.
    #[error("cannot decode: {0}")]
    Decoder(Code),
    /// A frame cannot be brought to size.
    #[error("cannot scale a frame")]
    Scale,
    /// It would take more memory than there is for one video.
    #[error(transparent)]
    Memory(#[from] memory::TooLarge),
    /// So would its pictures.
    #[error(transparent)]
    Pictures(#[from] memory::TooManyPictures),
    /// No frames, or not those.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// FFmpeg found no memory.
    #[error("out of memory")]
    NoMemory,
}

/// What FFmpeg returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub(crate) c_int);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = [0; 128];
        // SAFETY: the buffer has the length that is said.
        let known = unsafe { ffmpeg::av_strerror(self.0, text.as_mut_ptr(), text.len() - 1) };
        // SAFETY: the buffer ends with a zero: its last byte has not been offered.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        if known < 0 { write!(f, "error {}", self.0) } else { f.write_str(&text.to_string_lossy()) }
    }
}
