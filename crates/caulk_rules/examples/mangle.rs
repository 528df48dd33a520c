//! Checks mangled Python for as long as one likes: no panic, no hang.
//!
//! `cargo run --release --package caulk_rules --example mangle -- MINUTES FIRST_SEED FOLDER [PATH...]`
//!
//! Programs are the Python files at the paths, else the pages' examples. The project that is being examined lies in
//! FOLDER, so it is there after a crash. One seed gives one project.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own, not the engine"
)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program tells what it found")]

#[path = "../tests/rules/examine.rs"]
mod examine;
#[path = "../../caulk_python/tests/mangle/mod.rs"]
mod mangle;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use caulk_python::SourceFile;
use examine::examine;
use mangle::Mangler;

/// A project of some thousand lines that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many projects have been examined.
static DONE: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [minutes, first, folder, paths @ ..] = words.as_slice() else {
        eprintln!("usage: mangle MINUTES FIRST_SEED FOLDER PATH...");
        return ExitCode::from(2);
    };
    let minutes: f64 = minutes.parse().expect("MINUTES is a number");
    let first: u64 = first.parse().expect("FIRST_SEED is a number");
    let programs = programs(paths);
    let corpus: Vec<_> = programs.iter().map(String::as_str).collect();
    thread::spawn(watch);
    let (end, mut panics) = (Instant::now() + Duration::from_secs_f64(60.0 * minutes), 0);
    let mut seed = first;
    while Instant::now() < end {
        let project = examine::project(&mut Mangler::new(seed), &corpus);
        keep(Path::new(folder), &project);
        if catch_unwind(|| examine(&project)).is_err() {
            panics += 1;
            keep(&Path::new(folder).join(format!("seed-{seed}")), &project);
            println!("seed {seed}: panic");
        }
        DONE.fetch_add(1, Ordering::Relaxed);
        seed += 1;
    }
    println!("{} projects of {} programs, {panics} panics", seed - first, corpus.len());
    if panics == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ends everything when one project takes too long.
fn watch() {
    loop {
        let before = DONE.load(Ordering::Relaxed);
        thread::sleep(PATIENCE);
        if DONE.load(Ordering::Relaxed) == before {
            println!("project {before} hangs");
            std::process::exit(3);
        }
    }
}

fn keep(folder: &Path, project: &[SourceFile]) {
    for file in project {
        let path = folder.join(&file.path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("FOLDER can be written");
        fs::write(path, &file.text).expect("FOLDER can be written");
    }
}

/// Texts of all Python files at or below the paths.
fn programs(paths: &[String]) -> Vec<String> {
    let mut todo: Vec<_> = paths.iter().map(PathBuf::from).collect();
    let mut programs = Vec::new();
    while let Some(path) = todo.pop() {
        if let Ok(entries) = fs::read_dir(&path) {
            todo.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
        } else if path.extension().is_some_and(|extension| extension == "py") {
            programs.extend(fs::read_to_string(&path));
        }
    }
    // The order of a folder's entries must not decide what a seed means.
    programs.sort();
    programs
}
