//! Resident memory that rises while bytes in use do not, and things that are counted.

use caulk_core::wire::{Kin, Message, NoteCode, Opened, Trim};
use caulk_core::{LeakClass, Note, Series, Severity, State, Verdict};

use crate::run::{MB, Run, message};

/// Twelve epochs at one level, with these figures at each.
fn run(set: impl Fn(u64, &mut caulk_core::wire::Boundary)) -> Run {
    Run::of("open('a')\n").epochs([400 * MB; 12]).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                set(boundary.index, boundary);
            }
        }
    })
}

#[test]
fn free_blocks_that_grow_with_resident_memory_are_the_allocators() {
    let run = run(|epoch, boundary| {
        boundary.rss_bytes += epoch * 10 * MB;
        boundary.malloc_free_bytes = epoch * 9 * MB;
        boundary.malloc_heap_bytes = 300 * MB + epoch * 9 * MB;
    });
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::AllocatorFragmentation, Severity::Info));
    assert!(message(&finding).contains("99.0 MB of 399 MB"), "{}", message(&finding));
}

/// It is open whether the bytes in use go on rising: their rate falls. What they have gained stays in the heap's midst.
#[test]
fn a_heap_in_pieces_around_what_stays_is_a_warning() {
    let pieces = |gains: [u64; 12]| {
        run(|epoch, boundary| {
            boundary.malloc_bytes += gains[..=epoch as usize].iter().sum::<u64>() * MB;
            boundary.rss_bytes += epoch * 90 * MB;
            boundary.malloc_free_bytes = epoch * 85 * MB;
            boundary.malloc_heap_bytes = 600 * MB + epoch * 90 * MB;
        })
    };
    let slower = pieces([0, 8, 8, 7, 7, 6, 5, 5, 4, 3, 3, 2]);
    assert_eq!(in_use(&slower).state, State::Undecided, "{:?}", in_use(&slower));
    let finding = slower.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::AllocatorFragmentation, Severity::Warning));
    assert!(message(&finding).contains("what stays lies in between"), "{}", message(&finding));
    assert_eq!(pieces([0; 12]).finding().severity, Severity::Info);
}

#[test]
fn what_malloc_gives_back_when_asked_is_told_with_a_finding_or_without() {
    let trim =
        |boundary, after_bytes| Trim { boundary, before_bytes: 700 * MB, after_bytes, cost_ns: 2_000_000 };
    let level = run(|_, _| {}).say(trim(4, 500 * MB)).say(trim(8, 690 * MB));
    let note = "`malloc_trim(0)` took resident memory from 700 MB to 500 MB, in 2 ms: the most of 2 times that it was asked";
    let note = Note::new(NoteCode::AllocatorKeeps, note).with("times", 2_u64);
    let note = note.with("before_bytes", 700 * MB).with("after_bytes", 500 * MB);
    assert_eq!(level.diagnose().notes.iter().map(caulk_report::note).collect::<Vec<_>>(), [note]);
    let keeps = run(|epoch, boundary| {
        boundary.rss_bytes += epoch * 10 * MB;
        boundary.malloc_free_bytes = epoch * 9 * MB;
        boundary.malloc_heap_bytes = 300 * MB + epoch * 9 * MB;
    });
    let keeps = keeps.say(trim(8, 690 * MB));
    assert!(
        keeps.diagnose().notes.is_empty() && keeps.finding().evidence.len() > 1,
        "{:#?}",
        keeps.diagnose()
    );
}

#[test]
fn arenas_that_few_objects_keep_are_pymallocs() {
    let run = run(|epoch, boundary| {
        boundary.rss_bytes += epoch * 10 * MB;
        boundary.small_bytes = 20 * MB;
        boundary.small_blocks = 250_000;
        boundary.arena_bytes = 30 * MB + epoch * 10 * MB;
    });
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::AllocatorFragmentation, Severity::Info));
    assert!(
        message(&finding).contains("pymalloc keeps") && message(&finding).contains("120 MB of 140 MB"),
        "{finding:#?}"
    );
}

#[test]
fn pages_of_files_are_a_series_of_their_own_and_no_finding() {
    let run = run(|epoch, boundary| {
        boundary.rss_bytes += epoch * 10 * MB;
        boundary.file_bytes = 100 * MB + epoch * 10 * MB;
    });
    let diagnosis = run.diagnose();
    assert!(diagnosis.findings.is_empty(), "{diagnosis:#?}");
    let files = diagnosis.verdicts.iter().find(|verdict| verdict.series == Series::MappedFiles);
    assert!(files.is_some_and(|verdict| verdict.state == State::Grows && verdict.oom_in_s.is_none()));
}

#[test]
fn copies_of_mapped_pages_are_a_series_where_there_are_any() {
    let state = |each: u64, files: Option<u64>| {
        let run = run(|epoch, boundary| {
            boundary.rss_bytes += epoch * each * MB;
            boundary.copied_file_bytes = files.map(|first| (first + epoch * each) * MB);
        });
        let verdicts = run.diagnose().verdicts;
        let copies = verdicts.iter().find(|verdict| verdict.series == Series::PrivatePages);
        copies.map(|verdict| verdict.state)
    };
    assert_eq!(state(4, Some(0)), Some(State::Grows));
    assert_eq!(state(0, Some(30)), Some(State::Flat), "a model's file, once");
    assert_eq!(state(0, Some(0)), None, "no file is mapped so");
    assert_eq!(state(4, None), None, "nobody counted them");
}

#[test]
fn descriptors_that_become_more_are_told_and_those_that_come_and_go_are_not() {
    let finding = run(|epoch, boundary| boundary.fds = 8 + 2 * epoch as u32).finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::FileHandlesGrow, Severity::Warning));
    let threads = run(|epoch, boundary| boundary.threads = 4 + (epoch % 3) as u32);
    assert!(threads.diagnose().findings.is_empty(), "{:#?}", threads.diagnose());
}

#[test]
fn descriptors_of_shared_memory_are_no_matter_of_their_own() {
    let mut run = run(|epoch, boundary| boundary.fds = 8 + 6 * epoch as u32);
    for boundary in [0, 11] {
        let segments = Kin { name: "/dev/shm/torch_*".into(), count: 6 * boundary, ..Kin::default() };
        run = run.say(Opened { boundary, files: vec![segments], ..Opened::default() });
    }
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::FileHandlesGrow, Severity::Info));
}

fn in_use(run: &Run) -> Verdict {
    let verdicts = run.diagnose().verdicts;
    verdicts.into_iter().find(|verdict| verdict.series == Series::InUse).expect("it is told")
}

#[test]
fn private_mappings_that_are_touched_are_in_use() {
    let mapping = |touched: u64| {
        run(move |epoch, boundary| {
            boundary.mapped_bytes = 200 * MB + epoch * 16 * MB;
            boundary.rss_bytes += epoch * touched;
        })
    };
    let state = |run: &Run| in_use(run).state;
    assert_eq!(state(&mapping(16 * MB)), State::Grows);
    // Stacks of threads, and what is reserved for later.
    assert_eq!(state(&mapping(MB / 2)), State::Flat);
}

#[test]
fn what_is_allocated_and_grows_alone_is_not_mapped_too() {
    let run = Run::of("open('a')\n").epochs((0..12).map(|epoch| (400 + 20 * epoch) * MB)).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.mapped_bytes = 200 * MB + boundary.index * 8 * MB;
            }
        }
    });
    let grows = in_use(&run);
    assert!((grows.bytes_per_unit / MB as f64 - 20.0).abs() < 0.1, "{}", grows.bytes_per_unit);
}
