//! Random series of known kinds: sound programs and leaks, in bytes at the ends of epochs.

use caulk_growth::Point;

const MB: f64 = 1_048_576.0;

/// `SplitMix64`: seeded, so that a rate can be measured again.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `[low, high)`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Log-uniform in `[low, high)`.
    pub(crate) fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// Standard normal.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// A kind of series.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) leak: bool,
    pub(crate) make: fn(usize, &mut Random) -> Vec<Point>,
}

pub(crate) const KINDS: &[Kind] = &[
    Kind { name: "linear", leak: true, make: linear },
    Kind { name: "linear, 20 % noise", leak: true, make: |n, r| noisy_linear(n, r, 0.2) },
    Kind { name: "linear, 50 % noise", leak: true, make: |n, r| noisy_linear(n, r, 0.5) },
    Kind { name: "linear, uneven rate", leak: true, make: uneven },
    Kind { name: "a few more per epoch, by chance", leak: true, make: by_chance },
    Kind { name: "linear after a warm-up", leak: true, make: linear_after_warmup },
    Kind { name: "linear after an eighth of the run", leak: true, make: late_linear },
    Kind { name: "a step every other epoch", leak: true, make: every_other },
    Kind { name: "leak under a saw-tooth", leak: true, make: leak_under_sawtooth },
    Kind { name: "still", leak: false, make: |n, r| noise(n, r, 0.05) },
    Kind { name: "noise", leak: false, make: |n, r| noise(n, r, 5.0) },
    Kind { name: "AR(1) noise, 0.5", leak: false, make: |n, r| autoregressive(n, r, 0.5) },
    Kind { name: "AR(1) noise, 0.8", leak: false, make: |n, r| autoregressive(n, r, 0.8) },
    Kind { name: "AR(1) noise, 0.95", leak: false, make: |n, r| autoregressive(n, r, 0.95) },
    Kind { name: "cache filling exponentially", leak: false, make: |n, r| saturating(n, r, 0.1) },
    Kind { name: "the same, noisier", leak: false, make: |n, r| saturating(n, r, 1.0) },
    Kind { name: "cache of random keys", leak: false, make: random_keys },
    Kind { name: "buffer that fills", leak: false, make: buffer },
    Kind { name: "one or two steps", leak: false, make: steps },
    Kind { name: "collector's saw-tooth", leak: false, make: sawtooth },
    Kind { name: "validation every few epochs", leak: false, make: periodic },
];

/// Kinds of exact readings: next to no noise, and what grows are some hundred kilobytes per epoch.
pub(crate) const EXACT_KINDS: &[Kind] = &[
    Kind { name: "200 to 1000 KB per epoch", leak: true, make: |n, r| small_leak(n, r, 0.0, 0.0) },
    Kind { name: "the same beside a warm-up", leak: true, make: |n, r| small_leak(n, r, 60.0, 0.0) },
    Kind { name: "the same, uneven", leak: true, make: |n, r| small_leak(n, r, 0.0, 0.3) },
    Kind { name: "still", leak: false, make: |n, r| small(n, r, |n, r| noise(n, r, 0.3)) },
    Kind { name: "up to 60 KB per epoch", leak: false, make: beneath },
    Kind {
        name: "cache filling exponentially",
        leak: false,
        make: |n, r| small(n, r, |n, r| saturating(n, r, 0.05)),
    },
    Kind { name: "cache of random keys", leak: false, make: |n, r| small(n, r, random_keys) },
    Kind { name: "buffer that fills", leak: false, make: |n, r| small(n, r, buffer) },
    Kind { name: "one or two steps", leak: false, make: |n, r| small(n, r, steps) },
    Kind { name: "collector's saw-tooth", leak: false, make: |n, r| small(n, r, sawtooth) },
    Kind { name: "validation every few epochs", leak: false, make: |n, r| small(n, r, periodic) },
    Kind { name: "batches of any size", leak: false, make: |n, r| small(n, r, |n, r| noise(n, r, 20.0)) },
    Kind { name: "AR(1), 0.8", leak: false, make: |n, r| small(n, r, |n, r| autoregressive(n, r, 0.8)) },
    Kind { name: "AR(1), 0.95", leak: false, make: |n, r| small(n, r, |n, r| autoregressive(n, r, 0.95)) },
];

/// A fiftieth of another kind's movement.
fn small(length: usize, random: &mut Random, make: fn(usize, &mut Random) -> Vec<Point>) -> Vec<Point> {
    let base = 600.0 * MB;
    let shrunk = |point: Point| Point { value: base + (point.value - base) / 50.0, ..point };
    make(length, random).into_iter().map(shrunk).collect()
}

/// A steady leak beside a warm-up of the first epochs, its rate uneven by a part of itself.
fn small_leak(length: usize, random: &mut Random, warmup: f64, uneven: f64) -> Vec<Point> {
    let (rate, mut sum) = (random.scale(0.2, 1.0), 0.0);
    series(length, |i| {
        if i > 0 {
            sum += rate * (1.0 + uneven * random.normal()) + warmup / 1024.0 * (-(i as f64) / 1.5).exp();
        }
        sum + 0.003 * random.normal()
    })
}

/// What sound programs gain: entries of a history, and names and caches of an interpreter that gets to know a program.
fn beneath(length: usize, random: &mut Random) -> Vec<Point> {
    let (rate, first, constant) =
        (random.between(0.0, 0.06), random.scale(0.1, 5.0), random.between(0.5, 2.0));
    series(length, |i| {
        rate * i as f64 + first * (1.0 - (-(i as f64) / constant).exp()) + 0.02 * random.normal()
    })
}

