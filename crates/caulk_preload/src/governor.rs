//! What sampling may cost: where it takes more than its share of the process's time, or of the room for blocks that live,
//! samples become rarer.

use crate::environment::beginning;
use crate::live;
use crate::local::{Local, local};
use crate::slot::Segment;
use crate::state::active;

/// Share of the process's CPU time.
const SHARE: f64 = 0.01;
/// Samples of one thread, and what is done for them later, between two looks at the clock of the process, which takes a system call.
const LOOK: u32 = 64;
/// Cost below which nothing is done, in nanoseconds: a process that has just begun has no time to share.
const CREDIT: u64 = 20_000_000;
/// What is taken out at a free or an unmapping is timed once in so many times, and counts for all of them: to read the clock
/// takes as long as most of it does.
const TIMED: u32 = 16;
/// Longest time that one sample is taken to cost, in nanoseconds: beyond that the thread was waiting for a core.
const LONGEST_SAMPLE: u64 = 20_000;
/// For want of room the interval becomes so many times what it was at most: large blocks are sampled each, however long
/// it is.
pub(crate) const RAREST: u64 = 8;
/// Longest mean interval, in bytes.
const LONGEST: u64 = 64 << 20;

/// Nanoseconds since the machine started.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a valid place for its answer.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Does what is done beside samples, on account of them, and counts its time. Where nothing is sampled, it asks for no time:
/// a function that a sanitizer stands in for is not there before that has begun.
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> T {
    let Some(segment) = active() else { return work() };
    // SAFETY: this thread's own; a signal handler in between may cost a count.
    let own = unsafe { local().as_mut() };
    own.untimed += 1;
    if own.untimed < TIMED {
        return work();
    }
    own.untimed = 0;
    let started = now();
    let done = work();
    // SAFETY: as above; what was borrowed before is used no more.
    let own = unsafe { local().as_mut() };
    spent(segment, own, now().saturating_sub(started), TIMED);
    done
}

/// So many samples have cost this much each.
pub(crate) fn spent(segment: Segment, own: &mut Local, nanoseconds: u64, samples: u32) {
    let cost = segment.spend(nanoseconds.min(LONGEST_SAMPLE) * u64::from(samples));
    own.since_look = own.since_look.saturating_add(samples);
    if own.since_look < LOOK || cost < CREDIT {
        return;
    }
    own.since_look = 0;
    let share = cost as f64 / read(libc::CLOCK_PROCESS_CPUTIME_ID).max(1) as f64;
    if share > SHARE {
        make_rarer(segment);
    }
}

/// A block was noted that lives: there must be room for those that follow, whatever the program comes to hold.
pub(crate) fn keep_room(segment: Segment) {
    let (first, interval) = (beginning(), segment.interval());
    if interval < RAREST * first && live::is_short_of_room(first, interval) {
        make_rarer(segment);
    }
}

/// For good: what was once too much may come again.
fn make_rarer(segment: Segment) {
    let interval = segment.interval();
    if interval < LONGEST {
        segment.set_interval(interval * 2);
    }
}
