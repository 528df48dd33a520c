//! What the program is asked for, and by which way: the agent inside it, or a signal that it handles.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::wire::{self, Ask, AskOutcome, AskWish, Command};
use caulk_guard::{Agreement, Answer, Checkpoint, Move, Wish};
use rustix::process::{Pid, Signal, kill_process};

use crate::socket::Clients;

/// Steps after a signal by which its handler has surely run, where no file tells.
const STEPS_AFTER_SIGNAL: u64 = 2;

/// Ranks wait so long for each other at a common step, in nanoseconds; their agents a little longer.
const LONGEST_WAIT_NS: u64 = 15_000_000_000;

/// By what a training process can be asked to save its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its agent, which does it by this.
    Agent(String),
    /// It handles SIGUSR1.
    Signal,
}

/// What is under way.
#[derive(Debug)]
enum Request {
    /// Agents that have not answered yet, and what came back so far, in bytes.
    Cleanup { waits: BTreeSet<u32>, freed: u64 },
    /// Ranks that look for a common step, and since when the first of them waits there.
    Agreeing { agreement: Agreement, waits_since_ns: Option<u64> },
    /// Agents that have not answered yet.
    Saving { waits: BTreeSet<u32>, failed: bool },
    /// A signal has been sent at this step, when this was the newest checkpoint.
    Signalled { newest: Option<Checkpoint>, step: u64 },
}

/// Asks, and takes the answers.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    number: u32,
    current: Option<Request>,
    /// Paths of checkpoints that agents have told and nobody has taken up yet.
    pub(crate) told: Vec<String>,
    /// What failed, for people.
    pub(crate) complaints: Vec<String>,
}

impl Asks {
    /// Whether an answer is waited for.
    pub(crate) fn waits(&self) -> bool {
        self.current.is_some()
    }

    /// Asks for a cleanup; false where there is nobody to ask.
    pub(crate) fn clean_up(&mut self, clients: &Clients, pids: &BTreeSet<u32>) -> bool {
        if pids.is_empty() {
            return false;
        }
        self.tell(clients, pids, AskWish::Cleanup, 0);
        self.current = Some(Request::Cleanup { waits: pids.clone(), freed: 0 });
        true
    }

    /// Asks these processes, which are at these steps, for a checkpoint; `newest` is the newest by now.
    pub(crate) fn save(
        &mut self,
        clients: &Clients,
        way: &Way,
        training: &BTreeMap<u32, u64>,
        newest: Option<&Checkpoint>,
    ) {
        let pids: BTreeSet<u32> = training.keys().copied().collect();
        let request = match way {
            Way::Signal => {
                for pid in &pids {
                    send(*pid, Signal::USR1);
                }
                let step = training.values().copied().max().unwrap_or(0);
                Request::Signalled { newest: newest.cloned(), step }
            }
            Way::Agent(_) if pids.len() > 1 => {
                self.tell(clients, &pids, AskWish::Where, 0);
                Request::Agreeing { agreement: Agreement::among(pids), waits_since_ns: None }
            }
            Way::Agent(_) => {
                self.tell(clients, &pids, AskWish::Checkpoint, 0);
                Request::Saving { waits: pids, failed: false }
            }
        };
        self.current = Some(request);
    }

    /// An agent has answered; what that means, if the request is done with it.
    pub(crate) fn hear(
        &mut self,
        clients: &Clients,
        pid: u32,
        answer: &wire::Answer,
        now_ns: u64,
    ) -> Option<(Wish, Answer)> {
        if answer.id != self.number {
            return None;
        }
        match self.current.as_mut()? {
            Request::Cleanup { waits, freed } => {
                *freed += answer.freed_bytes;
                waits.remove(&pid);
                let done = waits.is_empty().then_some((Wish::Cleanup, Answer::Freed(*freed)));
                self.done(done)
            }
            Request::Agreeing { agreement, waits_since_ns } => {
                let next = match answer.outcome {
                    AskOutcome::Arrived => {
                        waits_since_ns.get_or_insert(now_ns);
                        agreement.has_arrived(pid)
                    }
                    _ => agreement.is_at(pid, answer.steps),
                };
                if matches!(next, Some(Move::StopAt(_))) {
                    *waits_since_ns = None;
                }
                self.agree(clients, next?)
            }
            Request::Saving { waits, failed } => {
                waits.remove(&pid);
                *failed |= answer.outcome == AskOutcome::Failed;
                self.told.extend(Some(answer.path.clone()).filter(|path| !path.is_empty()));
                if !answer.text.is_empty() {
                    self.complaints.push(answer.text.clone());
                }
                let answer = if *failed { Answer::Failed } else { Answer::Saved };
                let done = waits.is_empty().then_some((Wish::Checkpoint, answer));
                self.done(done)
            }
            Request::Signalled { .. } => None,
        }
    }

    /// A look at what a signal has brought about: another newest checkpoint, or `step` where no `files` are known. And at
    /// ranks that wait for others.
    pub(crate) fn look(
        &mut self,
        clients: &Clients,
        newest: Option<&Checkpoint>,
        step: u64,
        files: bool,
        now_ns: u64,
    ) -> Option<(Wish, Answer)> {
        match &self.current {
            Some(Request::Signalled { newest: known, step: before }) => {
                let done = if files {
                    newest.is_some() && newest != known.as_ref()
                } else {
                    step >= before + STEPS_AFTER_SIGNAL
                };
                self.done(done.then_some((Wish::Checkpoint, Answer::Saved)))
            }
            Some(Request::Agreeing { waits_since_ns: Some(since_ns), .. })
                if now_ns >= since_ns + LONGEST_WAIT_NS =>
            {
                self.agree(clients, Move::Cancel)
            }
            _ => None,
        }
    }

