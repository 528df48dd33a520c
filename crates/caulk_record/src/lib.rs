//! The recording on disk: append, recover, read.
