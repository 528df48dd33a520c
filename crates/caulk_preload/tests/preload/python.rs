//! Real interpreters: the stack of every sample is the one that asked for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use caulk_wire::heap::{INTERVAL_VARIABLE, Refusal, header};

use crate::build::{build, compiled};
use crate::program::{run, written};

const PROGRAM: &str = include_str!("program.py");

/// Interpreters that `CAULK_TEST_PYTHONS` names (with `:` between), all of those on the path otherwise, each once: those of
/// pyenv and of Debian are not built alike.
pub(crate) fn pythons() -> Vec<PathBuf> {
    let named = std::env::var_os("CAULK_TEST_PYTHONS").filter(|named| !named.is_empty());
    if let Some(named) = named {
        return std::env::split_paths(&named).collect();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["python3", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"];
    let mut pythons = Vec::new();
    for name in names {
        let files =
            std::env::split_paths(&path).map(|folder| folder.join(name)).filter(|file| file.is_file());
        for executable in files.filter_map(|file| executable(&file)) {
            if !pythons.contains(&executable) {
                pythons.push(executable);
            }
        }
    }
    pythons
}

/// What runs by this name, behind links and the scripts of version managers.
fn executable(python: &Path) -> Option<PathBuf> {
    let told = Command::new(python)
        .args(["-c", "import os, sys; print(os.path.realpath(sys.executable))"])
        .output()
        .ok()
        .filter(|told| told.status.success())?;
    Some(String::from_utf8(told.stdout).ok()?.trim_end().into())
}

/// Versions whose frames are known and of which none of these is.
fn absent(pythons: &[PathBuf]) -> Vec<&'static str> {
    let version = |python: &PathBuf| {
        let told = Command::new(python).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&told.stdout).into_owned())
    };
    let there: Vec<String> = pythons.iter().filter_map(version).collect();
    let is_there = |wanted: &&str| there.iter().any(|told| told.starts_with(&format!("Python {wanted}.")));
    ["3.10", "3.11", "3.12", "3.13", "3.14"].into_iter().filter(|wanted| !is_there(wanted)).collect()
}

/// The line of the program that a comment marks, from 1.
fn marked(mark: &str) -> u32 {
    let mark = format!("# {mark}");
    let at = PROGRAM.lines().position(|line| line.ends_with(&mark));
    at.unwrap_or_else(|| panic!("`{mark}` is in the program")) as u32 + 1
}

