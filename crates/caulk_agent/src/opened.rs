//! What threads run, what open files are and where segments are made, where they become more and more.

use std::collections::BTreeMap;
use std::fs;

use caulk_wire::{CodePlace, Kin, Opened};
use pyo3::prelude::*;

use crate::frames;
use crate::in_use::Reading;
use crate::segments::Segments;

/// So many more, and half as many again as when they were told last, are told again.
const MORE: u32 = 4;
/// Beyond so many it takes too long to ask for the name of each.
const MOST_FILES: u32 = 4096;
/// Kinds that are told.
const KINDS: usize = 8;

/// How many there were when they were told last.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    last: Option<[u32; 3]>,
}

impl Watch {
    /// What there is, at the first boundary and then each time that there is far more.
    pub(crate) fn look(
        &mut self,
        py: Python<'_>,
        reading: Reading,
        segments: &Segments,
        boundary: u32,
    ) -> Option<Opened> {
        let now = [reading.threads, reading.fds, segments.count()];
        let far_more = |(before, now): (u32, u32)| now >= before + MORE && now >= before + before / 2;
        let due = self.last.is_none_or(|last| last.into_iter().zip(now).any(far_more));
        due.then(|| {
            self.last = Some(now);
            let files = if reading.fds <= MOST_FILES { files() } else { Vec::new() };
            Opened { boundary, threads: threads(py), files, segments: most(segments.kinds()) }
        })
    }
}

/// Threads by the function of the user's that they run, the outermost one, or else that of the library that began them.
fn threads(py: Python<'_>) -> Vec<Kin> {
    let mut kinds: BTreeMap<(String, u32), Kin> = BTreeMap::new();
    for (_, stack) in frames::all_frames(py) {
        let users = stack.iter().rev().find(|frame| frames::is_user_place(&frames::place(frame)));
        let begins = |file: &str| file.ends_with("/threading.py");
        let theirs = || stack.iter().rev().find(|frame| !begins(&frames::place(frame).file));
        let Some(frame) = users.or_else(theirs) else { continue };
        let code = frames::code_of(frame);
        let (file, function) = (frames::file_of(&code), frames::function_of(&code));
        let line = code.getattr("co_firstlineno").and_then(|line| line.extract()).unwrap_or(0);
        let kin = kinds.entry((file.clone(), line)).or_default();
        kin.place = CodePlace { file, line, function };
        kin.count += 1;
    }
    most(kinds.into_values().collect())
}

/// Open files by name, with numbers left out: `/tmp/#-loss.log`, `socket:[#]`.
fn files() -> Vec<Kin> {
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        if let Ok(target) = fs::read_link(entry.path()) {
            *kinds.entry(without_numbers(&target.to_string_lossy())).or_default() += 1;
        }
    }
    let kin = |(name, count)| Kin { name, place: CodePlace::default(), count };
    most(kinds.into_iter().map(kin).collect())
}

fn most(mut kinds: Vec<Kin>) -> Vec<Kin> {
    kinds.sort_by_key(|kin| std::cmp::Reverse(kin.count));
    kinds.truncate(KINDS);
    kinds
}

fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_numbers_are_one() {
        for (name, expected) in [
            ("/tmp/run-17/epoch_003.log", "/tmp/run-#/epoch_#.log"),
            ("socket:[81277]", "socket:[#]"),
            ("/dev/null", "/dev/null"),
        ] {
            assert_eq!(without_numbers(name), expected);
        }
    }

    #[test]
    fn the_most_come_first() {
        let kin = |count| Kin { count, ..Kin::default() };
        let counts: Vec<u32> = most((0..20).map(kin).collect()).iter().map(|kin| kin.count).collect();
        assert_eq!(counts, [19, 18, 17, 16, 15, 14, 13, 12]);
    }
}
