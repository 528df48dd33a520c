//! What the program is asked for, and by which way: the agent inside it, or a signal that it handles.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::wire::{self, Ask, AskOutcome, AskWish, Command};
use caulk_guard::{Agreement, Answer, Checkpoint, Move, Wish};
use rustix::process::{Pid, Signal, kill_process};

use crate::socket::Clients;

/// Steps after a signal by which its handler has surely run, where no file tells.
const STEPS_AFTER_SIGNAL: u64 = 2;

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
    /// Ranks that look for a common step.
    Agreeing(Agreement),
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
    /// Paths of checkpoints that agents have told, oldest first.
    pub(crate) told: Vec<String>,
    /// What failed, for people.
    pub(crate) complaints: Vec<String>,
}

impl Asks {
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
                Request::Agreeing(Agreement::among(pids))
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
            Request::Agreeing(agreement) => {
                let next = match answer.outcome {
                    AskOutcome::Arrived => agreement.has_arrived(pid),
                    _ => agreement.is_at(pid, answer.steps),
                };
                self.agree(clients, next?)
            }
            Request::Saving { waits, failed } => {
                waits.remove(&pid);
                *failed |= answer.outcome == AskOutcome::Failed;
                if !answer.path.is_empty() && !self.told.contains(&answer.path) {
                    self.told.push(answer.path.clone());
                }
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

    /// A look at what a signal has brought about: a newer checkpoint, or steps where no files are known.
    pub(crate) fn look(
        &mut self,
        newest: Option<&Checkpoint>,
        step: u64,
        files: bool,
    ) -> Option<(Wish, Answer)> {
        let Some(Request::Signalled { newest: known, step: before }) = &self.current else { return None };
        let done = if files {
            newest.is_some() && newest != known.as_ref()
        } else {
            step >= before + STEPS_AFTER_SIGNAL
        };
        self.done(done.then_some((Wish::Checkpoint, Answer::Saved)))
    }

    /// Nothing is waited for any more; ranks that wait for each other go on.
    pub(crate) fn give_up(&mut self, clients: &Clients) {
        if let Some(Request::Agreeing(agreement)) = self.current.take() {
            self.tell(clients, &agreement.ranks().collect(), AskWish::Cancel, 0);
        }
    }

    fn agree(&mut self, clients: &Clients, next: Move) -> Option<(Wish, Answer)> {
        let Some(Request::Agreeing(agreement)) = &self.current else { return None };
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
