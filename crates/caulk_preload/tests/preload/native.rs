//! Programs in C: what they do to an allocator, with threads, forks, signals and jumps.

use std::process::Command;
use std::sync::OnceLock;

use crate::program::{Run, run, written};
use caulk_wire::heap::header;

const SOURCE: &str = include_str!("program.c");

/// The compiled program; the folder stays for as long as the tests run.
fn compiled() -> &'static std::path::Path {
    static BUILT: OnceLock<(tempfile::TempDir, std::path::PathBuf)> = OnceLock::new();
    let (_, path) = BUILT.get_or_init(|| {
        let (folder, source) = written("program.c", SOURCE);
        let path = folder.path().join("program");
        let built = Command::new("cc")
            .args(["-O1", "-fno-builtin", "-rdynamic", "-pthread", "-o"])
            .args([&path, &source])
            .arg("-ldl")
            .output()
            .expect("a C compiler: Debian's `gcc` has one");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        (folder, path)
    });
    path
}

fn program(mode: &str) -> Run {
    run(Command::new(compiled()).arg(mode))
}

#[test]
fn every_function_of_the_allocator_gives_what_it_gives_without() {
    let run = program("family");
    let profile = run.first();
    profile.is_sound();
    assert!(profile.count(header::SAMPLES) > 100, "{}", profile.count(header::SAMPLES));
    // Everything was freed.
    assert!(profile.live() < 2 << 20, "{}", profile.live());
}

#[test]
fn what_is_kept_is_counted_without_bias() {
    let run = program("keep");
    let profile = run.first();
    profile.is_sound();
    let totals = profile.slot().totals();
    let deviation = totals.iter().map(|total| total.variance as f64).sum::<f64>().sqrt() * 1024.0;
    // 200 MB in blocks of 1 KB to 1 MB.
    let error = profile.live() as f64 - 200e6;
    assert!(deviation < 15e6 && error.abs() < 5.0 * deviation.max(1e6), "{error} of {deviation}");
}

#[test]
fn threads_share_a_profile() {
    let run = program("threads");
    let profile = run.first();
    profile.is_sound();
    assert!(profile.live() < 4 << 20, "{}", profile.live());
}

#[test]
fn forked_children_have_their_own() {
    let run = program("fork");
    run.first().is_sound();
    // The parent's 10 MB, and 30 MB in the child that it kept itself.
    let mut live: Vec<u64> = run.profiles.iter().map(|profile| profile.live() >> 20).collect();
    live.sort_unstable();
    assert_eq!(live, [9, 28], "{}", run.output);
}

#[test]
fn what_is_executed_by_a_child_of_vfork_does_not_disturb() {
    program("vfork").first().is_sound();
}

#[test]
fn forks_amid_threads_do_not_hang() {
    let run = program("forkloop");
    run.first();
}

#[test]
fn signal_handlers_may_allocate() {
    let run = program("signals");
    run.first();
}

#[test]
fn jumps_out_of_handlers_and_early_ends_of_threads_leave_it_at_work() {
    let run = program("jumps");
    assert!(run.first().count(header::SAMPLES) > 10);
}

#[test]
fn libraries_come_and_go() {
    program("libraries").first().is_sound();
}

#[test]
fn a_program_without_python_is_left_alone() {
    let run = run(Command::new("cat").arg("/dev/null"));
    assert!(run.status.success() && run.profiles.is_empty());
}
