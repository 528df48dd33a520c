//! How often `judge` is wrong: false-positive and detection rates per kind of series, on seeded random series; and how often
//! it says that a series does not grow, which is wrong of a leak.
//!
//! `cargo run -p caulk_growth --example false_positives [SERIES_PER_KIND]`

#![expect(clippy::disallowed_methods, reason = "a program of its own: it reads its argument")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "../tests/growth/generators.rs"]
mod generators;

use caulk_core::State;
use caulk_growth::{JudgeOptions, Point, judge, judge_certain};
use generators::{EXACT_KINDS, KINDS, Kind, Random};

/// Bytes per epoch that exact readings must show.
const EFFECT: f64 = 100e3;

const LENGTHS: [u32; 5] = [5, 8, 12, 16, 30];

fn main() {
    let series = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000_u32);
    println!("{series} series of each kind; shares by number of boundaries");
    let judged = |points: &[Point]| judge(points, &JudgeOptions::default()).state;
    let level = |state| matches!(state, State::Flat | State::Sawtooth | State::Plateaus);
    table("judged `grows`", KINDS, series, |points| judged(points) == State::Grows);
    table("judged not to grow", KINDS, series, |points| level(judged(points)));
    table("exact: certain to grow", EXACT_KINDS, series, |points| judge_certain(points, EFFECT).is_some());
}

fn table(title: &str, kinds: &[Kind], series: u32, is_so: impl Fn(&[Point]) -> bool) {
    println!("{title:<34}{:>7}{}", "leak", LENGTHS.map(|length| format!("{length:>8}")).concat());
    for kind in kinds {
        print!("{:<34}{:>7}", kind.name, if kind.leak { "yes" } else { "no" });
        for length in LENGTHS {
            let mut random = Random::new(u64::from(length) << 32 | 0x5eed);
            let counted = (0..series).filter(|_| is_so(&(kind.make)(length as usize, &mut random)));
            print!("{:>7.1}%", 100.0 * counted.count() as f64 / f64::from(series));
        }
        println!();
    }
}
