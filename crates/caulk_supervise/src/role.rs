//! What a process of the tree is for, from its command line, its parent and what its agent has said.
//!
//! Workers take the lowest number that no living worker has (their own where an agent knows it): the worker 0 of
//! one epoch's loader and that of the next make one series. Ranks keep their rank; all else counts on.

use std::collections::BTreeMap;

use caulk_core::Role;

use crate::process::Process;
use crate::signs::{Claim, Kind, Signs};

/// Who is what.
#[derive(Debug)]
pub(crate) struct Roles {
    root: u32,
    main: u32,
    ranks: u32,
    others: u32,
}

impl Roles {
    pub(crate) fn new(root: u32) -> Self {
        Self { root, main: root, ranks: 0, others: 0 }
    }

    /// Process id of the main process.
    pub(crate) fn main(&self) -> u32 {
        self.main
    }

    /// Judges the process anew, and the former main process if it takes its place. Returns whose role has changed.
    pub(crate) fn judge(&mut self, pid: u32, processes: &mut BTreeMap<u32, Process>) -> Vec<u32> {
        let Some(process) = processes.get(&pid) else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        let (signs, parent) = (process.signs, process.record.parent);
        if signs.is_spawned_rank()
            && let Some(parent) = processes.get_mut(&parent)
            && parent.signs.kind == Kind::Python
            && parent.signs.claim < Claim::Spawns
        {
            parent.signs.claim = Claim::Spawns;
            let parent = parent.record.pid;
            changed.extend(self.judge(parent, processes));
        }
        let former = self.main;
        let rival = processes.get(&former).map_or(Claim::None, |main| main.signs.claim);
        // A worker reports boundaries, too, and is never the main process; a rank's program is, where it has started it.
        let eligible = signs.worker.is_none() && !signs.is_spawned_rank() && signs.claim > rival;
        if pid != former && eligible {
            self.main = pid;
            if self.settle(former, processes) {
                changed.push(former);
            }
        }
        if self.settle(pid, processes) {
            changed.push(pid);
        }
        changed
    }

    /// Gives the process the role that it has now; true if that is another one.
    fn settle(&mut self, pid: u32, processes: &mut BTreeMap<u32, Process>) -> bool {
        let Some(process) = processes.get(&pid) else {
            return false;
        };
        let (signs, now) = (process.signs, (process.record.role, process.record.index));
        let role = self.role(pid, &process.record.name, signs);
        let index = match (role, signs.rank) {
            (Role::Main, _) => 0,
            (Role::Worker, _) => worker_index(pid, signs.worker, processes),
            (Role::Rank, Some(rank)) => rank,
            _ if process.settled && role == now.0 => now.1,
            (Role::Rank, None) => take(&mut self.ranks),
            (Role::Other, _) => take(&mut self.others),
        };
        let Some(process) = processes.get_mut(&pid) else {
            return false;
        };
        process.settled = true;
        (process.record.role, process.record.index) = (role, index);
        (role, index) != now
    }

    fn role(&self, pid: u32, name: &str, signs: Signs) -> Role {
        let trains = signs.claim == Claim::Trains;
        // torch names its workers' main thread so.
        if signs.worker.is_some() || name.starts_with("pt_data_worker") {
            Role::Worker
        } else if trains && signs.rank.is_some() && pid != self.root {
            Role::Rank
        } else if pid == self.main {
            Role::Main
        } else if trains {
            Role::Rank
        } else if signs.is_made_by_parent() {
            Role::Worker
        } else {
            Role::Other
        }
    }
}

/// The number a worker says it has if it is free, else the one it has, else the lowest free one.
fn worker_index(pid: u32, said: Option<u32>, processes: &BTreeMap<u32, Process>) -> u32 {
    let own = processes.get(&pid).filter(|own| own.settled && own.record.role == Role::Worker);
    let taken = |index| {
        let rival = |other: &Process| other.record.pid != pid && other.settled && other.ended_ns.is_none();
        let worker = |other: &Process| other.record.role == Role::Worker && other.record.index == index;
        processes.values().any(|other| rival(other) && worker(other))
    };
    let kept = own.map(|own| own.record.index);
    let wanted = said.into_iter().chain(kept).find(|&index| !taken(index));
    let most = processes.len() as u32;
    wanted.or_else(|| (0..most).find(|&index| !taken(index))).unwrap_or(most)
}

