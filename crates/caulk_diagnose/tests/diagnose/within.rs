//! What epochs gather and free at their ends.

use caulk_core::wire::{Boundary, HeapFrame, HeapLive, HeapRow, HeapStack, Message, Unit};
use caulk_core::{LeakClass, Scope, Series, Severity, State, Verdict};

use crate::run::{FILE, MB, Run};

const SOURCE: &str = "\
def train_epoch(model, batches):
    outputs = []
    for batch in batches:
        outputs.append(model(batch))
    return len(outputs)
";

/// Epochs of 40 steps, read at each fifth, with so many bytes alive at a step of an epoch; the heap profile has them at a line.
fn epochs(count: u64, alive: impl Fn(u64, u64) -> u64) -> Run {
    let mut run = Run::of(SOURCE);
    let line = run.line("outputs.append");
    let frame = HeapFrame { file: FILE.into(), line, function: "train_epoch".into() };
    run = run.say(HeapStack { id: 1, frames: vec![frame], ..HeapStack::default() });
    let steps = (0..=count).flat_map(|epoch| (0..40).step_by(5).map(move |step| (epoch, step)));
    for (seq, (epoch, step)) in (0..).zip(steps) {
        if epoch == count && step > 0 {
            break;
        }
        let done = epoch * 40 + step + 1;
        let bytes = alive(epoch, step);
        let boundary = Boundary {
            seq,
            time_ns: done * 100_000_000,
            unit: if step == 0 { Unit::Epoch } else { Unit::Steps },
            index: if step == 0 { epoch } else { done },
            steps: done,
            malloc_bytes: 300 * MB + bytes,
            rss_bytes: 600 * MB + bytes,
            ..Boundary::default()
        };
        let rows = vec![HeapRow { id: 1, bytes, blocks: bytes / MB, deviation: MB }];
        run = run.say(boundary).say(Message::HeapLive(HeapLive {
            boundary: seq,
            bytes,
            rows,
            ..HeapLive::default()
        }));
    }
    run
}

fn in_use(run: &Run) -> Verdict {
    let verdicts = run.diagnose().verdicts;
    verdicts.into_iter().find(|verdict| verdict.series == Series::InUse).expect("it was judged")
}

#[test]
fn what_is_a_small_part_of_the_memory_is_worth_knowing_at_most() {
    let run = epochs(5, |_, step| step * MB / 3);
    let found = run.diagnose().findings;
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.class, finding.severity), (LeakClass::LargeLocalKept, Severity::Info));
    assert_eq!(in_use(&run).state, State::GrowsWithinEpoch);
}

#[test]
fn a_megabyte_a_step_that_is_freed_at_the_epochs_end_is_named_with_its_line() {
    for count in [3, 5, 9] {
        let run = epochs(count, |_, step| step * MB);
        let verdict = in_use(&run);
        assert_eq!((verdict.state, verdict.more_needed), (State::GrowsWithinEpoch, None), "{}", verdict.text);
        assert!(verdict.text.contains("1.00 MB a step"), "{}", verdict.text);
        let finding = run.finding();
        let known = (finding.class, finding.scope, finding.severity);
        assert_eq!(known, (LeakClass::LargeLocalKept, Scope::Epoch, Severity::Warning));
        assert_eq!(finding.sites[0].line, run.line("outputs.append"));
    }
}

#[test]
fn what_stays_grows_and_what_comes_and_goes_does_not() {
    let leaks = epochs(9, |epoch, step| (40 * epoch + step) * MB);
    assert_eq!(in_use(&leaks).state, State::Grows);
    let batches = epochs(9, |epoch, step| (7 * epoch + 11 * step) % 13 * 4 * MB);
    assert_ne!(in_use(&batches).state, State::GrowsWithinEpoch);
    let first_steps = epochs(9, |_, step| if step > 0 { 80 * MB } else { 0 });
    assert_ne!(in_use(&first_steps).state, State::GrowsWithinEpoch);
    assert!(first_steps.diagnose().findings.is_empty());
}
