//! Exit codes, which `caulk` shares.

/// All is done.
pub(crate) const SUCCESS: i32 = 0;
/// Some videos gave no clips, or clips are not as logged.
pub(crate) const FOUND: i32 = 1;
/// The command failed.
pub(crate) const FAILED: i32 = 125;
