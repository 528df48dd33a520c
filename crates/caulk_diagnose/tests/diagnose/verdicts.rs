//! What the series say.

use caulk_core::wire::{HeapLive, Hello, Message, Unit};
use caulk_core::{Counted, LimitKind, Recording, Sample, Series, State, SystemSample, Verdict, VerdictUnit};

use crate::run::{MB, Run, rising};

fn verdict(run: &Run, series: Series) -> Verdict {
    let verdicts = run.diagnose().verdicts;
    verdicts.into_iter().find(|verdict| verdict.series == series).expect("the series was judged")
}

#[test]
fn a_leak_with_the_time_to_the_nearest_limit() {
    let run = Run::of("").epochs(rising(400 * MB, 10 * MB, 8));
    let in_use = verdict(&run, Series::InUse);
    assert_eq!((in_use.state, in_use.unit, in_use.boundaries), (State::Grows, VerdictUnit::Epoch, 8));
    assert_eq!(in_use.bytes_per_epoch, Some(10.0 * MB as f64));
    assert_eq!(in_use.limit.map(|limit| limit.kind), Some(LimitKind::Physical));
    // 1 GB is free; an epoch lasts ten seconds.
    let [soon, late] = in_use.oom_in_s.expect("it grows");
    assert!(soon <= 1024.0 && (1023.0..1100.0).contains(&late), "{soon} {late}");
}

#[test]
fn a_budget_below_everything_else_is_the_limit() {
    let run = Run::of("")
        .epochs(rising(400 * MB, 10 * MB, 8))
        .edit(|recording| recording.info.limits.budget_bytes = Some(900 * MB));
    let limit = verdict(&run, Series::InUse).limit.expect("there is one");
    assert_eq!((limit.kind, limit.bytes), (LimitKind::Budget, 900 * MB));
}

#[test]
fn resident_memory_that_rises_alone_leaves_the_bytes_in_use_flat() {
    let run = Run::of("").epochs([400 * MB; 8]).edit(|recording| {
        for (epoch, event) in (0..).zip(&mut recording.events) {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.rss_bytes += epoch * 10 * MB;
            }
        }
    });
    assert_eq!(verdict(&run, Series::InUse).state, State::Flat);
    assert_eq!(verdict(&run, Series::Rss).state, State::Grows);
}

/// Epochs of a fraction of a second, among which memory comes and goes by megabytes.
#[test]
fn a_rise_that_is_small_each_time_is_not_cleared() {
    const SWINGS: [u64; 7] = [5, 1, 0, 6, 2, 8, 3];
    let state = |step: u64| {
        let level = |at: u64| 240 * MB + at * step + SWINGS[(at / 3) as usize % SWINGS.len()] * MB;
        verdict(&Run::of("").epochs((0..270).map(level)), Series::InUse).state
    };
    assert_eq!([64 << 10, 2 << 10].map(state), [State::Undecided, State::Flat]);
}

/// A cache of pictures that is emptied and filled with larger ones at epochs 5, 9, 13 and 17 of 24: measured, in units of
/// 100 KB.
const STAIRS: [u64; 24] = [
    1428, 1447, 1447, 1447, 1437, 1477, 1477, 1477, 1448, 1518, 1518, 1518, 1462, 1571, 1571, 1571, 1478,
    1634, 1634, 1634, 1634, 1634, 1634, 1634,
];
const RESIDENT: [u64; 24] = [
    6622, 6683, 6684, 6684, 6700, 6738, 6745, 6745, 6753, 6802, 6806, 6807, 6808, 6897, 6891, 6891, 6893,
    7009, 7005, 6999, 6999, 6999, 6998, 7007,
];

#[test]
fn pages_of_bytes_of_which_it_is_open_whether_they_grow_are_open_too() {
    let stairs = |in_use: [u64; 24]| {
        Run::of("").epochs(in_use.map(|units| units * 100_000)).edit(|recording| {
            let boundaries = recording.events.iter_mut().filter_map(|event| match &mut event.message {
                Message::Boundary(boundary) => Some(boundary),
                _ => None,
            });
            for (boundary, units) in boundaries.zip(RESIDENT) {
                boundary.rss_bytes = units * 100_000;
            }
        })
    };
    let states = |run: &Run| [Series::InUse, Series::Rss].map(|series| verdict(run, series).state);
    assert_eq!(states(&stairs(STAIRS)), [State::Undecided; 2]);
    assert_eq!(verdict(&stairs(STAIRS), Series::Rss).oom_in_s, None);
    assert_eq!(states(&stairs([STAIRS[0]; 24])), [State::Flat, State::Grows], "pages that are nobody's");
}