fn take(counter: &mut u32) -> u32 {
    *counter += 1;
    *counter - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root 1, and who else there is in order of appearance; what each is in the end.
    fn check(signs: &[(u32, Signs)], expected: &[(u32, Role, u32)]) {
        let mut processes = BTreeMap::new();
        let mut roles = Roles::new(1);
        processes.insert(1, Process::new(1, 0));
        roles.judge(1, &mut processes);
        for &(pid, signs) in signs {
            processes.entry(pid).or_insert_with(|| Process::new(pid, 1)).signs = signs;
            roles.judge(pid, &mut processes);
        }
        let all: Vec<_> = processes.values().map(|p| (p.record.pid, p.record.role, p.record.index)).collect();
        assert_eq!(all, expected);
    }

    fn trains(rank: Option<u32>) -> Signs {
        Signs { kind: Kind::Python, rank, claim: Claim::Trains, ..Signs::default() }
    }

    fn worker(worker: Option<u32>) -> Signs {
        Signs { kind: Kind::Python, forked: true, worker, ..Signs::default() }
    }

    #[test]
    fn the_command_is_main_until_another_trains() {
        check(&[(2, Signs::default())], &[(1, Role::Main, 0), (2, Role::Other, 0)]);
        check(&[(2, trains(None))], &[(1, Role::Other, 0), (2, Role::Main, 0)]);
        check(&[(1, trains(None)), (2, trains(None))], &[(1, Role::Main, 0), (2, Role::Rank, 0)]);
    }

    #[test]
    fn ranks_keep_their_number() {
        let ranks = [(3, trains(Some(1))), (2, trains(Some(0)))];
        check(&ranks, &[(1, Role::Other, 0), (2, Role::Rank, 0), (3, Role::Rank, 1)]);
        check(&[(1, trains(Some(0)))], &[(1, Role::Main, 0)]);
    }

    #[test]
    fn a_program_that_spawns_its_ranks_is_main() {
        let spawned = |rank| Signs { kind: Kind::Spawned, ..trains(Some(rank)) };
        let program = Signs { kind: Kind::Python, ..Signs::default() };
        let ranks = [(1, program), (3, spawned(1)), (2, spawned(0))];
        check(&ranks, &[(1, Role::Main, 0), (2, Role::Rank, 0), (3, Role::Rank, 1)]);
        let told_later = [(1, program), (2, spawned(0)), (2, spawned(4))];
        check(&told_later, &[(1, Role::Main, 0), (2, Role::Rank, 4)]);
    }

    #[test]
    fn workers_take_their_own_number_or_a_free_one() {
        let workers = [(1, trains(None)), (2, worker(None)), (3, worker(None)), (3, worker(Some(1)))];
        check(&workers, &[(1, Role::Main, 0), (2, Role::Worker, 0), (3, Role::Worker, 1)]);
        let twice = [(2, worker(Some(0))), (3, worker(Some(0)))];
        check(&twice, &[(1, Role::Main, 0), (2, Role::Worker, 0), (3, Role::Worker, 1)]);
    }

    #[test]
    fn a_worker_that_reports_steps_stays_a_worker() {
        let loud = Signs { claim: Claim::Trains, ..worker(Some(0)) };
        check(&[(2, loud)], &[(1, Role::Main, 0), (2, Role::Worker, 0)]);
    }

    #[test]
    fn a_program_that_forks_another_has_no_worker() {
        let shell = Signs { forked: true, ..Signs::default() };
        check(&[(2, shell)], &[(1, Role::Main, 0), (2, Role::Other, 0)]);
    }

    #[test]
    fn command_lines_are_recognised() {
        let kind = |executable: &str, arguments: &[&str]| {
            Kind::of(executable, &arguments.iter().copied().map(String::from).collect::<Vec<_>>())
        };
        assert_eq!(kind("/usr/bin/python3.11", &["python", "train.py"]), Kind::Python);
        assert_eq!(kind("/bin/sh", &["sh", "-c", "python"]), Kind::Foreign);
        let spawn = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)";
        assert_eq!(kind("/opt/python3", &["python", "-c", spawn, "--multiprocessing-fork"]), Kind::Spawned);
        let tracker = "from multiprocessing.resource_tracker import main;main(4)";
        assert_eq!(kind("/opt/pypy3.10", &["pypy", "-c", tracker]), Kind::Helper);
    }
}
