//! Snapshots that `python/tests/cuda_snapshots.py` made with the structure that torch documents.
#![expect(clippy::unwrap_used, reason = "tests")]

use caulk_cuda::{PickleProblem, ReplayAdvice, Snapshot, SnapshotDifference, SnapshotError, Usage, advise};

const MB: u64 = 1 << 20;

fn bytes(name: &str) -> &'static [u8] {
    match name {
        "early" => include_bytes!("data/early.pickle"),
        "late" => include_bytes!("data/late.pickle"),
        "fragmented" => include_bytes!("data/fragmented.pickle"),
        "failed" => include_bytes!("data/failed.pickle"),
        _ => include_bytes!("data/set.pickle"),
    }
}

fn snapshot(name: &str) -> Snapshot {
    Snapshot::read(bytes(name)).unwrap()
}

fn advice(name: &str) -> ReplayAdvice {
    advise(&snapshot(name)).remove(0)
}

#[test]
fn live_bytes_belong_to_the_innermost_line_of_the_user() {
    let usage = Usage::of(&snapshot("late")).remove(0);
    let lines: Vec<(&str, u32, u64)> =
        usage.lines.iter().map(|line| (line.file.as_str(), line.line, line.bytes / MB)).collect();
    assert_eq!(lines, [("/home/me/train.py", 30, 28), ("/home/me/train.py", 9, 17)]);
    let total = &usage.total;
    assert_eq!(total.live, 45 * MB);
    assert_eq!(total.live + total.pending + total.free + total.gaps, total.reserved);
    assert_eq!(usage.pools.iter().map(|pool| pool.reserved).sum::<u64>(), total.reserved);
    assert_eq!(usage.blocks[0].bytes, 12 * MB);
}

#[test]
fn lines_that_grew_come_first() {
    let difference = SnapshotDifference::of(&snapshot("early"), &snapshot("late"));
    assert_eq!(difference.lines.len(), 1, "{difference:?}");
    let line = &difference.lines[0];
    assert_eq!((line.name.as_str(), line.change), ("/home/me/train.py:30 validate", 18 * MB as i64));
    assert_eq!(difference.totals[0].change, 18 * MB as i64);
}

#[test]
fn a_replay_predicts_what_a_setting_saves() {
    let advice = advice("fragmented");
    assert!(advice.peak_reserved > 2 * advice.peak_allocated, "{advice:?}");
    let best = &advice.remedies[0];
    assert_eq!((best.setting.as_str(), best.avoids_failure), ("expandable_segments:True", None));
    assert_eq!(best.saving, advice.peak_reserved - best.peak_reserved);
    assert!(best.peak_reserved < advice.peak_reserved * 2 / 3, "{advice:?}");
}

#[test]
fn an_allocation_that_failed_would_have_fit() {
    let advice = advice("failed");
    let best = &advice.remedies[0];
    assert!(advice.failed.is_some_and(|size| size == 90 * MB), "{advice:?}");
    assert_eq!(best.avoids_failure, Some(true), "{advice:?}");
}

#[test]
fn what_is_set_is_no_advice() {
    let advice = advice("set");
    assert!(advice.remedies.iter().all(|remedy| !remedy.setting.contains("expandable")), "{advice:?}");
}

fn refused(bytes: &[u8]) -> (u64, PickleProblem) {
    match Snapshot::read(bytes).unwrap_err() {
        SnapshotError::Pickle(error) => (error.offset, error.problem),
        error @ SnapshotError::NoSnapshot => panic!("{error}"),
    }
}

#[test]
fn broken_files_are_refused_with_the_place() {
    let whole = bytes("early");
    for length in [1, 2, 100, whole.len() - 1] {
        let (offset, problem) = refused(&whole[..length]);
        assert!(
            matches!(problem, PickleProblem::Truncated) && offset <= length as u64,
            "{length}: {offset} {problem}"
        );
    }
    assert!(matches!(refused(b""), (0, PickleProblem::Truncated)));
    assert!(matches!(refused(b"PK\x03\x04"), (0, PickleProblem::NoPickle)));
    // `os.system` by name: protocol 2, and as protocol 4 writes it.
    assert!(matches!(refused(b"\x80\x02cos\nsystem\n."), (2, PickleProblem::Forbidden("GLOBAL"))));
    assert!(matches!(
        refused(b"\x80\x04\x8c\x02os\x8c\x06system\x93."),
        (14, PickleProblem::Forbidden("STACK_GLOBAL"))
    ));
    assert!(matches!(refused(b"\x80\x02]R."), (3, PickleProblem::Forbidden("REDUCE"))));
    assert!(matches!(refused(b"\x80\x02\xff"), (2, PickleProblem::Unknown(0xff))));
    assert!(matches!(refused(b"\x80\x02h\x05."), (2, PickleProblem::Damaged(_))));
    // A list that contains itself.
    assert!(matches!(refused(b"\x80\x02]q\x00h\x00a."), (7, PickleProblem::Damaged(_))));
    // A text of 2^63 bytes, and one of 3 GB, which the file has not.
    assert!(matches!(refused(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"), (2, PickleProblem::TooLarge)));
    assert!(matches!(refused(b"\x80\x02X\x00\x00\x00\xc0abc"), (2, PickleProblem::Truncated)));
    assert!(matches!(Snapshot::read(&b"\x80\x02}."[..]), Err(SnapshotError::NoSnapshot)));
}

#[test]
fn any_damage_gives_an_error_or_a_snapshot() {
    let whole = bytes("early");
    let mut seed = 7_u64;
    for _ in 0..400 {
        let mut damaged = whole[..4000.min(whole.len())].to_vec();
        for _ in 0..3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % damaged.len();
            damaged[at] = (seed >> 17) as u8;
        }
        damaged.push(b'.');
        let _ = Snapshot::read(damaged.as_slice()).map(|snapshot| (Usage::of(&snapshot), advise(&snapshot)));
    }
}
