//! One process's part of a diagnosis, before the parts are joined.

use crate::claim::Claim;
use crate::judged::Judged;
use crate::process::Process;

/// What is said of one process.
pub(crate) struct Part<'a> {
    pub(crate) process: &'a Process<'a>,
    pub(crate) judged: Judged,
    pub(crate) findings: Vec<Claim>,
    /// Of a process that works for another: what a line was seen to grow in it, found to be a leak or not.
    pub(crate) traced: Vec<Claim>,
    /// Its verdicts are told.
    pub(crate) told: bool,
}
