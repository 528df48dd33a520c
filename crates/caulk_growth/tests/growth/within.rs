//! Memory that rises with the steps of each epoch and falls back at its end, and sound programs that seem to do so.

use caulk_growth::{Epoch, Point, judge_within};

use crate::generators::Random;

const MB: f64 = 1_048_576.0;

/// Epochs of so many steps, read at every one of `every`, from what is alive above a baseline at a step of an epoch.
fn epochs(
    count: usize,
    steps: usize,
    every: usize,
    mut alive: impl FnMut(usize, usize) -> f64,
) -> Vec<Epoch> {
    let base = 300.0;
    let epoch = |epoch: usize| {
        let at = (0..=steps).step_by(every);
        let readings =
            at.map(|step| Point { at: step as f64, value: (base + alive(epoch, step)) * MB }).collect();
        Epoch { readings, end: base * MB }
    };
    (0..count).map(epoch).collect()
}

fn grows(epochs: &[Epoch]) -> bool {
    judge_within(epochs, 8.0 * MB).is_some()
}

#[test]
fn a_megabyte_a_step_that_is_freed_at_the_end_shows_from_three_epochs_on() {
    let run = |count| epochs(count, 40, 8, |_, step| step as f64);
    assert!(!grows(&run(2)) && grows(&run(3)) && grows(&run(5)));
    let within = judge_within(&run(5), 8.0 * MB).expect("it rises");
    assert_eq!(within.epochs, 5);
    assert!((within.slope / MB - 1.0).abs() < 1e-9 && (within.rise / MB - 40.0).abs() < 1e-9, "{within:?}");
}

#[test]
fn what_stays_is_not_within_and_what_is_little_does_not_matter() {
    let mut stays = epochs(6, 40, 8, |_, step| step as f64);
    for epoch in &mut stays {
        epoch.end += 38.0 * MB;
    }
    assert!(!grows(&stays));
    assert!(!grows(&epochs(6, 40, 8, |_, step| 0.1 * step as f64)));
}

#[test]
fn what_each_epoch_begins_with_does_not_grow() {
    // Gradients after the first step; a prefetch buffer; a cache that is filled and dropped.
    assert!(!grows(&epochs(6, 40, 4, |_, step| if step > 0 { 60.0 } else { 0.0 })));
    assert!(!grows(&epochs(6, 40, 4, |_, step| (4.0 * step as f64).min(48.0))));
    assert!(!grows(&epochs(6, 40, 4, |_, step| 200.0 * (1.0 - (-(step as f64) / 8.0).exp()))));
}

/// A sound program of a kind: what is alive at a step of an epoch.
type Kind = (&'static str, fn(&mut Random) -> Box<dyn FnMut(usize, usize) -> f64>);

fn seeded(random: &mut Random) -> Random {
    Random::new((random.unit() * 1e15) as u64)
}

const SOUND: &[Kind] = &[
    ("batches of any size", |random| {
        let (size, mut own) = (random.scale(5.0, 300.0), seeded(random));
        Box::new(move |_, _| size * own.unit())
    }),
    ("batches whose sizes drift", |random| {
        let (size, mut state, mut own) = (random.scale(5.0, 100.0), 0.0, seeded(random));
        Box::new(move |_, _| {
            state = 0.9 * state + own.normal();
            size * state
        })
    }),
    ("a warm-up in each epoch, and noise", |random| {
        let (size, constant, mut own) = (random.scale(10.0, 300.0), random.between(0.5, 8.0), seeded(random));
        Box::new(move |_, step| size * (1.0 - (-(step as f64) / constant).exp()) + 0.05 * size * own.normal())
    }),
    ("a cache of the first epochs", |random| {
        let (rate, full) = (random.scale(0.3, 5.0), random.between(20.0, 70.0));
        Box::new(move |epoch, step| rate * ((40 * epoch + step) as f64).min(full))
    }),
    ("collections at any time", |random| {
        let (rate, period, phase) =
            (random.scale(0.5, 5.0), random.between(5.0, 33.0), random.between(0.0, 40.0));
        Box::new(move |epoch, step| rate * (((47 * epoch + step) as f64 + phase) % period))
    }),
];

/// Measured: none of 5,000 over 3 to 12 epochs.
#[test]
fn sound_programs_do_not_seem_to_grow_within_epochs() {
    for (name, make) in SOUND {
        let mut random = Random::new(7);
        let called = (0..200).filter(|at| grows(&epochs(3 + at % 10, 40, 8, make(&mut random)))).count();
        assert!(called <= 2, "{name}: {called} of 200");
    }
}

#[test]
fn leaks_within_epochs_are_called_beside_noise() {
    let mut random = Random::new(11);
    let called = (0..100).filter(|_| {
        let rate = random.scale(0.5, 20.0);
        let run = epochs(5, 40, 5, |_, step| rate * (step as f64 + 1.5 * random.normal()));
        grows(&run)
    });
    let called = called.count();
    assert!(called >= 95, "{called} of 100");
}
