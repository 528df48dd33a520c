//! Segments of shared memory that the process has made and nobody has unlinked yet.
//!
//! One that is closed is in no process's memory any more, and in no container: the file in `/dev/shm` alone is left of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use caulk_wire::{CodePlace, Kin};

/// Where the system has them.
const FOLDER: &str = "/dev/shm";
/// Segments that are followed: asking for so many takes about 20 ms.
const MOST: usize = 10_000;
/// Bytes of one of the blocks that `stat` counts in.
const BLOCK: u64 = 512;

/// What the process has made, by name, with the number of the place that made it.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    made: BTreeMap<String, usize>,
    places: Vec<CodePlace>,
}

impl Segments {
    /// The process has made one there.
    pub(crate) fn made(&mut self, name: &str, place: CodePlace) {
        if self.made.len() < MOST {
            let known = self.places.iter().position(|other| *other == place);
            let number = known.unwrap_or(self.places.len());
            if known.is_none() {
                self.places.push(place);
            }
            self.made.insert(name.trim_start_matches('/').to_owned(), number);
        }
    }

    /// Bytes of those that are there still, as far as they have been written to. Forgets the others.
    pub(crate) fn bytes(&mut self) -> u64 {
        self.bytes_in(FOLDER)
    }

    fn bytes_in(&mut self, folder: &str) -> u64 {
        let mut bytes = 0;
        self.made.retain(|name, _| {
            let file = fs::metadata(format!("{folder}/{name}"));
            bytes += file.as_ref().map_or(0, |file| file.blocks() * BLOCK);
            file.is_ok()
        });
        bytes
    }

    /// How many there were then, and have been made since.
    pub(crate) fn count(&self) -> u32 {
        self.made.len() as u32
    }

    /// Those that are there by the place that made them.
    pub(crate) fn kinds(&self) -> Vec<Kin> {
        let mut kinds: Vec<Kin> =
            self.places.iter().map(|place| Kin { place: place.clone(), ..Kin::default() }).collect();
        for number in self.made.values() {
            kinds[*number].count += 1;
        }
        kinds
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn what_was_unlinked_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let place = |line| CodePlace { line, ..CodePlace::default() };
        let mut segments = Segments::default();
        for (name, line) in [("/one", 3), ("/two", 3), ("/three", 9)] {
            segments.made(name, place(line));
            fs::write(format!("{path}{name}"), [1; 4096]).unwrap();
        }
        assert_eq!((segments.bytes_in(path), segments.count()), (3 * 4096, 3));
        fs::remove_file(format!("{path}/two")).unwrap();
        assert_eq!((segments.bytes_in(path), segments.count()), (2 * 4096, 2));
        let kinds = segments.kinds();
        let kinds: Vec<(u32, u32)> = kinds.iter().map(|kin| (kin.place.line, kin.count)).collect();
        assert_eq!(kinds, [(3, 1), (9, 1)]);
    }
}
