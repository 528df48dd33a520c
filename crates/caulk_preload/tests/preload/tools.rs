//! The sampler under valgrind, over the programs in C.

use std::process::Command;

use crate::build::{compiled, skipped};
use crate::program::run;

/// Modes that do not take long at a fiftieth of the speed.
const MODES: [&str; 8] = ["keep", "fork", "vfork", "jumps", "libraries", "early", "mappings", "trim"];

#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped("valgrind", "it is not installed");
    }
    for mode in MODES {
        let mut command = Command::new("valgrind");
        // Only the C library's own functions are replaced, not those of the sampler before it.
        command.args(["--quiet", "--error-exitcode=9", "--soname-synonyms=somalloc=nouserintercepts"]);
        command.args(["--leak-check=no", "--child-silent-after-fork=yes"]).arg(compiled()).arg(mode);
        let run = run(&mut command);
        assert!(run.status.success(), "{mode}: {}", run.output);
        assert!(!run.profiles.is_empty(), "{mode}: it was not sampled");
    }
}
