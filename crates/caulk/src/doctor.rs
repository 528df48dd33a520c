//! What `caulk doctor` reads: the machine, the interpreter, a job's account, logs.

mod ask;
mod machine;

pub(crate) use ask::{account, python};
pub(crate) use machine::machine;