    /// Nothing is waited for any more; ranks that wait for each other go on.
    pub(crate) fn give_up(&mut self, clients: &Clients) {
        if let Some(Request::Agreeing { agreement, .. }) = self.current.take() {
            self.tell(clients, &agreement.ranks().collect(), AskWish::Cancel, 0);
        }
    }

    fn agree(&mut self, clients: &Clients, next: Move) -> Option<(Wish, Answer)> {
        let Some(Request::Agreeing { agreement, .. }) = &self.current else { return None };
        let ranks: BTreeSet<u32> = agreement.ranks().collect();
        match next {
            Move::StopAt(step) => self.tell(clients, &ranks, AskWish::StopAt, step),
            Move::Go => {
                self.tell(clients, &ranks, AskWish::Checkpoint, 0);
                self.current = Some(Request::Saving { waits: ranks, failed: false });
            }
            Move::Cancel => {
                self.tell(clients, &ranks, AskWish::Cancel, 0);
                self.complaints.push("the ranks did not come to a common step".into());
                return self.done(Some((Wish::Checkpoint, Answer::Failed)));
            }
        }
        None
    }

    fn done(&mut self, result: Option<(Wish, Answer)>) -> Option<(Wish, Answer)> {
        if result.is_some() {
            self.current = None;
        }
        result
    }

    fn tell(&mut self, clients: &Clients, pids: &BTreeSet<u32>, wish: AskWish, step: u64) {
        self.number += 1;
        clients.tell_some(pids, &Command::Ask(Ask { id: self.number, wish, step }));
    }
}

/// Sends a signal to a process of the run.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: fn() -> Way = || Way::Agent("test".into());

    fn answer(id: u32, outcome: AskOutcome, steps: u64) -> wire::Answer {
        wire::Answer { id, outcome, steps, freed_bytes: 5, path: format!("/{id}.pt"), text: String::new() }
    }

    /// Asks of these processes by this way; nobody is connected.
    fn asked(way: &Way, training: &[(u32, u64)]) -> (Asks, Clients) {
        let (mut asks, clients) = (Asks::default(), Clients::default());
        asks.save(&clients, way, &training.iter().copied().collect(), None);
        (asks, clients)
    }

    #[test]
    fn a_cleanup_is_done_when_all_have_answered() {
        let (mut asks, clients) = (Asks::default(), Clients::default());
        assert!(!asks.clean_up(&clients, &BTreeSet::new()));
        assert!(asks.clean_up(&clients, &BTreeSet::from([7, 8])));
        assert_eq!(asks.hear(&clients, 7, &answer(1, AskOutcome::Done, 0), 0), None);
        assert_eq!(asks.hear(&clients, 8, &answer(9, AskOutcome::Done, 0), 0), None);
        let done = asks.hear(&clients, 8, &answer(1, AskOutcome::Done, 0), 0);
        assert_eq!(done, Some((Wish::Cleanup, Answer::Freed(10))));
    }

    #[test]
    fn the_path_of_a_checkpoint_is_remembered() {
        let (mut asks, clients) = asked(&AGENT(), &[(7, 3)]);
        let done = asks.hear(&clients, 7, &answer(1, AskOutcome::Done, 0), 0);
        assert_eq!((done, asks.told), (Some((Wish::Checkpoint, Answer::Saved)), vec!["/1.pt".to_owned()]));
    }

    #[test]
    fn ranks_save_when_all_have_arrived() {
        let (mut asks, clients) = asked(&AGENT(), &[(7, 3), (8, 3)]);
        asks.hear(&clients, 7, &answer(1, AskOutcome::At, 3), 0);
        asks.hear(&clients, 8, &answer(1, AskOutcome::At, 4), 0);
        asks.hear(&clients, 7, &answer(2, AskOutcome::Arrived, 6), 0);
        asks.hear(&clients, 8, &answer(2, AskOutcome::Arrived, 6), 0);
        assert_eq!(asks.hear(&clients, 7, &answer(3, AskOutcome::Done, 6), 0), None);
        let done = asks.hear(&clients, 8, &answer(3, AskOutcome::Failed, 6), 0);
        assert_eq!(done, Some((Wish::Checkpoint, Answer::Failed)));
    }

    #[test]
    fn a_rank_that_does_not_come_is_not_waited_for() {
        let (mut asks, clients) = asked(&AGENT(), &[(7, 3), (8, 3)]);
        asks.hear(&clients, 7, &answer(1, AskOutcome::At, 3), 0);
        asks.hear(&clients, 8, &answer(1, AskOutcome::At, 3), 0);
        asks.hear(&clients, 7, &answer(2, AskOutcome::Arrived, 5), 0);
        assert_eq!(asks.look(&clients, None, 5, true, LONGEST_WAIT_NS - 1), None);
        let failed = asks.look(&clients, None, 5, true, LONGEST_WAIT_NS);
        assert_eq!(failed, Some((Wish::Checkpoint, Answer::Failed)));
    }

    #[test]
    fn a_signal_is_answered_by_a_file_or_by_steps() {
        let saved = Some((Wish::Checkpoint, Answer::Saved));
        let made = Checkpoint { path: "a".into(), modified_ns: 1, complete: true };
        // No such process: nothing is sent.
        let nobody = [(u32::MAX >> 1, 3)];
        let (mut asks, clients) = asked(&Way::Signal, &nobody);
        assert_eq!(asks.look(&clients, None, 99, true, 0), None);
        assert_eq!(asks.look(&clients, Some(&made), 3, true, 0), saved);
        let (mut asks, clients) = asked(&Way::Signal, &nobody);
        assert_eq!(asks.look(&clients, None, 4, false, 0), None);
        assert_eq!(asks.look(&clients, None, 5, false, 0), saved);
    }
}
