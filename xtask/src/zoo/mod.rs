//! Measures caulk on a folder of small programs whose leaks are known.

pub(crate) mod conduct;
pub(crate) mod fixes;
pub(crate) mod needs;
pub(crate) mod run;
pub(crate) mod score;
pub(crate) mod source;
pub(crate) mod table;
pub(crate) mod truth;
