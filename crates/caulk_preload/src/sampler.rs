//! Which blocks are noted, and what is noted of them.
//!
//! A Poisson process over the bytes that a thread asks for, with a mean of `T` between events: a block of `s` bytes is
//! noted with probability `p = 1 - exp(-s / T)`, and stands for `s / p` bytes (Horvitz-Thompson), whose variance is
//! `s² (1 - p) / p²`. So sums over blocks are unbiased, and blocks well above `T` are exact.

use std::ffi::c_void;

use caulk_wire::heap::INTERVAL;

use crate::live::{self, Record};
use crate::local::{Inside, Local, local};
use crate::maths::{ln, one_minus_exp};
use crate::process::Absent;
use crate::slot::Segment;
use crate::state::active;
use crate::{clock, filter, governor, process, stacks};

/// A countdown that never ends: nothing is sampled.
const NEVER: i64 = i64::MAX / 2;

/// A block was handed out, unless it is null: what was asked for in vain is no allocation.
#[inline]
pub(crate) fn allocated(block: *mut c_void, size: usize) {
    if !block.is_null() && due(size) {
        note(block, size, None);
    }
}

/// Counts bytes; true where they cross the next event.
#[inline]
pub(crate) fn due(size: usize) -> bool {
    let mut own = local();
    // SAFETY: this thread's own; a signal handler in between may cost or save an event.
    let own = unsafe { own.as_mut() };
    own.countdown = own.countdown.wrapping_sub(size as i64);
    own.countdown < 0
}

/// A block is about to be given back.
#[cold]
pub(crate) fn freed(block: *mut c_void) {
    if let Some(record) = take(block)
        && let Some(segment) = active()
    {
        segment.give_back(&record);
    }
}

/// Takes the record of a block that may move.
#[cold]
pub(crate) fn take(block: *mut c_void) -> Option<Record> {
    governor::counted(|| {
        let record = live::remove(block as usize)?;
        filter::leave(block as usize);
        Some(record)
    })
}

/// `realloc` is a free and an allocation; who asked for the block first stays to blame.
#[inline]
pub(crate) fn moved(old: *mut c_void, new: *mut c_void, size: usize, record: Option<Record>) {
    // Nothing comes of nothing asked for, and else of a failure: then the block is where it was.
    let failed = new.is_null() && size > 0;
    let due = !new.is_null() && due(size);
    if due || record.is_some() {
        settle(if failed { old } else { new }, size, record, failed, due);
    }
}

#[cold]
fn settle(block: *mut c_void, size: usize, record: Option<Record>, failed: bool, due: bool) {
    if let Some(record) = record
        && !(failed && keep(block, record))
        && let Some(segment) = active()
    {
        segment.give_back(&record);
    }
    if due {
        note(block, size, record.map(|record| record.stack));
    }
}

fn keep(block: *mut c_void, record: Record) -> bool {
    filter::enter(block as usize);
    let kept = live::insert(block as usize, record);
    if !kept {
        filter::leave(block as usize);
    }
    kept
}

/// Notes a block that an event fell into.
#[cold]
pub(crate) fn note(block: *mut c_void, size: usize, first: Option<u32>) {
    if block.is_null() || size == 0 {
        return pass();
    }
    event(size, first, |record, segment| {
        if live::remove(block as usize).is_some() {
            filter::leave(block as usize);
            segment.stale();
        }
        keep(block, record)
    });
}

/// An event of which nothing is noted: the next countdown begins, so that its end does not fall to the next block.
fn pass() {
    let interval = active().map_or(INTERVAL, Segment::interval);
    // SAFETY: this thread's own. In a signal handler it may be in use below: these are numbers, and any will do.
    begin(unsafe { local().as_mut() }, interval);
}

