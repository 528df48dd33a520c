//! The step at which all ranks of a distributed job act together.
//!
//! Saving a sharded model is a joint operation: a rank that begins it a step earlier than the others waits for ever. So
//! every rank is asked for its step, a step a little ahead of all is named, each stops there, and when the last has
//! arrived all go on at once. Where one was past that step already, nobody acts, and a step further ahead is tried.

use std::collections::BTreeMap;

/// Steps ahead of the furthest rank, at the first attempt; four times as many at each further one.
const AHEAD: u64 = 2;

/// Attempts before it is given up.
const MOST_ATTEMPTS: u32 = 4;

/// What to tell all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Stop at this step and say so, or say that you are past it.
    StopAt(u64),
    /// All are there: act.
    Go,
    /// Go on without acting: it cannot be agreed on.
    Cancel,
}

/// Where the ranks are, by process.
#[derive(Debug, Clone, Default)]
pub struct Agreement {
    /// Ranks and the steps that they have told.
    at: BTreeMap<u32, Option<u64>>,
    /// The step that was named.
    named: Option<u64>,
    arrived: Vec<u32>,
    attempts: u32,
}

impl Agreement {
    /// Begins to agree among these processes, each of which is to be asked for its step.
    pub fn among(ranks: impl IntoIterator<Item = u32>) -> Self {
        Self { at: ranks.into_iter().map(|pid| (pid, None)).collect(), ..Self::default() }
    }

    /// The processes that agree.
    pub fn ranks(&self) -> impl Iterator<Item = u32> {
        self.at.keys().copied()
    }

    /// A rank says at which step it is, having been asked, or being past the step that was named.
    pub fn is_at(&mut self, pid: u32, step: u64) -> Option<Move> {
        let known = self.at.get_mut(&pid)?;
        *known = Some(known.map_or(step, |before| before.max(step)));
        if self.named.is_some_and(|named| step <= named) {
            return None;
        }
        self.name_a_step()
    }

    /// A rank has stopped at the step that was named.
    pub fn has_arrived(&mut self, pid: u32) -> Option<Move> {
        if self.at.contains_key(&pid) && !self.arrived.contains(&pid) {
            self.arrived.push(pid);
        }
        (self.named.is_some() && self.arrived.len() == self.at.len()).then_some(Move::Go)
    }

    fn name_a_step(&mut self) -> Option<Move> {
        let furthest = self.at.values().copied().collect::<Option<Vec<u64>>>()?.into_iter().max()?;
        if self.attempts >= MOST_ATTEMPTS {
            return Some(Move::Cancel);
        }
        let step = furthest + AHEAD * 4_u64.pow(self.attempts);
        self.attempts += 1;
        self.named = Some(step);
        self.arrived.clear();
        Some(Move::StopAt(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_act_at_a_step_ahead_of_the_furthest() {
        let mut all = Agreement::among([7, 8]);
        assert_eq!(all.is_at(7, 40), None);
        assert_eq!(all.is_at(8, 41), Some(Move::StopAt(43)));
        assert_eq!(all.has_arrived(8), None);
        assert_eq!(all.has_arrived(8), None);
        assert_eq!(all.has_arrived(7), Some(Move::Go));
    }

    #[test]
    fn a_rank_that_was_past_it_moves_the_step_ahead() {
        let mut all = Agreement::among([7, 8]);
        all.is_at(7, 40);
        all.is_at(8, 41);
        assert_eq!(all.has_arrived(7), None);
        assert_eq!(all.is_at(8, 50), Some(Move::StopAt(58)));
        assert_eq!(all.has_arrived(8), None);
        assert_eq!(all.has_arrived(7), Some(Move::Go));
    }

    #[test]
    fn nobody_acts_where_it_cannot_be_agreed_on() {
        let mut all = Agreement::among([7]);
        let moves: Vec<_> = [0, 100, 200, 300, 1000].map(|step| all.is_at(7, step)).into();
        assert_eq!(moves.last(), Some(&Some(Move::Cancel)));
        assert_eq!(all.is_at(99, 5), None);
        assert_eq!(all.has_arrived(99), None);
    }
}