#[test]
#[expect(clippy::print_stdout, reason = "what was skipped is said")]
fn lines_get_what_they_have_allocated() {
    let (_folder, path) = written("program.py", PROGRAM);
    let pythons = pythons();
    assert!(!pythons.is_empty(), "no python3 on the path: Debian's `python3` is one");
    for python in &pythons {
        println!("tested: {}", python.display());
    }
    for version in absent(&pythons) {
        println!("skipped: CPython {version}, which is not on the path (CAULK_TEST_PYTHONS names others)");
    }
    for python in pythons {
        let run = run(Command::new(&python).arg(&path).env(INTERVAL_VARIABLE, "65536"));
        let profile = run.first();
        profile.is_sound();
        let slot = profile.slot();
        if Refusal::of(slot.field(header::REFUSAL)) == Some(Refusal::UnknownVersion) {
            println!("skipped: the frames of {} are not known", python.display());
            continue;
        }
        assert_eq!(slot.field(header::REFUSAL), Refusal::None as u32, "{}", python.display());
        let lines = profile.lines(&path);
        let check = |mark: &str, function: &str, bytes: f64| {
            let line = marked(mark);
            let of_line = lines.iter().filter(|(_, number, _)| *number == line);
            let (mut live, mut named) = (0.0, false);
            for (name, _, total) in of_line {
                live += total.bytes as f64;
                named |= name.rsplit('.').next() == Some(function);
            }
            let error = live - bytes;
            // The deviation that blocks far below the interval have; that of larger ones is smaller. Not the one that is
            // estimated with the bytes: few samples make both small.
            let deviation = (bytes * slot.count(header::INTERVAL) as f64).sqrt();
            let most = 5.0 * deviation.max(0.02 * bytes);
            assert!(error.abs() <= most && live > 0.0, "{mark}: {live} of {bytes} in {}", python.display());
            assert!(named, "{mark}: {function} in {lines:?}");
        };
        check("nested", "inner", 20e6);
        check("several lines", "spread", 20e6);
        check("generator", "generate", 20e6);
        check("coroutine", "awaited", 20e6);
        check("lambda", "<lambda>", 20e6);
        check("init", "__init__", 20e6);
        check("thread", "work", 20e6);
        // It has no frames of its own: what it asks for is the doing of who made it.
        check("native thread", "native_thread", 20e6);
        check("middle", "middle", 40e6);
        // Who asked for a block first stays to blame.
        check("asked", "asked", 15e6);
        assert!(!lines.iter().any(|(_, line, total)| *line == marked("shrunk") && total.bytes > 1 << 20));
        if slot.field(header::SMALL_OBJECTS) == 1 {
            check("small", "small", 40e6);
        }
        for given_back in ["freed", "looked up"] {
            let line = marked(given_back);
            let left = lines.iter().filter(|(_, number, _)| *number == line).map(|(_, _, total)| total.bytes);
            let left: u64 = left.sum();
            // The last one that was looked up stays, whatever it stands for.
            let most = (2 * slot.count(header::INTERVAL)).max(1 << 20);
            assert!(left <= most, "{given_back}: {left} bytes in {}", python.display());
        }
    }
}

/// Functions that are made, called once and dropped, so that their code objects take each other's places.
const RENEWED: &str = r#"
import ctypes
import os

library = ctypes.CDLL(None)
library.caulk_heap_begin(library.caulk_heap_prepare())
kept = []
for round in range(400):
    number = round % 40
    source = "\n" * number + f"def made_{number}(): return bytearray(250_000)"
    names = {}
    exec(compile(source, __file__, "exec"), names)
    kept.append(names[f"made_{number}"]())
library.caulk_heap_snapshot(1)
os._exit(0)
"#;

#[test]
fn code_that_takes_the_place_of_other_code_is_told_from_it() {
    let (_folder, path) = written("renewed.py", RENEWED);
    for python in pythons() {
        // Far below the size of a block, so that each of them is sampled: what is tested is where they are charged. They are so
        // few that samples do not become rarer, however busy the machine is.
        let run = run(Command::new(&python).arg(&path).env(INTERVAL_VARIABLE, "32768"));
        let profile = run.first();
        if Refusal::of(profile.slot().field(header::REFUSAL)) == Some(Refusal::UnknownVersion) {
            continue;
        }
        let lines = profile.lines(&path);
        let made = lines.iter().filter(|(name, ..)| name.starts_with("made_"));
        let mut of_all = 0.0;
        for (name, line, total) in made {
            assert_eq!(*name, format!("made_{}", line - 1), "{}", python.display());
            let bytes = total.bytes as f64;
            let error = bytes - 10.0 * 250_000.0;
            assert!(error.abs() < 1e6, "{name}: {bytes} in {}", python.display());
            of_all += bytes;
        }
        assert!((of_all - 100e6).abs() < 10e6, "{of_all} in {}", python.display());
    }
}

/// Becomes another program, and that a third one, each with a block of its own.
const REPLACED: &str = r#"
import ctypes
import os
import sys

library = ctypes.CDLL(None)
library.caulk_heap_begin(library.caulk_heap_prepare())


def first(): return bytearray(50_000_000)


def second(): return bytearray(30_000_000)


def third(): return bytearray(20_000_000)


def made(): return bytearray(5_000_000)


image = len(sys.argv) - 1
codes = []
for _ in range(20 if image == 1 and hasattr(made.__code__, "co_linetable") else 0):
    # Tables of lines that take up more than half of the room.
    code = made.__code__
    made.__code__ = code.replace(co_linetable=(code.co_linetable + bytes(250_000))[:250_000])
    codes.append((made.__code__, made()))
