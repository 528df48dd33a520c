//! When a program comes near to a limit of its memory: then it is asked once more what it holds, while it still can say.

use crate::progress::Room;

/// Part of a limit that is left when a program is near to it ...
const NEAR: f64 = 0.15;
/// ... or what it fills within so many seconds, at the pace of the last ones.
const SOON: f64 = 5.0;
/// Time over which the pace is taken, in nanoseconds.
const PACE_NS: u64 = 2_000_000_000;

/// One limit, and how the room below it has shrunk.
#[derive(Debug, Clone, Copy)]
struct Left {
    limit: u64,
    /// The room and the time when the pace was last taken.
    before: (u64, u64),
    /// Bytes per second by which the room shrinks.
    pace: f64,
    /// The room when it was last found to be near.
    asked: Option<u64>,
}

/// Watches the room below each limit.
#[derive(Debug, Default)]
pub(crate) struct Approach(Vec<Left>);

impl Approach {
    /// Takes in the room below each limit; is one of them near, and nearer by half than when that was said last?
    pub(crate) fn take(&mut self, rooms: &[Room], now_ns: u64) -> bool {
        self.0.resize(rooms.len(), Left { limit: 0, before: (0, now_ns), pace: 0.0, asked: None });
        let lefts = self.0.iter_mut().zip(rooms);
        lefts.fold(false, |near, (left, room)| left.take(*room, now_ns) || near)
    }
}

impl Left {
    fn take(&mut self, room: Room, now_ns: u64) -> bool {
        let now = room.limit.saturating_sub(room.used);
        if self.limit != room.limit {
            *self = Self { limit: room.limit, before: (now, now_ns), pace: 0.0, asked: None };
        }
        let (before, since) = self.before;
        let passed = now_ns.saturating_sub(since);
        if passed >= PACE_NS {
            self.pace = before.saturating_sub(now) as f64 / (passed as f64 / 1e9);
            self.before = (now, now_ns);
        }
        let near = (NEAR * room.limit as f64).max(SOON * self.pace);
        if now as f64 > 2.0 * near {
            self.asked = None;
        }
        let is_nearer = self.asked.is_none_or(|asked| asked > 0 && now <= asked / 2);
        let is_due = now as f64 <= near && is_nearer;
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes in use at four looks a second; the looks at which the limit of 1000 is found to be near.
    fn near(used: impl IntoIterator<Item = u64>) -> Vec<usize> {
        let mut approach = Approach::default();
        let looks = used.into_iter().enumerate();
        let due = looks.filter(|(look, used)| {
            approach.take(&[Room { used: *used, limit: 1000 }], *look as u64 * 250_000_000)
        });
        due.map(|(look, _)| look).collect()
    }

    #[test]
    fn a_program_is_asked_as_the_room_is_halved() {
        assert_eq!(near((0..=1000).step_by(5)), [170, 185, 193, 197, 199, 200]);
    }

    #[test]
    fn one_that_grows_fast_is_asked_earlier() {
        let looks = near((0..=1000).step_by(50));
        assert!(looks.first().is_some_and(|first| *first < 12), "{looks:?}");
    }

    #[test]
    fn a_level_that_stays_is_asked_about_once_and_again_when_it_comes_back() {
        assert_eq!(near([900; 50]), [0]);
        assert_eq!(near([2000; 50]), [0], "beyond a budget");
        assert_eq!(near([900, 900, 100, 100, 900, 900]), [0, 4]);
        assert!(near([500; 50]).is_empty());
    }
}
