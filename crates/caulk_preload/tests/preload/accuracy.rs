//! Estimates against exact counting: no bias, and the truth within the interval that is shown as often as it says.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use caulk_wire::heap::Total;

use crate::build::compiled;
use crate::program::{run, written};
use crate::python::pythons;

/// Bytes per block and number of blocks: small objects of pymalloc, blocks about as large as the interval, larger ones.
const LINES: [(usize, usize); 18] = [
    (64, 16_000),
    (64, 60_000),
    (200, 10_000),
    (200, 40_000),
    (500, 20_000),
    (2_000, 500),
    (2_000, 4_000),
    (20_000, 50),
    (20_000, 500),
    (100_000, 10),
    (100_000, 100),
    (300_000, 4),
    (300_000, 40),
    (1_000_000, 1),
    (1_000_000, 20),
    (3_000_000, 4),
    (10_000_000, 1),
    (10_000_000, 3),
];
/// Bytes of a `bytes` object around its content.
const HEAD: usize = 33;
/// Standard deviations on each side that hold 95 % of a normal distribution.
const SIDE: f64 = 1.96;

/// What is not told below: variances are whole squares of this.
const ROUNDING: f64 = 1024.0;

/// What something was estimated to hold in one run, in bytes.
#[derive(Clone, Copy)]
struct Estimate {
    exact: f64,
    live: f64,
    deviation: f64,
}

impl Estimate {
    /// Whether it would be shown: something was sampled.
    fn is_shown(&self) -> bool {
        self.live > 0.0
    }

    fn is_within(&self) -> bool {
        (self.live - self.exact).abs() <= SIDE * self.deviation + ROUNDING
    }
}

/// Estimates that are shown, and those of them whose interval holds the truth.
fn within(estimates: &[Estimate]) -> (usize, usize) {
    let shown = || estimates.iter().filter(|estimate| estimate.is_shown());
    (shown().count(), shown().filter(|estimate| estimate.is_within()).count())
}

/// How far the sum of all estimates is off, and how far chance would bring it (a standard deviation).
fn bias(estimates: &[Estimate]) -> (f64, f64) {
    let off = estimates.iter().map(|estimate| estimate.live - estimate.exact).sum();
    let chance = estimates.iter().fold(0.0_f64, |chance, estimate| chance.hypot(estimate.deviation));
    (off, chance)
}

/// So many of a number of 95 % intervals miss the truth by chance; more do so less than once in ten thousand times.
fn most_misses(intervals: usize) -> usize {
    const MISS: f64 = 0.05;
    let (mut misses, mut here) = (0, (1.0 - MISS).powf(intervals as f64));
    let mut more = 1.0 - here;
    while more > 1e-4 {
        here *= (intervals - misses) as f64 / (misses + 1) as f64 * MISS / (1.0 - MISS);
        misses += 1;
        more -= here;
    }
    misses
}

/// Fails where they are biased, or less sure than they say, by more than chance explains once in ten thousand times.
#[track_caller]
fn are_as_sure_as_they_say(estimates: &[Estimate]) {
    let (shown, inside) = within(estimates);
    assert!(shown - inside <= most_misses(shown), "{inside} of {shown} estimates within their intervals");
    let (off, chance) = bias(estimates);
    assert!(off.abs() <= 4.0 * chance + ROUNDING, "{off} bytes off, of which {chance} are chance");
}

