//! What `caulk selftest` runs, and what it makes of it.

mod judge;
mod trial;

pub(crate) use judge::{Found, checks};
#[cfg(test)]
use trial::Trial;
pub(crate) use trial::{Place, Seen, TRIALS, run};
