//! What FFmpeg has to say: kept for the reply, never printed.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};

use ffmpeg_sys_next as ffmpeg;

#[cfg(target_arch = "x86_64")]
type Arguments = *mut ffmpeg::__va_list_tag;
#[cfg(not(target_arch = "x86_64"))]
type Arguments = ffmpeg::va_list;

/// Lines kept of one video.
const KEPT: usize = 8;
const LINE: usize = 256;
/// A frame before the start of decoding was to be forgotten, and never was known.
const HARMLESS: &str = "mmco: unref short failure";

/// Messages since the last [`take`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Messages {
    /// The first ones, each a line.
    pub lines: Vec<String>,
    /// How many there were that tell of an error.
    pub errors: u32,
}

thread_local! {
    static MESSAGES: RefCell<Messages> = RefCell::default();
}

/// From now on FFmpeg's messages of this thread are kept here.
pub fn keep() {
    // SAFETY: the callback has the signature that FFmpeg wants and lives as long as the program.
    unsafe { ffmpeg::av_log_set_callback(Some(callback)) };
}

/// Hands over the messages and begins anew.
pub fn take() -> Messages {
    MESSAGES.take()
}

/// Errors so far.
pub(crate) fn errors() -> u32 {
    MESSAGES.with_borrow(|messages| messages.errors)
}

/// # Safety
/// As FFmpeg calls it: `format` and `arguments` belong together.
unsafe extern "C" fn callback(
    source: *mut c_void,
    level: c_int,
    format: *const c_char,
    arguments: Arguments,
) {
    if level > ffmpeg::AV_LOG_ERROR {
        return;
    }
    let mut line: [c_char; LINE] = [0; LINE];
    // Without the address of what speaks: equal videos get equal messages.
    let mut prefix = 0;
    // SAFETY: FFmpeg's own arguments, passed on; the buffer has the length that is said.
    unsafe {
        ffmpeg::av_log_format_line(
            source,
            level,
            format,
            arguments,
            line.as_mut_ptr(),
            LINE as c_int,
            &raw mut prefix,
        );
    };
    line[LINE - 1] = 0;
    // SAFETY: the buffer ends with a zero.
    let text = unsafe { CStr::from_ptr(line.as_ptr()) };
    note(text.to_string_lossy().trim());
}

fn note(line: &str) {
    if line.ends_with(HARMLESS) {
        return;
    }
    // A thread that ends has no messages any more.
    let _ = MESSAGES.try_with(|messages| {
        let mut messages = messages.borrow_mut();
        messages.errors = messages.errors.saturating_add(1);
        if messages.lines.len() < KEPT && messages.lines.iter().all(|known| known != line) {
            messages.lines.push(line.to_owned());
        }
    });
}
