//! What was left out at ends of epochs because it would have cost too much: said at the end, with what would get it.

use std::time::Duration;

/// Ends of epochs below which nothing is said: the run is too short in any case.
const FEW: u32 = 5;
/// Censuses that it takes for a container's growth: three make a candidate, and two more a series.
const ENOUGH: u32 = 5;

/// Counts of ends of epochs.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LeftOut {
    /// All of them.
    pub(super) epochs: u32,
    /// Those with a figure of the bytes in use.
    pub(super) read: u32,
    /// Those with a census.
    pub(super) compared: u32,
    /// Those at which one was due, and could not be paid for.
    pub(super) refused: u32,
}

impl LeftOut {
    /// Says that bytes in use were not read everywhere; `cost` of one reading.
    pub(super) fn readings(self, cost: Duration) -> Option<String> {
        let Self { epochs, read, .. } = self;
        (epochs >= FEW && read < epochs).then(|| {
            format!(
                "bytes in use were read at {read} of {epochs} ends of epochs: malloc takes {} ms to say what it has handed \
                 out of this heap; where the heap sampler is loaded (without `--no-heap`) they are counted at each",
                cost.as_millis()
            )
        })
    }

    /// Says that too few censuses were taken for anything to be named; `cost` of one.
    pub(super) fn censuses(self, cost: Duration) -> Option<String> {
        let Self { epochs, compared, refused, .. } = self;
        (epochs >= FEW && compared < ENOUGH && refused > 0).then(|| {
            format!(
                "what the program holds was compared at {compared} of {epochs} ends of epochs, which is too few to see what \
                 grows: one comparison takes {} ms here, and caulk had no more time to spend; a longer run is compared more \
                 often",
                cost.as_millis()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_its_price() {
        let cost = Duration::from_millis(30);
        let all = LeftOut { epochs: 12, read: 12, compared: 12, refused: 0 };
        assert_eq!((all.readings(cost), all.censuses(cost)), (None, None));
        let some = LeftOut { read: 8, compared: 3, refused: 4, ..all };
        assert!(some.readings(cost).is_some_and(|text| text.contains("8 of 12") && text.contains("30 ms")));
        assert!(some.censuses(cost).is_some_and(|text| text.contains("3 of 12")));
        assert_eq!(LeftOut { compared: 5, ..some }.censuses(cost), None, "enough");
        assert_eq!(LeftOut { epochs: 3, ..some }.readings(cost), None, "a short run");
    }
}