kept = [first, second, third][image]()
library.caulk_heap_snapshot(7)
if image < 2:
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
os._exit(0)
"#;

#[test]
fn a_program_that_becomes_another_one_begins_its_profile_anew() {
    let (_folder, path) = written("replaced.py", REPLACED);
    for python in pythons() {
        let run = run(Command::new(&python).arg(&path));
        let profile = run.first();
        assert_eq!(run.profiles.len(), 1, "one process: {}", python.display());
        let slot = profile.slot();
        assert_eq!((slot.field(header::IMAGE), profile.count(header::STALE)), (2, 0), "{}", python.display());
        if Refusal::of(slot.field(header::REFUSAL)) == Some(Refusal::UnknownVersion) {
            continue;
        }
        let lines = profile.lines(&path);
        let of = |function: &str| {
            let own = lines.iter().filter(|(name, ..)| name == function);
            own.map(|(.., total)| total.bytes).sum::<u64>() / 1_000_000
        };
        assert_eq!((of("first"), of("second")), (0, 0), "what went with the programs before: {lines:?}");
        assert!(profile.count(header::ARENA_USED) < 1 << 20, "{}", profile.count(header::ARENA_USED));
        assert!((20..=21).contains(&of("third")), "{lines:?} in {}", python.display());
    }
}

/// Functions with tables of lines so long that not all of them can be written down.
const LONG: &str = r#"
import ctypes
import os

library = ctypes.CDLL(None)
library.caulk_heap_begin(library.caulk_heap_prepare())
kept = []


# Nineteen times the interval: one of these is not missed.
def make(): return bytearray(10_000_000)


for number in range(40 if hasattr(make.__code__, "co_linetable") else 0):
    code = make.__code__
    table = code.co_linetable + bytes(250_000)
    make.__code__ = code.replace(co_linetable=table[:250_000])
    kept.append((make.__code__, make()))
library.caulk_heap_snapshot(1)
os._exit(0)
"#;

#[test]
fn stacks_that_find_no_place_are_charged_to_one() {
    let (_folder, path) = written("long.py", LONG);
    for python in pythons() {
        let run = run(Command::new(&python).arg(&path));
        let profile = run.first();
        profile.is_sound();
        if Refusal::of(profile.slot().field(header::REFUSAL)) == Some(Refusal::UnknownVersion) {
            continue;
        }
        let lines = profile.lines(&path);
        let known: u64 =
            lines.iter().filter(|(name, ..)| name == "make").map(|(.., total)| total.bytes).sum();
        let (known, others) = (known / 1_000_000, profile.of_others() / 1_000_000);
        assert!(known > 200 && others > 100, "{known} and {others} MB in {}", python.display());
        assert!((400..=404).contains(&(known + others)), "{known} and {others} MB in {}", python.display());
    }
}

/// Allocates after the interpreter has been taken down.
const LAST: &str = r"
#include <stdlib.h>
static void *kept[40];
__attribute__((destructor)) static void last(void) {
    for (int i = 0; i < 40; i++) kept[i] = malloc(5000000);
    for (int i = 0; i < 40; i += 2) free(kept[i]);
}
";

#[test]
fn what_is_allocated_after_the_interpreter_has_no_stack_of_its() {
    let (_folder, library) =
        build("cc", "last.c", LAST, &["-shared", "-fPIC"]).expect("Debian's `gcc` builds it");
    let text = "import ctypes, sys; own = ctypes.CDLL(None); own.caulk_heap_begin(own.caulk_heap_prepare()); \
                ctypes.CDLL(sys.argv[1])";
    for python in pythons() {
        let run = run(Command::new(&python).args(["-c", text]).arg(&library));
        let live = run.first().live() as f64;
        assert!((99e6..120e6).contains(&live), "{live} in {}", python.display());
    }
}

