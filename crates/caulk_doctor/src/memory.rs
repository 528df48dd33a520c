//! Memory, swap, shared memory, disks.

use caulk_core::Bytes;

use crate::{Check, CheckState, HostFacts, Space};

/// Free memory below which hardly any training of torch's fits, in bytes: torch alone takes a half of it.
const LITTLE: u64 = 2 << 30;
/// Share of memory that others hold from which on it is told.
const TAKEN: f64 = 0.5;
/// Shared memory that `DataLoader` workers get by with, in bytes: a few batches each.
const SHARED: u64 = 1 << 30;
/// What containers give unless they are asked for more (docker run, `--shm-size`).
const CONTAINER: u64 = 64 << 20;
/// Room on a disk below which checkpoints are likely to fail, in bytes.
const DISK: u64 = 5 << 30;

pub(crate) fn checks(machine: &HostFacts) -> Vec<Check> {
    let mut checks = vec![memory(machine.memory), swap(machine)];
    checks.extend(machine.cgroup.map(|limit| cgroup(limit, machine.memory)));
    checks.push(shared(machine.shared_memory));
    checks.extend(machine.disks.iter().map(|(path, space)| disk(path, *space)));
    checks.extend(machine.overcommit.filter(|mode| *mode == 2).map(|_| {
        Check::new(
            "overcommit",
            CheckState::Advice,
            "the kernel grants no more memory than there is (vm.overcommit_memory = 2)",
            "forking workers of a large process may fail; start them by `spawn` or `forkserver`, or use 0",
        )
    }));
    checks
}

fn of(space: Space) -> String {
    format!("{} of {} free", Bytes(space.free), Bytes(space.total))
}

fn memory(space: Option<Space>) -> Check {
    let name = "memory";
    let Some(space) = space else {
        return Check::new(name, CheckState::Unknown, "/proc/meminfo cannot be read", "");
    };
    if space.free < LITTLE {
        return Check::new(
            name,
            CheckState::Problem,
            of(space),
            "end what is not needed, or train elsewhere: importing torch and a small model takes a gigabyte",
        );
    }
    if (space.free as f64) < TAKEN * space.total as f64 {
        return Check::new(
            name,
            CheckState::Advice,
            of(space),
            "other programs hold more than half: `ps aux --sort -rss | head`",
        );
    }
    Check::good(name, of(space))
}

fn swap(machine: &HostFacts) -> Check {
    let name = "swap";
    let Some(space) = machine.swap else { return Check::new(name, CheckState::Unknown, "not known", "") };
    if space.total == 0 {
        // Whoever has a limit of a control group is killed there whatever swap there is.
        return Check::good(name, "none: at the end of memory the kernel kills at once");
    }
    if space.free < space.total / 2 {
        return Check::new(
            name,
            CheckState::Advice,
            of(space),
            "memory has run out before: what is swapped makes training many times slower; find out what took it",
        );
    }
    Check::good(name, of(space))
}

fn cgroup(limit: Space, memory: Option<Space>) -> Check {
    let all = memory.map_or(String::new(), |memory| format!(", on a machine with {}", Bytes(memory.total)));
    let text =
        format!("{} left below the control group's limit of {}{all}", Bytes(limit.free), Bytes(limit.total));
    if limit.free < LITTLE {
        let advice = "ask the scheduler or the container for more (`--mem`, `--memory`), or begin with less";
        return Check::new("cgroup", CheckState::Problem, text, advice);
    }
    Check::good("cgroup", text)
}

fn shared(space: Option<Space>) -> Check {
    let name = "shared-memory";
    let Some(space) = space else {
        return Check::new(
            name,
            CheckState::Problem,
            "there is no /dev/shm",
            "`DataLoader` workers hand batches over through it: mount it, or use `num_workers=0`",
        );
    };
    let advice = "batches of `DataLoader` workers lie there; give the container more (`docker run --shm-size=8g` or \
                  `--ipc=host`), remove what others left in /dev/shm, or use fewer workers";
    let state = match space.free {
        free if free <= CONTAINER => CheckState::Problem,
        free if free < SHARED => CheckState::Advice,
        _ => return Check::good(name, of(space)),
    };
    Check::new(name, state, of(space), advice)
}

fn disk(path: &str, space: Space) -> Check {
    let text = format!("{} at {path}", of(space));
    if space.free >= DISK {
        return Check::good("disk", text);
    }
    let state = if space.free < DISK / 10 { CheckState::Problem } else { CheckState::Advice };
    Check::new(
        "disk",
        state,
        text,
        "checkpoints and logs may not fit; `caulk clean` shows what old runs left",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(machine: &HostFacts, name: &str) -> Option<CheckState> {
        checks(machine).iter().find(|check| check.name == name).map(|check| check.state)
    }

    #[test]
    fn a_container_with_its_usual_shared_memory_is_a_problem_for_workers() {
        for (free, expected) in
            [(64 << 20, CheckState::Problem), (512 << 20, CheckState::Advice), (8 << 30, CheckState::Good)]
        {
            let machine =
                HostFacts { shared_memory: Some(Space { total: free, free }), ..HostFacts::default() };
            assert_eq!(state(&machine, "shared-memory"), Some(expected), "{free}");
        }
        assert_eq!(state(&HostFacts::default(), "shared-memory"), Some(CheckState::Problem));
    }

    #[test]
    fn the_nearest_limit_counts() {
        let machine = HostFacts {
            memory: Some(Space { total: 256 << 30, free: 200 << 30 }),
            cgroup: Some(Space { total: 8 << 30, free: 1 << 30 }),
            ..HostFacts::default()
        };
        assert_eq!(state(&machine, "memory"), Some(CheckState::Good));
        assert_eq!(state(&machine, "cgroup"), Some(CheckState::Problem));
        assert_eq!(state(&HostFacts::default(), "memory"), Some(CheckState::Unknown));
    }

    #[test]
    fn disks_and_swap_that_are_nearly_full() {
        let machine = HostFacts {
            swap: Some(Space { total: 4 << 30, free: 1 << 30 }),
            disks: [("/data".to_owned(), Space { total: 100 << 30, free: 1 << 30 })].into(),
            overcommit: Some(2),
            ..HostFacts::default()
        };
        for name in ["swap", "disk", "overcommit"] {
            assert_eq!(state(&machine, name), Some(CheckState::Advice), "{name}");
        }
    }
}
