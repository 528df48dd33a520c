//! A look at what processes hold while they still can say: as memory comes near to a limit, and before a signal that ends them.

use std::thread;
use std::time::Duration;

use caulk_core::Role;

use super::Supervisor;
use crate::clock;

/// A signal that ends the command waits for the look so long at most, in nanoseconds.
const LONGEST_WAIT_NS: u64 = 250_000_000;
/// Time between two looks whether they are done.
const PAUSE: Duration = Duration::from_millis(2);

impl Supervisor<'_> {
    /// Asks for it where memory comes near to a limit.
    pub(super) fn watch_limits(&mut self, now: u64) {
        if self.approach.take(&self.surroundings.last_rooms(), now)
            && let Some(board) = &mut self.board
        {
            board.ask_for_look();
        }
    }

    /// Asks for it and waits for the processes that train, or until that has taken too long. One that is busy in C does not
    /// answer, and one that has ended does not.
    pub(super) fn await_looks(&mut self) {
        let trains = |role| matches!(role, Role::Main | Role::Rank);
        let processes = self.tree.processes.values();
        let asked = processes
            .filter(|process| {
                process.ended_ns.is_none() && process.record.agent && trains(process.record.role)
            })
            .count();
        let Some(board) = self.board.as_mut().filter(|_| asked > 0) else { return };
        board.ask_for_look();
        let until = clock::now_ns() + LONGEST_WAIT_NS;
        while (board.looks_taken() as usize) < asked && clock::now_ns() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}
