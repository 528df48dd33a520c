//! What the heap profiles lack: a line for the report each, where it is more than chance.

use std::fs::File;
use std::os::unix::fs::FileExt;

use caulk_core::Bytes;
use caulk_core::wire::heap::{
    HANDED_DOWN, HEADER_BYTES, MAGIC, MAX_STACKS, OTHERS, SLOTS, Slot, TOTAL_BYTES, TURNED_AWAY, header,
    taken_over,
};

use super::numbers::{long, word};

/// One sample in so many is beside the point.
const CHANCE: u64 = 1000;

/// Sums over all processes.
#[derive(Debug, Default)]
pub(super) struct Losses {
    samples: u64,
    dropped: u64,
    stale: u64,
    mixed: u64,
    /// Bytes that were allocated, by all stacks that were told apart and by the others.
    told_apart: u64,
    others: u64,
    turned_away: u32,
}

impl Losses {
    /// Takes in what a process has counted.
    pub(super) fn count(&mut self, memory: &File, slot: u64) {
        if !long(memory, slot).is_ok_and(|magic| magic == MAGIC) {
            return;
        }
        let stacks = word(memory, slot + header::STACKS as u64).unwrap_or(0) as usize;
        let mut bytes = vec![0; HEADER_BYTES + stacks.min(MAX_STACKS) * TOTAL_BYTES];
        let read = memory.read_exact_at(&mut bytes, slot);
        let Some(slot) = Slot::new(&bytes).filter(|_| read.is_ok()) else { return };
        self.samples += slot.count(header::SAMPLES);
        self.dropped += slot.count(header::DROPPED);
        self.stale += slot.count(header::STALE);
        self.mixed += slot.count(header::MIXED);
        let all: u64 = (0..slot.field(header::STACKS)).map(|id| slot.allocated(id)).sum();
        let others = slot.allocated(OTHERS);
        self.others += others;
        self.told_apart += all.saturating_sub(others);
    }

    /// Takes in how many processes found no slot, and what those had counted whose slots others have taken over.
    pub(super) fn count_the_slotless(&mut self, memory: &File) {
        self.turned_away = word(memory, TURNED_AWAY as u64).unwrap_or(0);
        let all: [&mut u64; HANDED_DOWN.len()] =
            [&mut self.samples, &mut self.dropped, &mut self.stale, &mut self.mixed];
        for (index, sum) in all.into_iter().enumerate() {
            *sum += long(memory, taken_over(index) as u64).unwrap_or(0);
        }
    }

    /// What is to be told.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let all = self.samples + self.dropped;
        let matters = |part: u64, all: u64| part > 0 && part >= all / CHANCE;
        if matters(self.dropped, all) {
            lines.push(format!(
                "{} of {all} samples of the heap had to be left out: lines hold more than is shown",
                self.dropped
            ));
        }
        if matters(self.others, self.told_apart + self.others) {
            lines.push(format!(
                "{} were allocated by stacks beyond those that are kept of one process: they are in the sums of the heap \
                 profile, at no line",
                Bytes(self.others)
            ));
        }
        if matters(self.stale, all) {
            lines.push(format!(
                "{} sampled blocks were given back unseen and their addresses handed out again: lines may hold less than \
                 is shown",
                self.stale
            ));
        }
        if matters(self.mixed, all) {
            lines.push(format!(
                "{} of {all} samples of the heap were taken in threads of torch's while several threads ran backward: they \
                 count for the line of the pass last begun, which may be another's",
                self.mixed
            ));
        }
        if self.turned_away > 0 {
            let count = self.turned_away;
            let processes = if count == 1 { "1 process has" } else { &format!("{count} processes have") };
            lines.push(format!("{processes} no heap profile: at most {SLOTS} have one at a time"));
        }
        lines
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    fn check(losses: &Losses, expected: &[&str]) {
        assert_eq!(losses.lines(), expected);
    }

    #[test]
    fn what_is_chance_is_not_told() {
        check(&Losses::default(), &[]);
        check(&Losses { samples: 1_000_000, dropped: 3, stale: 9, ..Losses::default() }, &[]);
        check(&Losses { told_apart: 1 << 40, others: 1 << 20, ..Losses::default() }, &[]);
    }

    #[test]
    fn what_was_counted_outlives_the_slot() {
        let memory = tempfile::tempfile().unwrap();
        memory.write_all_at(&[0; HEADER_BYTES], TURNED_AWAY as u64).unwrap();
        for (index, number) in [100_u64, 3, 2, 4].into_iter().enumerate() {
            memory.write_all_at(&number.to_ne_bytes(), taken_over(index) as u64).unwrap();
        }
        let mut losses = Losses { samples: 900, dropped: 5, ..Losses::default() };
        losses.count_the_slotless(&memory);
        assert_eq!((losses.samples, losses.dropped, losses.stale), (1000, 8, 2));
    }

    #[test]
    fn everything_else_has_one_line() {
        let all = Losses {
            samples: 100,
            dropped: 3,
            stale: 2,
            mixed: 4,
            told_apart: 100,
            others: 2 << 20,
            turned_away: 7,
        };
        check(
            &all,
            &[
                "3 of 103 samples of the heap had to be left out: lines hold more than is shown",
                "2.00 MB were allocated by stacks beyond those that are kept of one process: they are in the sums of the \
                 heap profile, at no line",
                "2 sampled blocks were given back unseen and their addresses handed out again: lines may hold less than is \
                 shown",
                "4 of 103 samples of the heap were taken in threads of torch's while several threads ran backward: they count \
                 for the line of the pass last begun, which may be another's",
                "7 processes have no heap profile: at most 64 have one at a time",
            ],
        );
        check(
            &Losses { turned_away: 1, ..Losses::default() },
            &["1 process has no heap profile: at most 64 have one at a time"],
        );
    }
}