/// How often each program runs; `cargo xtask bench heap` asks for more than a test can afford.
fn runs() -> usize {
    std::env::var("CAULK_ACCURACY_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(3)
}

/// A program with a line of its own for each entry; the first of them is line 1 of the lines that count.
fn text() -> String {
    let mut text = String::from(
        "import ctypes, os\n\
         library = ctypes.CDLL(None)\n\
         library.caulk_heap_begin(library.caulk_heap_prepare())\n",
    );
    for (index, (size, count)) in LINES.iter().enumerate() {
        let content = size - HEAD;
        let _ = writeln!(text, "kept_{index} = [None] * {count}");
        let _ = writeln!(text, "for at in range({count}): kept_{index}[at] = bytes({content})");
    }
    text + "library.caulk_heap_snapshot(1)\nos._exit(0)\n"
}

/// Estimates of every run, by line.
fn measure() -> Vec<Vec<Estimate>> {
    let (_folder, path) = written("exact.py", &text());
    let python = pythons().remove(0);
    let mut lines = vec![Vec::new(); LINES.len()];
    for _ in 0..runs() {
        let found = estimates(&python, &path);
        for ((line, (live, deviation)), (size, count)) in lines.iter_mut().zip(found).zip(LINES) {
            line.push(Estimate { exact: (size * count) as f64, live, deviation });
        }
    }
    lines
}

/// One run: bytes and their standard deviation, by line.
fn estimates(python: &Path, path: &Path) -> Vec<(f64, f64)> {
    let run = run(Command::new(python).arg(path));
    let profile = run.first();
    profile.is_sound();
    let known = profile.lines(path);
    let of_line = |index: usize| {
        let number = 5 + 2 * index as u32;
        let totals = known.iter().filter(|(_, line, _)| *line == number).map(|(.., total)| total);
        let (bytes, deviation) = totals.fold((0.0, 0.0_f64), |(bytes, deviation), total| {
            (bytes + total.bytes as f64, deviation.hypot(total.deviation() as f64))
        });
        (bytes, deviation)
    };
    (0..LINES.len()).map(of_line).collect()
}

#[expect(clippy::print_stdout, reason = "the result of the benchmark")]
fn show(lines: &[Vec<Estimate>]) {
    println!("bytes per block   blocks   exact MB   mean MB   off   within the interval");
    for ((size, count), line) in LINES.iter().zip(lines) {
        let exact = (size * count) as f64;
        let off = bias(line).0 / line.len() as f64;
        let (shown, inside) = within(line);
        let (exact_mb, mean_mb, percent) = (exact / 1e6, (exact + off) / 1e6, off / exact * 100.0);
        println!("{size:15} {count:8} {exact_mb:10.2} {mean_mb:9.2} {percent:+5.1} % {inside:3} of {shown}");
    }
}

#[expect(clippy::print_stdout, reason = "the result of the benchmark")]
fn sum_up(what: &str, estimates: &[Estimate]) {
    let (shown, inside) = within(estimates);
    let (off, chance) = bias(estimates);
    let exact: f64 = estimates.iter().map(|estimate| estimate.exact).sum();
    let (percent, chance_percent) = (off / exact * 100.0, chance / exact * 100.0);
    let share = inside as f64 / shown.max(1) as f64 * 100.0;
    println!(
        "{what}: {percent:+.2} % off, of which +-{chance_percent:.2} % are chance; {inside} of {shown} within their \
         intervals ({share:.1} %)"
    );
}

#[test]
fn lines_are_estimated_without_bias_and_within_their_intervals() {
    let lines = measure();
    show(&lines);
    let all = lines.concat();
    sum_up("all lines", &all);
    are_as_sure_as_they_say(&all);
    for line in lines.iter().skip(LINES.len() - 2) {
        let worst = line.iter().map(|run| (run.live / run.exact - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst < 0.001, "blocks far above the interval are exact: {worst}");
    }
}

/// `mallinfo2` counts what the program asked for, and what the program knows of malloc's heads and rounding.
#[test]
fn the_total_is_what_the_allocator_counts() {
    let total = || {
        let run = run(Command::new(compiled()).arg("keep"));
        let profile = run.first();
        let exact = run.output.trim().parse().expect("the program prints what mallinfo2 says");
        let mut all = Total::default();
        for total in profile.slot().totals() {
            all.bytes += total.bytes;
            all.variance += total.variance;
        }
        Estimate { exact, live: all.bytes as f64, deviation: all.deviation() as f64 }
    };
    let totals: Vec<_> = (0..runs()).map(|_| total()).collect();
    sum_up("the total", &totals);
    are_as_sure_as_they_say(&totals);
}

#[test]
fn intervals_may_miss_as_often_as_chance_has_it() {
    assert_eq!([0, 1, 3, 30, 540].map(most_misses), [0, 1, 3, 7, 48]);
}
