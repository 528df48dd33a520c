//! Small growth in exact readings: which series show it, and how often sound ones seem to.

use crate::generators::{EXACT_KINDS, Random};
use caulk_core::State;
use caulk_growth::{JudgeOptions, Point, judge, judge_certain};

const KB: f64 = 1024.0;
const EFFECT: f64 = 100e3;

/// From the rates of a program with 300 MB in use, in kilobytes per epoch.
fn points(rates: &[f64]) -> Vec<Point> {
    let mut level = 300e3;
    let first = Point { at: 0.0, value: level * KB };
    let rest = rates.iter().enumerate().map(|(at, rate)| {
        level += rate;
        Point { at: (at + 1) as f64, value: level * KB }
    });
    std::iter::once(first).chain(rest).collect()
}

fn check(rates: &[f64], grows: bool) {
    let points = points(rates);
    assert_ne!(judge(&points, &JudgeOptions::default()).state, State::Grows, "{rates:?}");
    let got = judge_certain(&points, EFFECT);
    assert_eq!(got.is_some(), grows, "{rates:?}: {got:?}");
    assert!(got.is_none_or(|got| got.state == State::Grows && got.interval.is_some()));
}

#[test]
fn real_leaks_of_200_kb_per_epoch_are_certain() {
    check(&[275.0, 225.0, 213.0, 309.0, 205.0, 206.0, 184.0], true);
    check(&[12746.0, 205.0, 137.0, 240.0, 212.0, 142.0, 148.0], true);
    check(&[4940.0, 274.0, 271.0, 241.0, 232.0, 230.0, 233.0], true);
    check(&[2574.0, 204.0, 219.0, 304.0, 215.0, 208.0, 208.0], true);
}

#[test]
fn what_is_given_back_at_the_beginning_hides_no_leak() {
    check(&[112.0, -530.0, 110.0, 117.0, 115.0, 115.0, 106.0, 111.0, 125.0, 114.0, 106.0], true);
    // Later it is a program that gives back.
    check(&[112.0, 110.0, 117.0, 115.0, 115.0, -530.0, 106.0, 111.0, 125.0, 114.0, 106.0], false);
}

#[test]
fn what_real_programs_gain_without_a_leak_is_not() {
    check(&[86.0, 36.0, 31.0, 9.0, 8.0, 8.0, 9.0], false);
    check(&[117.0, -9.0, 69.0, 59.0, -82.0, 41.0, 48.0], false);
    check(&[2379.0, 26.0, 15.0, 98.0, 4.0, 2.0, 2.0], false);
    check(&[2298.0, 135.0, 85.0, 320.0, 78.0, 86.0, 41.0], false);
    check(&[866.0, 18.0, 13.0, 6.0, 5.0, 2.0, -2.0], false);
}

#[test]
fn five_readings_are_not_enough_and_what_slows_is_open() {
    check(&[200.0; 4], false);
    check(&[210.0, 200.0, 190.0, 150.0, 120.0, 110.0, 105.0], false);
}

/// A loop of folds around 5 epochs each: nothing within them, 215 KB at each fold.
#[test]
fn a_staircase_over_many_epochs_is_certain_at_its_mean_rate() {
    let rates: Vec<f64> = (1..200).map(|at| if at % 5 == 0 { 215.0 } else { 0.02 }).collect();
    let got = judge_certain(&points(&rates), 6.0 * KB).expect("it never falls back");
    assert!((got.slope / KB - 43.0).abs() < 2.0, "{got:?}");
    // Every other one of them frees what the one before has kept.
    let rates: Vec<f64> = (1..200)
        .map(|at| match at % 50 {
            0 => -215.0,
            25 => 215.0,
            _ => 0.02,
        })
        .collect();
    assert_eq!(judge_certain(&points(&rates), 6.0 * KB), None);
}

/// Bounds on the rates that the benchmark `false_positives` prints.
#[test]
fn rates_of_error_stay_where_they_were_measured() {
    for kind in EXACT_KINDS {
        for (length, count, fewest) in [(8, 60, 0.75), (12, 40, 0.75), (30, 20, 0.9)] {
            let mut random = Random::new(length as u64);
            let called =
                (0..count).filter(|_| judge_certain(&(kind.make)(length, &mut random), EFFECT).is_some());
            let share = called.count() as f64 / f64::from(count);
            let holds = if kind.leak { share >= fewest } else { share <= 0.02 };
            assert!(holds, "{} over {length} boundaries: {share}", kind.name);
        }
    }
}
