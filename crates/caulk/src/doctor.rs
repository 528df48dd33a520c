//! What `caulk doctor` reads: the machine, the interpreter, a job's account, logs.

mod ask;
mod machine;

pub(crate) use ask::{account, no_answer, python};
pub(crate) use machine::machine;
