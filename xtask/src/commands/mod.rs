//! One file per command.

pub(crate) mod bench;
pub(crate) mod bench_check;
pub(crate) mod bench_real;
pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod develop;
pub(crate) mod dist;
pub(crate) mod docs;
pub(crate) mod ecosystem;
pub(crate) mod gpu_check;
pub(crate) mod heal_zoo;
pub(crate) mod matrix;
pub(crate) mod metamorph;
pub(crate) mod new_rule;
pub(crate) mod record;
pub(crate) mod test;
pub(crate) mod verify_zoo;
pub(crate) mod zoo;