/// An event fell into this many bytes; `keep` notes the sample that stands for them, and says whether there was room.
pub(crate) fn event(size: usize, first: Option<u32>, keep: impl FnOnce(Record, Segment) -> bool) {
    // SAFETY: this thread's own.
    let errno = unsafe { *libc::__errno_location() };
    match Inside::enter() {
        // A signal handler in the middle of a sample.
        None => {
            pass();
            active().into_iter().for_each(Segment::drop_one);
        }
        Some(mut inside) => match process::current() {
            Err(Absent::Off) => inside.local().countdown = NEVER,
            Err(Absent::Soon) => inside.local().countdown = INTERVAL as i64,
            Ok(segment) => {
                if let Some(interval) = hit(inside.local(), segment.interval(), size) {
                    let started = governor::now();
                    clock::look(inside.local(), started);
                    sample(segment, &mut inside, size, interval, first, keep);
                    governor::spent(segment, inside.local(), governor::now().saturating_sub(started), 1);
                }
            }
        },
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Claims a slot, where the process has none yet: what is only given back counts, too.
pub(crate) fn claim() {
    // SAFETY: this thread's own.
    let errno = unsafe { *libc::__errno_location() };
    if Inside::enter().is_some() {
        _ = process::current();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Starts the next countdown, and returns the mean of the one that has ended. The first one of a thread had not begun:
/// it begins with this block.
fn hit(own: &mut Local, interval: u64, size: usize) -> Option<u64> {
    if own.random == 0 {
        begin(own, interval);
        own.countdown = own.countdown.wrapping_sub(size as i64);
        if own.countdown >= 0 {
            return None;
        }
    }
    let ended = own.interval;
    begin(own, interval);
    Some(ended)
}

fn begin(own: &mut Local, interval: u64) {
    own.countdown = next(own, interval);
    own.interval = interval;
}

fn sample(
    segment: Segment,
    inside: &mut Inside,
    size: usize,
    interval: u64,
    first: Option<u32>,
    keep: impl FnOnce(Record, Segment) -> bool,
) {
    let stack = first.unwrap_or_else(|| stacks::charged(segment, inside.local()));
    let record = record(size, interval, stack, uniform(inside.local()));
    if keep(record, segment) {
        segment.take(&record);
    } else {
        segment.drop_one();
    }
    governor::keep_room(segment);
}

/// `chance` rounds the number of blocks up or down, which leaves sums unbiased.
fn record(size: usize, interval: u64, stack: u32, chance: f64) -> Record {
    let (size, interval) = (size as f64, interval as f64);
    let probability = one_minus_exp(size / interval);
    let kib = size / 1024.0;
    Record {
        weight: (size / probability) as u64,
        blocks: (1.0 / probability + chance).min(f64::from(u32::MAX)) as u32,
        stack,
        variance: (kib * kib * (1.0 - probability) / (probability * probability)) as u64,
    }
}

/// Bytes until the next event: exponentially distributed.
fn next(own: &mut Local, interval: u64) -> i64 {
    if own.random == 0 {
        // Different in every thread and run.
        own.random = (std::ptr::from_mut(own) as u64 ^ governor::now().rotate_left(32)) | 1;
    }
    (-ln(uniform(own)) * interval as f64) as i64
}

/// A number between 0 and 1, neither of them.
fn uniform(own: &mut Local) -> f64 {
    // xorshift64*: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
    own.random ^= own.random >> 12;
    own.random ^= own.random << 25;
    own.random ^= own.random >> 27;
    let bits = own.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
    (bits as f64 + 0.5) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_as_far_apart_as_asked() {
        let mut own = Local { random: 12345, ..Local::default() };
        let drawn: Vec<f64> = (0..200_000).map(|_| next(&mut own, 1 << 19) as f64).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let spread = (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64).sqrt();
        let wanted = f64::from(1 << 19);
        assert!((mean / wanted - 1.0).abs() < 0.01, "{mean}");
        assert!((spread / wanted - 1.0).abs() < 0.01, "{spread}");
    }

    /// Thirty runs in which a thread asks for so many blocks: how far the mean of the estimates is off, in its standard
    /// errors, and how far the mean of the variances is off that of the estimates.
    fn bias(size: usize, blocks: usize) -> (f64, f64) {
        let mut own = Local { random: 987_654_321, ..Local::default() };
        begin(&mut own, INTERVAL);
        let (mut bytes, mut counts, mut variances) = (Vec::new(), 0.0, 0.0);
        for _ in 0..30 {
            let mut sum = 0.0;
            for _ in 0..blocks {
                own.countdown -= size as i64;
                if own.countdown < 0 {
                    let interval = hit(&mut own, INTERVAL, size).expect("a countdown has ended");
                    let record = record(size, interval, 0, uniform(&mut own));
                    sum += record.weight as f64;
                    counts += f64::from(record.blocks) / 30.0;
                    variances += record.variance as f64 * 1024.0 * 1024.0 / 30.0;
                }
            }
            bytes.push(sum);
        }
        let exact = (size * blocks) as f64;
        let mean = bytes.iter().sum::<f64>() / 30.0;
        let error = (variances / 30.0).sqrt().max(1.0);
        assert!((counts / blocks as f64 - 1.0).abs() < 0.05, "{counts} of {blocks} blocks of {size}");
        let spread = bytes.iter().map(|sum| (sum - exact).powi(2)).sum::<f64>() / 30.0;
        ((mean - exact) / error, (spread / variances.max(1.0)).sqrt())
    }

    #[test]
    fn sums_are_unbiased_and_as_sure_as_their_variance_says() {
        for (size, blocks) in
            [(64, 1_000_000), (2000, 40_000), (100_000, 3000), (524_288, 2000), (1_000_000, 2000)]
        {
            let (off, spread) = bias(size, blocks);
            assert!(off.abs() < 3.0, "blocks of {size}: {off} standard errors off");
            assert!((0.6..1.5).contains(&spread), "blocks of {size}: {spread} of what their variance says");
        }
        let (off, _) = bias(30_000_000, 10);
        assert!(off.abs() < 1.0, "far above the interval they are exact");
    }
}
