//! The end of a program that is wanted for some epochs or some time alone: TERM when they are over, KILL when that does not
//! help.

use caulk_core::Death;
use caulk_core::wire::{Boundary, Unit};

/// Time that a program has to end by itself, in nanoseconds.
const GRACE_NS: u64 = 10_000_000_000;

/// Ends a program after as many whole epochs as are wanted.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    epochs: Option<u64>,
    /// When the time is over.
    until_ns: Option<u64>,
    kill_ns: Option<u64>,
    ended: Option<Reason>,
}

/// Why a program was ended.
#[derive(Debug, Clone, Copy)]
enum Reason {
    Epochs(u64),
    Time,
}

impl Stop {
    /// After so many epochs or at this time, if that is wanted.
    pub(crate) fn after(epochs: Option<u64>, until_ns: Option<u64>) -> Self {
        Self { epochs, until_ns, ..Self::default() }
    }

    /// When to ask again at the latest.
    pub(crate) fn next_ns(&self) -> u64 {
        let until = self.until_ns.filter(|_| self.ended.is_none());
        until.into_iter().chain(self.kill_ns).min().unwrap_or(u64::MAX)
    }

    /// Takes note of a boundary of the training process; true if the program is to be ended now. An epoch's boundary is
    /// where it begins, so the Nth one is over at the boundary with index N.
    pub(crate) fn hear(&mut self, boundary: &Boundary, now_ns: u64) -> bool {
        let wanted = self.epochs.filter(|_| boundary.unit == Unit::Epoch);
        wanted.is_some_and(|epochs| boundary.index >= epochs && self.end(Reason::Epochs(epochs), now_ns))
    }

    /// True if the time is over and the program is to be ended now.
    pub(crate) fn is_late(&mut self, now_ns: u64) -> bool {
        self.until_ns.is_some_and(|until_ns| now_ns >= until_ns) && self.end(Reason::Time, now_ns)
    }

    /// True once.
    fn end(&mut self, reason: Reason, now_ns: u64) -> bool {
        if self.ended.is_some() {
            return false;
        }
        self.ended = Some(reason);
        self.kill_ns = Some(now_ns + GRACE_NS);
        true
    }

    /// Whether the program was to end and still runs; true once.
    pub(crate) fn is_overdue(&mut self, now_ns: u64) -> bool {
        self.kill_ns.take_if(|kill_ns| now_ns >= *kill_ns).is_some()
    }

    /// A program that caulk has ended did not fail. One that was killed because there was no memory did.
    pub(crate) fn judge(&self, death: &mut Death) {
        let Some(reason) = self.ended.filter(|_| !is_for_memory(death)) else { return };
        death.stopped = true;
        death.kill = None;
        death.text = match reason {
            Reason::Epochs(1) => "1 epoch was over".into(),
            Reason::Epochs(epochs) => format!("{epochs} epochs were over"),
            Reason::Time => "the time limit was over".into(),
        };
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
        let mut stop = Stop::after(Some(2), None);
        assert!(!stop.hear(&boundary(Unit::Steps, 900), 1));
        assert!(!stop.hear(&boundary(Unit::Epoch, 1), 2));
        assert!(stop.hear(&boundary(Unit::Epoch, 2), 3));
        assert!(!stop.hear(&boundary(Unit::Epoch, 3), 4), "once");
        assert!(!stop.is_overdue(GRACE_NS));
        assert!(stop.is_overdue(3 + GRACE_NS));
        assert!(!stop.is_overdue(4 + GRACE_NS), "once");
    }

    #[test]
    fn a_time_limit_ends_once() {
        let mut stop = Stop::after(None, Some(100));
        assert_eq!((stop.is_late(99), stop.next_ns()), (false, 100));
        assert!(stop.is_late(100));
        assert!(!stop.is_late(101), "once");
        assert_eq!(stop.next_ns(), 100 + GRACE_NS);
        assert!(stop.is_overdue(100 + GRACE_NS));
        assert_eq!(stop.next_ns(), u64::MAX);
    }

    #[test]
    fn without_a_wish_nothing_ends() {
        let mut stop = Stop::after(None, None);
        assert!(!stop.hear(&boundary(Unit::Epoch, 99), 1));
        let mut end = death(15, None);
        stop.judge(&mut end);
        assert_eq!(end, death(15, None));
    }

    #[test]
    fn an_end_for_want_of_memory_stays_one() {
        let mut stop = Stop::after(Some(1), None);
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
