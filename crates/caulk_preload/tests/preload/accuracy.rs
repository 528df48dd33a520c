//! Estimates against exact counting: no bias, and the truth within the interval that is shown as often as it says.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

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

/// What one line was estimated to hold, over all runs.
#[derive(Default)]
struct Line {
    exact: f64,
    /// Estimates and their standard deviations, in bytes.
    estimates: Vec<(f64, f64)>,
}

impl Line {
    /// Estimates that would be shown: something was sampled.
    fn shown(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.estimates.iter().filter(|(live, _)| *live > 0.0)
    }

    fn within(&self) -> usize {
        let inside = |(live, deviation): &&(f64, f64)| (live - self.exact).abs() <= SIDE * deviation + 1024.0;
        self.shown().filter(inside).count()
    }

    fn mean(&self) -> f64 {
        self.estimates.iter().map(|(live, _)| live).sum::<f64>() / self.estimates.len() as f64
    }
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

fn measure(runs: usize) -> Vec<Line> {
    let (_folder, path) = written("exact.py", &text());
    let python = pythons().remove(0);
    let mut lines: Vec<Line> = LINES
        .iter()
        .map(|(size, count)| Line { exact: (size * count) as f64, estimates: Vec::new() })
        .collect();
    for _ in 0..runs {
        let found = estimates(&python, &path);
        for (line, estimate) in lines.iter_mut().zip(found) {
            line.estimates.push(estimate);
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
fn show(lines: &[Line]) {
    println!("bytes per block   blocks   exact MB   mean MB   off   within the interval");
    for ((size, count), line) in LINES.iter().zip(lines) {
        let (exact, mean) = (line.exact / 1e6, line.mean() / 1e6);
        let (off, within) = ((mean / exact - 1.0) * 100.0, line.within());
        println!(
            "{size:15} {count:8} {exact:10.2} {mean:9.2} {off:+5.1} % {within:3} of {}",
            line.shown().count()
        );
    }
}

/// `cargo xtask bench heap` asks for more runs, and shows them.
#[test]
fn lines_are_estimated_without_bias_and_within_their_intervals() {
    let runs = std::env::var("CAULK_ACCURACY_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(3);
    let lines = measure(runs);
    show(&lines);
    let all: usize = lines.iter().map(|line| line.shown().count()).sum();
    let within: usize = lines.iter().map(Line::within).sum();
    // Four standard deviations of a binomial distribution below 95 %.
    let least = 0.95 * all as f64 - 4.0 * (0.95 * 0.05 * all as f64).sqrt();
    assert!(within as f64 >= least, "{within} of {all} estimates within their intervals");
    let (mut off, mut variance) = (0.0, 0.0);
    for line in &lines {
        for (live, deviation) in &line.estimates {
            off += live - line.exact;
            variance += deviation * deviation;
        }
    }
    assert!(off.abs() <= 4.0 * variance.sqrt(), "{off} bytes off, of which {} are chance", variance.sqrt());
    for line in lines.iter().skip(LINES.len() - 2) {
        let worst =
            line.estimates.iter().map(|(live, _)| (live / line.exact - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst < 0.001, "blocks far above the interval are exact: {worst}");
    }
}

/// `mallinfo2` counts what the program asked for, and the heads of blocks.
#[test]
fn the_total_is_what_the_allocator_counts() {
    let run = run(Command::new(compiled()).arg("keep"));
    let counted: f64 = run.output.trim().parse().expect("the program prints what mallinfo2 says");
    let totals = run.first().slot().totals();
    let live: f64 = totals.iter().map(|total| total.bytes as f64).sum();
    let deviation = totals.iter().map(|total| total.variance as f64).sum::<f64>().sqrt() * 1024.0;
    let error = (live - counted).abs();
    assert!(error <= 4.0 * deviation + 0.02 * counted, "{live} of {counted}, {deviation}");
}