/// Eight epochs of 10,000 small objects more, which the agent takes for 64 bytes and the heap profile for `size`.
fn small_objects(size: u64, deviation: u64) -> Run {
    let mut run = Run::of("").epochs([400 * MB; 8]).edit(|recording| {
        for (epoch, event) in (0..).zip(&mut recording.events) {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.small_blocks = 500_000 + epoch * 10_000;
                boundary.small_bytes = boundary.small_blocks * 64;
            }
        }
    });
    for boundary in 0..8_u32 {
        let bytes = 430 * MB + u64::from(boundary) * 10_000 * size;
        run = run.say(HeapLive { boundary, interval: 524_288, bytes, deviation, ..HeapLive::default() });
    }
    run
}

#[test]
fn small_objects_weigh_what_the_heap_profile_says() {
    let growth = |run: &Run| verdict(run, Series::InUse).bytes_per_unit.round() as u64;
    assert_eq!(growth(&small_objects(300, MB / 8)), 3_000_000);
    // Too coarse a profile to tell.
    assert_eq!(growth(&small_objects(300, 8 * MB)), 640_000);
}

#[test]
fn two_epochs_and_many_steps_are_judged_by_steps() {
    let run = Run::of("").boundaries(Unit::Steps, 10, rising(400 * MB, MB, 12));
    let in_use = verdict(&run, Series::InUse);
    assert_eq!((in_use.unit, in_use.state, in_use.bytes_per_epoch), (VerdictUnit::Steps, State::Grows, None));
}

#[test]
fn steps_inside_the_first_epochs_decide_nothing() {
    let run = Run::of("").boundaries(Unit::Steps, 10, rising(400 * MB, MB, 12)).edit(|recording| {
        for (event, epoch) in recording.events.iter_mut().zip([0, 1]) {
            if let Message::Boundary(boundary) = &mut event.message {
                (boundary.unit, boundary.index) = (Unit::Epoch, epoch);
            }
        }
    });
    let in_use = verdict(&run, Series::InUse);
    assert_eq!((in_use.unit, in_use.state), (VerdictUnit::Steps, State::Undecided));
    assert_eq!(in_use.more_needed, Some(3));
}

#[test]
fn one_epoch_of_many_steps_is_judged_by_its_steps() {
    let run = Run::of("").boundaries(Unit::Steps, 100, rising(400 * MB, MB, 20)).edit(|recording| {
        if let Some(Message::Boundary(first)) = recording.events.first_mut().map(|event| &mut event.message) {
            (first.unit, first.index) = (Unit::Epoch, 0);
        }
    });
    let in_use = verdict(&run, Series::InUse);
    assert_eq!((in_use.unit, in_use.state), (VerdictUnit::Steps, State::Grows), "{}", in_use.text);
}

/// Twelve epochs of the same bytes in use, of which malloc told in the first `read`.
fn read_for(read: usize) -> Run {
    Run::of("").epochs([400 * MB; 12]).edit(|recording| {
        for event in recording.events.iter_mut().skip(read) {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.malloc_bytes = 0;
            }
        }
    })
}

#[test]
fn what_was_not_read_is_not_said_not_to_grow() {
    let state = |read| verdict(&read_for(read), Series::InUse).state;
    assert_eq!([12, 10, 6].map(state), [State::Flat, State::Flat, State::Undecided]);
    let open = verdict(&read_for(6), Series::InUse);
    assert_eq!(open.more_needed, Some(6), "{}", open.text);
    assert!(
        open.text.contains("50 of 110 seconds") && open.text.contains("last 6 boundaries"),
        "{}",
        open.text
    );
}

