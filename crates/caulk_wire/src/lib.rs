//! Messages that the agent inside a program sends to the supervisor outside it.
//!
//! Values and their bytes only: no sockets, files, clocks or threads. A message is one frame: a `u32` length,
//! a `u8` tag, then the fields in order. A reader that knows fewer fields than were sent ignores the rest of the
//! frame, and a tag that it does not know decodes to [`DecodeError::UnknownTag`], and a code that it
//! does not know to [`DecodeError::UnknownCode`]: both are safe to skip. Traits are sent by name, and unknown ones are kept.

pub mod board;
mod codec;
pub mod heap;
mod message;

pub use codec::{DecodeError, FrameBuffer};
pub use message::*;

/// Version of the protocol; both sides print it when they disagree.
pub const PROTOCOL: u32 = 1;

/// Environment variable with the path of the supervisor's socket.
pub const SOCKET_VARIABLE: &str = "CAULK_SOCKET";

/// Environment variable with an opaque mark of this run, by which reparented children are recognised.
pub const RUN_VARIABLE: &str = "CAULK_RUN";

/// Environment variable with settings of the agent, `key=value` joined by `;`.
pub const SETTINGS_VARIABLE: &str = "CAULK_AGENT";