fn series(length: usize, value: impl FnMut(usize) -> f64) -> Vec<Point> {
    (0..length)
        .map(value)
        .enumerate()
        .map(|(at, mb)| Point { at: at as f64, value: (600.0 + mb) * MB })
        .collect()
}

fn linear(length: usize, random: &mut Random) -> Vec<Point> {
    let rate = random.scale(1.0, 100.0);
    series(length, |i| rate * i as f64 + 0.05 * random.normal())
}

fn noisy_linear(length: usize, random: &mut Random, noise: f64) -> Vec<Point> {
    let rate = random.scale(1.0, 100.0);
    series(length, |i| rate * (i as f64 + noise * random.normal()))
}

fn uneven(length: usize, random: &mut Random) -> Vec<Point> {
    let rate = random.scale(1.0, 100.0);
    let mut sum = 0.0;
    series(length, |_| {
        sum += rate * random.between(0.5, 1.5);
        sum
    })
}

/// Each of 24 samples is kept with the same chance.
fn by_chance(length: usize, random: &mut Random) -> Vec<Point> {
    let (size, chance) = (random.scale(0.5, 5.0), random.between(0.1, 0.6));
    let mut kept = 0;
    series(length, |_| {
        kept += (0..24).filter(|_| random.unit() < chance).count();
        size * kept as f64
    })
}

fn linear_after_warmup(length: usize, random: &mut Random) -> Vec<Point> {
    let (rate, jump) = (random.scale(1.0, 100.0), random.scale(5.0, 300.0));
    series(length, |i| rate * i as f64 + if i > 0 { jump } else { 0.0 } + 0.05 * random.normal())
}

fn late_linear(length: usize, random: &mut Random) -> Vec<Point> {
    let (rate, start) = (random.scale(1.0, 100.0), length.div_ceil(8));
    series(length, |i| rate * i.saturating_sub(start) as f64 + 0.05 * random.normal())
}

fn every_other(length: usize, random: &mut Random) -> Vec<Point> {
    let (rate, phase) = (random.scale(2.0, 100.0), usize::from(random.unit() < 0.5));
    series(length, |i| rate * (i + phase).div_euclid(2) as f64 + 0.05 * random.normal())
}

fn leak_under_sawtooth(length: usize, random: &mut Random) -> Vec<Point> {
    let (rate, height) = (random.scale(5.0, 50.0), random.between(0.5, 1.5));
    series(length, |i| rate * (i as f64 + height * (i % 3) as f64) + 0.05 * random.normal())
}

fn noise(length: usize, random: &mut Random, size: f64) -> Vec<Point> {
    series(length, |_| size * random.normal())
}

fn autoregressive(length: usize, random: &mut Random, memory: f64) -> Vec<Point> {
    let size = random.scale(1.0, 30.0);
    let mut state = random.normal();
    series(length, |_| {
        state = memory * state + (1.0 - memory * memory).sqrt() * random.normal();
        size * state
    })
}

/// Fills with a time constant of a tenth to a half of the run.
fn saturating(length: usize, random: &mut Random, noise: f64) -> Vec<Point> {
    let (size, constant) = (random.scale(20.0, 500.0), length as f64 * random.between(0.1, 0.5));
    series(length, |i| size * (1.0 - (-(i as f64) / constant).exp()) + noise * random.normal())
}

/// Every epoch draws as many of the keys as there are, or a part.
fn random_keys(length: usize, random: &mut Random) -> Vec<Point> {
    let (keys, share) = (400, random.between(0.3, 1.5));
    let mut seen = vec![false; keys];
    series(length, |_| {
        for _ in 0..(keys as f64 * share) as usize {
            seen[(random.unit() * keys as f64) as usize] = true;
        }
        0.25 * seen.iter().filter(|seen| **seen).count() as f64
    })
}

/// Grows steadily for half of the run or less, then not at all.
fn buffer(length: usize, random: &mut Random) -> Vec<Point> {
    let (rate, capacity) = (random.scale(1.0, 50.0), length as f64 * random.between(0.15, 0.55));
    series(length, |i| rate * (i as f64).min(capacity) + 0.05 * random.normal())
}

fn steps(length: usize, random: &mut Random) -> Vec<Point> {
    let mut step = || ((random.unit() * length as f64) as usize, random.scale(2.0, 200.0));
    let (first, second) = (step(), step());
    let at = |i: usize, (when, size): (usize, f64)| if i > when { size } else { 0.0 };
    series(length, |i| at(i, first) + at(i, second) + 0.05 * random.normal())
}

/// Garbage that a collection frees every two or three epochs.
fn sawtooth(length: usize, random: &mut Random) -> Vec<Point> {
    let (rate, period, phase) = (random.scale(1.0, 50.0), random.between(1.8, 3.4), random.between(0.0, 3.0));
    series(length, |i| rate * ((i as f64 + phase) % period) + 0.2 * random.normal())
}

fn periodic(length: usize, random: &mut Random) -> Vec<Point> {
    let (size, period) = (random.scale(5.0, 100.0), 2 + (random.unit() * 3.0) as usize);
    series(length, |i| if i % period == period - 1 { size } else { 0.0 } + 0.2 * random.normal())
}