#[test]
fn what_was_counted_from_outside_is_read() {
    let run = read_for(6).edit(|recording| {
        let counted = Some(Counted { malloc_bytes: 400 * MB, ..Counted::default() });
        recording.samples.iter_mut().for_each(|sample| sample.counted = counted);
    });
    assert_eq!(verdict(&run, Series::InUse).state, State::Flat);
}

#[test]
fn what_goes_on_long_after_the_last_boundary_is_not_read() {
    let goes_on = |seconds: u64| {
        let run = Run::of("").epochs([400 * MB; 8]).edit(|recording| {
            let last = *recording.samples.last().expect("there are some");
            recording.samples.push(Sample { time_ns: last.time_ns + seconds * 1_000_000_000, ..last });
        });
        verdict(&run, Series::InUse)
    };
    // The last epoch ends without a boundary.
    assert_eq!(goes_on(15).state, State::Flat);
    let open = goes_on(70);
    assert_eq!(open.state, State::Undecided);
    assert!(open.text.contains("caulk.epoch()"), "{}", open.text);
}

#[test]
fn a_few_seconds_of_imports_are_no_leak() {
    let run = Run::of("").boundaries(Unit::Seconds, 0, [80, 120, 140, 155, 174, 193, 207].map(|mb| mb * MB));
    assert_eq!(verdict(&run, Series::InUse).state, State::Undecided);
}

#[test]
fn what_rises_while_a_slow_machine_loads_is_open() {
    let run = Run::of("").edit(|recording| {
        for tick in 0..100 {
            let time_ns = (tick + 1) * 250_000_000;
            let tree_rss_bytes = (300 + 2 * tick) * MB;
            recording.system.push(SystemSample {
                time_ns,
                tree_rss_bytes,
                processes: 1,
                ..SystemSample::default()
            });
            let shared_bytes = 200 * MB + tick * (20 << 10);
            recording.samples.push(Sample { time_ns, pid: 7, shared_bytes, ..Sample::default() });
        }
    });
    assert_eq!(verdict(&run, Series::Rss).state, State::Undecided);
}

#[test]
fn a_tree_without_agents_is_judged_from_outside() {
    let run = Run::of("").edit(|recording| {
        recording.system = (0..240)
            .map(|tick: u64| SystemSample {
                time_ns: tick * 1_000_000_000,
                tree_rss_bytes: (500 + tick) * MB,
                available_bytes: 1 << 30,
                ..SystemSample::default()
            })
            .collect();
    });
    let tree = verdict(&run, Series::Rss);
    assert_eq!(
        (tree.process.role.as_str(), tree.unit, tree.state),
        ("tree", VerdictUnit::Seconds, State::Grows)
    );
    assert!((tree.bytes_per_unit / MB as f64 - 1.0).abs() < 0.05, "{tree:?}");
}

#[test]
fn page_cache_takes_no_room_below_a_limit() {
    let until_full = |cache: Option<u64>| {
        let run = Run::of("").epochs((0..8).map(|epoch| (200 + 10 * epoch) * MB)).edit(|recording| {
            recording.info.limits.cgroup_bytes = Some(1000 * MB);
            for look in &mut recording.system {
                look.cgroup_bytes = Some(900 * MB);
            }
            // It is not read at every look.
            recording.system[3].cgroup_cache_bytes = cache;
        });
        verdict(&run, Series::InUse).oom_in_s.expect("it grows")
    };
    let ([without, _], [with, _]) = (until_full(None), until_full(Some(400 * MB)));
    assert!((with / without - 5.0).abs() < 0.01, "{without} s and {with} s");
}

#[test]
fn an_empty_recording_says_nothing() {
    let diagnosis = Run::of("").edit(|recording| *recording = Recording::default()).diagnose();
    assert_eq!(diagnosis, caulk_diagnose::Diagnosis::default());
}

#[test]
fn a_program_that_runs_another_in_its_place_is_two() {
    let run = Run::of("")
        .say(Hello::default())
        .epochs(rising(400 * MB, 10 * MB, 8))
        .say(Hello::default())
        .epochs([300 * MB; 8]);
    let in_use = run.diagnose().verdicts.into_iter().filter(|verdict| verdict.series == Series::InUse);
    assert_eq!(in_use.map(|verdict| verdict.state).collect::<Vec<_>>(), [State::Grows, State::Flat]);
}
