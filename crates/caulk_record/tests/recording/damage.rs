//! Files that are cut or garbled never stop the reader, and what lies before the damage comes back.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{AgentEvent, Recording};
use caulk_record::read;
use proptest::prelude::*;

use crate::story::{Item, events, folder, info, one_of_each, record, samples, seconds};

/// How a recording was left.
#[derive(Debug, Clone, Copy)]
enum Left {
    Killed,
    Finished,
}

/// A recording of a short run.
fn make(left: Left) -> (tempfile::TempDir, Utf8PathBuf, Vec<Vec<Item>>) {
    let mut story = seconds(64, 8);
    story.push(one_of_each());
    make_of(left, story)
}

fn make_of(left: Left, story: Vec<Vec<Item>>) -> (tempfile::TempDir, Utf8PathBuf, Vec<Vec<Item>>) {
    let (guard, folder) = folder();
    let writer = record(&folder, &story).unwrap();
    match left {
        Left::Killed => drop(writer),
        Left::Finished => writer.finish(&info()).unwrap(),
    }
    (guard, folder, story)
}

fn files(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files: Vec<_> = folder.read_dir_utf8().unwrap().map(|file| file.unwrap().into_path()).collect();
    files.sort();
    files
}

/// Runs `look` on the recording with this file changed, and puts the file back.
fn with_changed(path: &Utf8Path, change: impl FnOnce(&mut Vec<u8>), look: impl FnOnce(&[u8])) {
    let sound = fs::read(path).unwrap();
    let mut bytes = sound.clone();
    change(&mut bytes);
    fs::write(path, &bytes).unwrap();
    look(&sound);
    fs::write(path, sound).unwrap();
}

/// Nothing is made up: what comes back was given.
fn assert_part(recording: &Recording, story: &[Vec<Item>]) {
    let (given, looks) = (events(story), samples(story));
    let mut rest = given.iter();
    assert!(
        recording.events.iter().all(|event| rest.any(|other| other == event)),
        "events in order, each once"
    );
    assert!(recording.samples.iter().all(|sample| looks.contains(sample)));
}

/// How many events of the table come back.
fn count(recording: &Recording, is_of: fn(&AgentEvent) -> bool) -> usize {
    recording.events.iter().filter(|event| is_of(event)).count()
}

#[test]
fn one_damaged_byte_costs_a_part_at_most_and_is_said() {
    for left in [Left::Killed, Left::Finished] {
        let (_guard, folder, story) = make(left);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(100));
        let files = files(&folder);
        let strategy = (0..files.len(), any::<prop::sample::Index>(), 1..=255_u8);
        let test = |(file, at, flip): (usize, prop::sample::Index, u8)| {
            let path: &Utf8PathBuf = &files[file];
            let change = |bytes: &mut Vec<u8>| {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            };
            with_changed(path, change, |_| {
                let Ok(recording) = read(&folder) else {
                    return assert!(path.ends_with("run.json"), "a head of a later schema");
                };
                assert_part(&recording, &story);
                if path.ends_with("run.json") || path.ends_with("index.log") {
                    assert_eq!(recording.events.len(), events(&story).len());
                } else {
                    assert!(!recording.problems.is_empty(), "{path}");
                }
            });
            Ok(())
        };
        runner.run(&strategy, test).unwrap();
    }
}

#[test]
fn of_a_file_that_is_cut_the_beginning_comes_back() {
    for left in [Left::Killed, Left::Finished] {
        let (_guard, folder, story) = make(left);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(100));
        let files = files(&folder);
        let test = |(file, at): (usize, prop::sample::Index)| {
            let path: &Utf8PathBuf = &files[file];
            with_changed(
                path,
                |bytes| bytes.truncate(at.index(bytes.len())),
                |_| {
                    let recording = read(&folder).unwrap();
                    assert_part(&recording, &story);
                    if path.ends_with("run.json") || path.ends_with("index.log") {
                        assert_eq!(recording.events.len(), events(&story).len());
                    }
                },
            );
            Ok(())
        };
        runner.run(&(0..files.len(), any::<prop::sample::Index>()), test).unwrap();
    }
}

/// Without checksums, decoders see the damage: they may be fooled, but not stopped.
#[test]
fn without_an_index_damage_stops_nobody() {
    for left in [Left::Killed, Left::Finished] {
        let (_guard, folder, _) = make(left);
        fs::remove_file(folder.join("index.log")).unwrap();
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(120));
        let files = files(&folder);
        let strategy =
            (0..files.len(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4));
        let test = |(file, flips): (usize, Vec<(prop::sample::Index, u8)>)| {
            let change = |bytes: &mut Vec<u8>| {
                for (at, value) in &flips {
                    let at = at.index(bytes.len());
                    bytes[at] = *value;
                }
            };
            with_changed(&files[file], change, |_| drop(read(&folder)));
            Ok(())
        };
        runner.run(&strategy, test).unwrap();
    }
}

#[test]
fn a_damaged_batch_costs_no_other() {
    let (_guard, folder, _) = make_of(Left::Killed, seconds(120, 2));
    // The ring has everything of the last minutes: without it, the streams alone.
    fs::remove_file(folder.join("ring-1.log")).unwrap();
    let is_boundary = |event: &AgentEvent| matches!(event.message, caulk_core::wire::Message::Boundary(_));
    let whole = count(&read(&folder).unwrap(), is_boundary);
    let check = |place: fn(usize) -> usize, at_least: usize| {
        let change = |bytes: &mut Vec<u8>| {
            let at = place(bytes.len());
            bytes[at] ^= 1;
        };
        with_changed(&folder.join("phases.arrows"), change, |_| {
            let left = count(&read(&folder).unwrap(), is_boundary);
            assert!((at_least..whole).contains(&left), "{left} of {whole}");
        });
    };
    check(|length| length - 20, whole / 2);
    check(|length| length / 2, whole / 2);
}

#[test]
fn a_table_without_its_end_is_read_by_the_index() {
    let (_guard, folder, story) = make(Left::Finished);
    let path = folder.join("census.parquet");
    with_changed(
        &path,
        |bytes| bytes.truncate(bytes.len() - 10),
        |_| {
            let recording = read(&folder).unwrap();
            assert_eq!(recording.events.len(), events(&story).len());
            assert_eq!(recording.problems.len(), 1, "{:?}", recording.problems);
        },
    );
}

#[test]
fn foreign_files_under_our_names_are_told() {
    for left in [Left::Killed, Left::Finished] {
        let (_guard, folder, story) = make(left);
        for path in files(&folder) {
            for foreign in [b"".as_slice(), b"PAR1", b"hello, world\n", &[0xff; 4096], &[0; 10_000]] {
                with_changed(
                    &path,
                    |bytes| *bytes = foreign.to_vec(),
                    |_| {
                        assert_part(&read(&folder).unwrap(), &story);
                    },
                );
            }
        }
    }
}

/// A table that another tool wrote anew, for instance with fewer rows, is read as it is.
#[test]
fn a_table_of_another_recording_is_read() {
    let (_guard, folder, story) = make(Left::Finished);
    let (_other_guard, other, _) = make(Left::Finished);
    fs::copy(other.join("samples.parquet"), folder.join("samples.parquet")).unwrap();
    fs::remove_file(folder.join("index.log")).unwrap();
    let recording = read(&folder).unwrap();
    assert_eq!(recording.problems, Vec::<String>::new());
    assert_eq!(recording.samples, samples(&story));
}
