//! The sampler under valgrind, over the programs in C, and its library as it is shipped.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::build::{compiled, skipped};
use crate::program::{run, written};

/// Modes with their arguments, which keep them short at a fiftieth of the speed. Those are left out that only do the same
/// at greater length (`manyforks`, `forksinturn`, `forkloop`, `handlerforks`, `unmaps`), that end by a signal, need an
/// interpreter's words or start what is not under valgrind (`killed`, `interpreter`, `spawns`).
const MODES: [&str; 15] = [
    "keep",
    "fork",
    "vfork",
    "jumps",
    "libraries",
    "early",
    "mappings",
    "trim",
    "threads",
    "stress 1",
    "failing",
    "signals 200",
    "threadsignals 100",
    "jumpout 60",
    // Memcheck ends a program that calls it.
    "family without-pvalloc",
];

/// Memcheck complains of sizes beyond half of all addresses: what is asked for in vain is meant so.
const SUPPRESSIONS: &str = "{\n   in-vain\n   Memcheck:FishyValue\n   malloc(size)\n   fun:malloc\n}\n";

#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped("valgrind", "it is not installed");
    }
    let (_folder, suppressions) = written("suppressions", SUPPRESSIONS);
    let suppressions = format!("--suppressions={}", suppressions.display());
    for mode in MODES {
        let mut command = Command::new("valgrind");
        // Only the C library's own functions are replaced, not those of the sampler before it.
        command.args(["--quiet", "--error-exitcode=9", "--soname-synonyms=somalloc=nouserintercepts"]);
        command.args(["--leak-check=no", "--child-silent-after-fork=yes", &suppressions]);
        command.arg(compiled()).args(mode.split(' '));
        let run = run(&mut command);
        assert!(run.status.success(), "{mode}: {}", run.output);
        assert!(!run.profiles.is_empty(), "{mode}: it was not sampled");
    }
}

/// What the standard library brings along where anything may panic: it would unwind, print and end the program.
const UNWINDING: &str = "_Unwind_";
/// Names behind everything that Rust allocates: boxes, vectors, strings.
const ALLOCATING: [&str; 2] = ["__rust_alloc", "__rdl_alloc"];

/// Built as `cargo xtask` builds it for the wheel.
#[test]
fn what_is_shipped_can_neither_panic_nor_allocate() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shipped");
    let mut command = Command::new(env!("CARGO"));
    command.args(["rustc", "--release", "--package", "caulk_preload", "--lib", "--target-dir"]).arg(&target);
    command.args(["--", "-C", "panic=abort", "-C", "link-arg=-Wl,--defsym=rust_eh_personality=0"]);
    // A release is stripped of the names by which this is seen.
    command.args(["-C", "strip=debuginfo"]);
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("it built this test");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let library = fs::read(target.join("release/libcaulk_preload.so")).expect("it was built");
    let has = |name: &str| library.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    assert!(has("caulk_preload"), "the names of its functions are gone: nothing is shown");
    assert!(!has(UNWINDING), "something may panic");
    assert!(!ALLOCATING.into_iter().any(has), "something may allocate as Rust does, through malloc");
}
