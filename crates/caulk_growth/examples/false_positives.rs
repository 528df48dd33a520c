//! How often `judge` is wrong: false-positive and detection rates per kind of series, on seeded random series.
//!
//! `cargo run -p caulk_growth --example false_positives [SERIES_PER_KIND]`

#![expect(clippy::disallowed_methods, reason = "a program of its own: it reads its argument")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "../tests/generators/mod.rs"]
mod generators;

use caulk_core::State;
use generators::{KINDS, Random};

fn main() {
    let series = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000_u32);
    println!("{series} series of each kind; share judged `grows` by number of boundaries");
    println!("{:<34}{:>7}{:>8}{:>8}{:>8}{:>8}{:>8}", "", "leak", 5, 8, 12, 16, 30);
    for kind in KINDS {
        print!("{:<34}{:>7}", kind.name, if kind.leak { "yes" } else { "no" });
        for length in [5_u32, 8, 12, 16, 30] {
            let mut random = Random::new(u64::from(length) << 32 | 0x5eed);
            let grows = (0..series).filter(|_| {
                let points = (kind.make)(length as usize, &mut random);
                caulk_growth::judge(&points, &caulk_growth::Options::default()).state == State::Grows
            });
            print!("{:>7.1}%", 100.0 * grows.count() as f64 / f64::from(series));
        }
        println!();
    }
}