#[test]
fn debug_allocators_are_left_alone() {
    let (_folder, path) = written("program.py", PROGRAM);
    let python = pythons().remove(0);
    // 40 MB of small objects, with what the debug hooks put around each: where they come from malloc, its own hook sees them.
    let all = 30..=60;
    let cases = [
        ("pymalloc", 1, &all),
        ("malloc", 0, &all),
        ("malloc_debug", 0, &all),
        ("debug", 0, &(0..=4)),
        ("pymalloc_debug", 0, &(0..=4)),
    ];
    for (allocator, small, seen) in cases {
        let run = run(Command::new(&python).arg(&path).env("PYTHONMALLOC", allocator));
        let profile = run.first();
        assert_eq!(profile.slot().field(header::SMALL_OBJECTS), small, "{allocator}");
        let lines = profile.lines(&path);
        let of_line = lines.iter().filter(|(_, line, _)| *line == marked("small"));
        let bytes: u64 = of_line.map(|(.., total)| total.bytes).sum();
        assert!(seen.contains(&(bytes / 1_000_000)), "{allocator}: {bytes}");
    }
}

#[test]
fn after_a_failed_check_bytes_are_counted_without_stacks() {
    let text = "import ctypes, os; own = ctypes.CDLL(None); own.caulk_heap_prepare(); own.caulk_heap_begin(3)\n\
                kept = [bytearray(20_000_000), [str(number) * 9 for number in range(200_000)]]\n\
                own.caulk_heap_snapshot(1); os._exit(0)";
    for python in pythons() {
        let run = run(Command::new(&python).args(["-c", text]));
        let slot = run.first().slot();
        let refusal = Refusal::of(slot.field(header::REFUSAL));
        assert_eq!((refusal, slot.field(header::SMALL_OBJECTS)), (Some(Refusal::SelfCheck), 0));
        let (_, totals) = slot.snapshot().expect("it was made");
        let stacks: Vec<_> = (0..totals.len() as u32).filter_map(|id| slot.stack(id)).collect();
        assert!(stacks.iter().all(|stack| stack.frames.is_empty()), "{stacks:?}");
        assert!(run.first().live() >= 20_000_000, "{} in {}", run.first().live(), python.display());
    }
}

/// What is made of an interpreter that calls itself so, by version and by what its memory begins with.
#[track_caller]
fn check_version(version: &str, memory: [&str; 3], expected: Refusal) {
    let run = run(Command::new(compiled()).args(["interpreter", version]).args(memory));
    let profile = run.first();
    assert_eq!(Refusal::of(profile.slot().field(header::REFUSAL)), Some(expected), "{version} {memory:?}");
    // Its bytes are counted all the same, without stacks of Python's.
    assert_eq!(profile.live() / 1_000_000, 100, "{version}");
}

#[test]
fn an_interpreter_that_is_not_known_has_no_stacks() {
    const NOTHING: [&str; 3] = ["", "0", "0"];
    for version in ["2.7.18 (default)", "3.9.18 (main)", "3.15.0a1 (main)", "4.0.0", "PyPy"] {
        check_version(version, NOTHING, Refusal::UnknownVersion);
    }
    check_version("3.11.7 (main)", NOTHING, Refusal::None);
    check_version("3.14.0 (main)", ["xdebugpy", "030e00f0", "0"], Refusal::None);
    // Not of the version that it says, no such head, and none that is known.
    check_version("3.14.0 (main)", ["xdebugpy", "030d00f0", "0"], Refusal::UnknownVersion);
    check_version("3.14.0 (main)", ["xdebugpu", "030e00f0", "0"], Refusal::UnknownVersion);
    check_version("3.15.0 (main)", ["xdebugpy", "030f00f0", "0"], Refusal::UnknownVersion);
}

#[test]
fn an_interpreter_without_its_lock_has_no_stacks() {
    for (version, number) in [("3.13.0 free-threading", "030d00f0"), ("3.14.2 free-threading", "030e02f0")] {
        check_version(version, ["xdebugpy", number, "1"], Refusal::FreeThreaded);
    }
}
