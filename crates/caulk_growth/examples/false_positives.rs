//! How often `judge` is wrong: false-positive and detection rates per kind of series, on seeded random series; and how often
//! it says that a series does not grow, which is wrong of a leak.
//!
//! `cargo run -p caulk_growth --example false_positives [SERIES_PER_KIND]`

#![expect(clippy::disallowed_methods, reason = "a program of its own: it reads its argument")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "../tests/generators/mod.rs"]
mod generators;

use caulk_core::State;
use generators::{KINDS, Random};

/// An answer that is counted.
type Answer = fn(State) -> bool;

const LENGTHS: [u32; 5] = [5, 8, 12, 16, 30];

fn main() {
    let series = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000_u32);
    println!("{series} series of each kind; shares by number of boundaries");
    let answers: [(&str, Answer); 2] = [
        ("judged `grows`", |state| state == State::Grows),
        ("judged not to grow", |state| matches!(state, State::Flat | State::Sawtooth | State::Plateaus)),
    ];
    for (title, answer) in answers {
        println!("{title:<34}{:>7}{}", "leak", LENGTHS.map(|length| format!("{length:>8}")).concat());
        for kind in KINDS {
            print!("{:<34}{:>7}", kind.name, if kind.leak { "yes" } else { "no" });
            for length in LENGTHS {
                let mut random = Random::new(u64::from(length) << 32 | 0x5eed);
                let counted = (0..series).filter(|_| {
                    let points = (kind.make)(length as usize, &mut random);
                    answer(caulk_growth::judge(&points, &caulk_growth::Options::default()).state)
                });
                print!("{:>7.1}%", 100.0 * counted.count() as f64 / f64::from(series));
            }
            println!();
        }
    }
}
