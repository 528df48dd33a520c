//! The end of a program that is wanted for some epochs alone: TERM when they are over, KILL when that does not help.

use caulk_core::Death;
use caulk_core::wire::{Boundary, Unit};

/// Time that a program has to end by itself, in nanoseconds.
const GRACE_NS: u64 = 10_000_000_000;

/// Ends a program after as many whole epochs as are wanted.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    epochs: Option<u64>,
    kill_ns: Option<u64>,
    ended: bool,
}

impl Stop {
    /// After so many epochs, if that is wanted.
    pub(crate) fn after(epochs: Option<u64>) -> Self {
        Self { epochs, ..Self::default() }
    }

    /// Takes note of a boundary of the training process; true if the program is to be ended now. An epoch's boundary is
    /// where it begins, so the Nth one is over at the boundary with index N.
    pub(crate) fn hear(&mut self, boundary: &Boundary, now_ns: u64) -> bool {
        let over = boundary.unit == Unit::Epoch && self.epochs.is_some_and(|epochs| boundary.index >= epochs);
        if !over || self.ended {
            return false;
        }
        self.ended = true;
        self.kill_ns = Some(now_ns + GRACE_NS);
        true
    }

    /// Whether the program was to end and still runs; true once.
    pub(crate) fn is_overdue(&mut self, now_ns: u64) -> bool {
        self.kill_ns.take_if(|kill_ns| now_ns >= *kill_ns).is_some()
    }

    /// A program that caulk has ended did not fail. One that was killed because there was no memory did.
    pub(crate) fn judge(&self, death: &mut Death) {
        if let Some(epochs) = self.epochs.filter(|_| self.ended && !is_for_memory(death)) {
            death.stopped = true;
            death.kill = None;
            let plural = if epochs == 1 { "" } else { "s" };
            death.text = format!("{epochs} epoch{plural} were over");
        }
    }
}

/// The kernel's count of kills, no guess: a program at its limit that caulk kills looks the same.
fn is_for_memory(death: &Death) -> bool {
    death.kill == Some(caulk_core::Kill::Oom)
}

#[cfg(test)]
mod tests {
    use caulk_core::Kill;

    use super::*;

    fn boundary(unit: Unit, index: u64) -> Boundary {
        Boundary { unit, index, ..Boundary::default() }
    }

    fn death(signal: i32, kill: Option<Kill>) -> Death {
        Death { code: None, signal: Some(signal), kill, text: "ended".into(), stopped: false }
    }

    #[test]
    fn the_epochs_are_whole_ones() {
        let mut stop = Stop::after(Some(2));
        assert!(!stop.hear(&boundary(Unit::Steps, 900), 1));
        assert!(!stop.hear(&boundary(Unit::Epoch, 1), 2));
        assert!(stop.hear(&boundary(Unit::Epoch, 2), 3));
        assert!(!stop.hear(&boundary(Unit::Epoch, 3), 4), "once");
        assert!(!stop.is_overdue(GRACE_NS));
        assert!(stop.is_overdue(3 + GRACE_NS));
        assert!(!stop.is_overdue(4 + GRACE_NS), "once");
    }

    #[test]
    fn without_a_wish_nothing_ends() {
        let mut stop = Stop::after(None);
        assert!(!stop.hear(&boundary(Unit::Epoch, 99), 1));
        let mut end = death(15, None);
        stop.judge(&mut end);
        assert_eq!(end, death(15, None));
    }

    #[test]
    fn an_end_for_want_of_memory_stays_one() {
        let mut stop = Stop::after(Some(1));
        stop.hear(&boundary(Unit::Epoch, 1), 1);
        let judged = |mut death: Death| {
            stop.judge(&mut death);
            (death.stopped, death.kill)
        };
        assert_eq!(judged(death(15, None)), (true, None));
        assert_eq!(judged(death(9, Some(Kill::NotOom))), (true, None));
        assert_eq!(judged(death(9, Some(Kill::Oom))), (false, Some(Kill::Oom)));
    }
}
