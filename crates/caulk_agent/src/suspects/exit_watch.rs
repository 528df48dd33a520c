//! The number of functions that are to run at exit, from look to look.

/// How many functions were to run at exit at the last look, and at how many looks in a row there were more.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) last: Option<u64>,
    pub(super) rises: u32,
}
