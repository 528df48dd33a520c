//! When a program has loaded: until then its memory rises whatever it does.
//!
//! Code that is loaded is mapped from files, so the pages that a process shares with others rise with each module. A program
//! that works maps no more files.

use std::collections::BTreeMap;

use caulk_core::Recording;

/// Shared memory stands still for so long once a program has loaded, in nanoseconds.
const STILL_NS: u64 = 4_000_000_000;
/// Rise of shared memory that counts, in bytes: a module in C takes a few pages at least.
const RISE: u64 = 16 << 10;
/// No program loads for longer than this, in nanoseconds: it reads files that it has mapped.
const LONGEST_NS: u64 = 120_000_000_000;

/// The look at which the largest process had loaded what it starts with; `None` where it was not looked at.
pub(crate) fn until(recording: &Recording) -> Option<u64> {
    let mut largest: BTreeMap<u32, u64> = BTreeMap::new();
    for sample in &recording.samples {
        let most = largest.entry(sample.pid).or_default();
        *most = (*most).max(sample.rss_bytes);
    }
    let (pid, _) = largest.into_iter().max_by_key(|(_, most)| *most)?;
    let looks = recording.samples.iter().filter(|sample| sample.pid == pid);
    loaded(looks.map(|sample| (sample.time_ns, sample.shared_bytes)))
}

fn loaded(mut looks: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    let (first_ns, mut level) = looks.next()?;
    let mut risen_ns = first_ns;
    for (time_ns, shared) in looks {
        if time_ns - risen_ns > STILL_NS {
            break;
        }
        if shared > level + RISE {
            (level, risen_ns) = (shared, time_ns);
        }
    }
    (risen_ns - first_ns <= LONGEST_NS).then_some(risen_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shared kilobytes, a look each second: the second at which it has loaded.
    fn check(shared: impl IntoIterator<Item = u64>, expected: Option<u64>) {
        let looks = (0..).zip(shared).map(|(second, shared)| (second * 1_000_000_000, shared << 10));
        assert_eq!(loaded(looks), expected.map(|second| second * 1_000_000_000));
    }

    #[test]
    fn a_program_has_loaded_once_its_shared_pages_stand_still() {
        check([3_000, 60_000, 180_000, 180_000, 180_000, 180_000, 180_000], Some(2));
        check([3_000; 10], Some(0));
        check([], None);
    }

    #[test]
    fn a_slow_machine_loads_for_long() {
        check((0..25).map(|second| 200_000 + second * 70), Some(24));
        // What is loaded while it works is no part of it.
        check((0..40).map(|second| if second > 30 { 90_000 + second * 100 } else { 90_000 }), Some(0));
    }

    #[test]
    fn one_that_maps_ever_more_files_is_not_loading() {
        check((0..200).map(|second| second * 1_000), None);
    }
}
