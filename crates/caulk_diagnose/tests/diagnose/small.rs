//! Small growth that exact readings show for certain: called, and as loud as what it comes to in a day.

use caulk_core::wire::{ContainerKind, HeapFrame, HeapLive, HeapRow, HeapStack, Message, Trait};
use caulk_core::{LeakClass, Series, Severity, State};

use crate::run::{FILE, MB, Run, attribute, elements, rising};

const KB: u64 = 1 << 10;
const SOURCE: &str = "\
class Trainer:
    def __init__(self):
        self.rows = []

    def log(self, row):
        self.rows.append(row)
";

/// Bytes in use of a program with 300 MB that gains so many kilobytes in each epoch.
fn gaining(kilobytes: impl IntoIterator<Item = i64>) -> Vec<u64> {
    let mut level = 300 * MB as i64;
    let mut readings = vec![level as u64];
    for gain in kilobytes {
        level += gain * KB as i64;
        readings.push(level as u64);
    }
    readings
}

fn state(run: &Run) -> State {
    let verdicts = run.diagnose().verdicts;
    verdicts.iter().find(|verdict| verdict.series == Series::InUse).expect("it was judged").state
}

fn check(kilobytes: impl IntoIterator<Item = i64>, grows: bool) {
    let run = Run::of("").epochs(gaining(kilobytes));
    assert_eq!(state(&run) == State::Grows, grows, "{:?}", run.diagnose().verdicts);
}

#[test]
fn two_hundred_kilobytes_per_epoch_are_called_and_a_warm_up_is_not() {
    check([275, 225, 213, 309, 205, 206, 184], true);
    check([12746, 205, 137, 240, 212, 142, 148], true);
    check([2298, 135, 85, 320, 78, 86, 41], false);
    check([86, 36, 31, 9, 8, 8, 9], false);
    check([90; 9], false);
}

/// Less than a megabyte in all, and malloc cannot give back the pages that it lies in.
#[test]
fn what_pins_pages_counts_however_small() {
    let pinned = |pages: u64| {
        let run = Run::of("").epochs(gaining([78, 77, 85, 77, 80, 78, 85, 77, 84, 78, 80]));
        let run = run.edit(|recording| {
            for (epoch, event) in (0..).zip(&mut recording.events) {
                if let Message::Boundary(boundary) = &mut event.message {
                    boundary.rss_bytes += epoch * pages;
                }
            }
        });
        state(&run)
    };
    assert_eq!((pinned(4 * MB), pinned(0)), (State::Grows, State::Flat));
}

/// Folds of five epochs each.
#[test]
fn what_grows_once_per_fold_grows() {
    let folds = |gain: i64| (1..120).map(move |epoch| if epoch % 5 == 0 { gain } else { 0 });
    check(folds(215), true);
    check(folds(10), false);
    // Kept while the next model is fitted, then replaced.
    check((1..120).map(|epoch| [215, 0, 0, 0, 0, -215, 0, 0, 0, 0][epoch % 10]), false);
}

#[test]
fn a_few_numbers_of_each_step_are_what_one_keeps() {
    let steps = |steps: u64| {
        let gains = gaining([200; 9]);
        state(&Run::of("").boundaries(caulk_core::wire::Unit::Epoch, steps, gains))
    };
    assert_eq!(steps(400), State::Grows, "512 bytes a step");
    assert_ne!(steps(2_000), State::Grows, "100 bytes a step");
}

/// The heap profile's share of it is as small.
#[test]
fn the_line_that_allocates_it_is_named_where_no_container_is() {
    let mut run = Run::of(SOURCE).epochs(rising(300 * MB, 200 * KB, 12));
    let line = run.line("self.rows.append");
    let frame = HeapFrame { file: FILE.into(), line, function: "Trainer.log".into() };
    run = run.say(HeapStack { id: 1, frames: vec![frame], ..HeapStack::default() });
    for boundary in 0..12 {
        let bytes = 2 * MB + u64::from(boundary) * 200 * KB;
        let rows = vec![HeapRow { id: 1, bytes, blocks: bytes / (4 * KB), deviation: 100 * KB }];
        run = run.say(Message::HeapLive(HeapLive { boundary, bytes, rows, ..HeapLive::default() }));
    }
    let finding = run.finding();
    assert_eq!((finding.class, finding.sites[0].line), (LeakClass::NativeGrowth, line));
}

fn rows(epoch_lasts: u64) -> Run {
    let run = Run::of(SOURCE).epochs(rising(300 * MB, 200 * KB, 10)).grown(
        ContainerKind::List,
        attribute(2, "trainer", "Trainer", "rows"),
        elements(480, &[Trait::Record]),
        rising(400, 400, 10),
    );
    run.traced(2, "self.rows.append", "Trainer.log").edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.time_ns = boundary.time_ns / 10 * epoch_lasts;
            }
        }
    })
}

#[test]
fn it_is_as_loud_as_what_it_comes_to_in_a_day() {
    let severity = |lasts| rows(lasts).finding().severity;
    // 1.7 GB a day, and 14 MB.
    assert_eq!((severity(10), severity(1_200)), (Severity::Warning, Severity::Info));
    assert_eq!(state(&rows(1_200)), State::Grows);
}

/// Thumbnails for a contact sheet at the end: a sound program keeps as much.
#[test]
fn a_small_history_of_plain_values_is_named_and_no_leak() {
    let kept = |kilobytes: u64, traits: &[Trait]| {
        Run::of(SOURCE)
            .epochs(rising(300 * MB, kilobytes * KB, 9))
            .grown(
                ContainerKind::List,
                attribute(2, "trainer", "Trainer", "rows"),
                elements(kilobytes * KB / 5, traits),
                rising(5, 5, 9),
            )
            .traced(2, "self.rows.append", "Trainer.log")
    };
    let meant = kept(200, &[Trait::Tensor]);
    assert_eq!((meant.finding().severity, state(&meant)), (Severity::Info, State::Flat));
    let pinning = kept(200, &[Trait::Tensor]).edit(|recording| {
        for (epoch, event) in (0..).zip(&mut recording.events) {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.rss_bytes += epoch * 4 * MB;
            }
        }
    });
    assert_eq!(state(&pinning), State::Grows, "the pages around it stay as well");
    // What pins a graph is meant by nobody, and much is much.
    let graphs = kept(200, &[Trait::Tensor, Trait::Graph]);
    assert_eq!((graphs.finding().severity, state(&graphs)), (Severity::Warning, State::Grows));
    let much = kept(2_000, &[Trait::Tensor]);
    assert_eq!((much.finding().severity, state(&much)), (Severity::Error, State::Grows));
}
