//! Limits of the shell: open files, processes, address space, locked memory.

use caulk_core::Bytes;

use crate::HostFacts;
use crate::check::{Check, CheckState};

/// Open files that a training with workers gets by with.
const FILES: u64 = 4096;
/// Processes and threads of a user.
const PROCESSES: u64 = 4096;

pub(crate) fn checks(machine: &HostFacts) -> Vec<Check> {
    let mut checks = Vec::new();
    let limit = |name: &str| machine.limits.get(name).copied();
    checks.push(match limit("nofile") {
        Some(files) if files < FILES => Check::new(
            "open-files",
            CheckState::Advice,
            format!("{files} at most"),
            "each batch from a worker may take open files (`Too many open files`): `ulimit -n 65536`, or \
             `torch.multiprocessing.set_sharing_strategy('file_system')`",
        ),
        Some(files) => Check::good("open-files", format!("{files} at most")),
        None => Check::good("open-files", "no limit"),
    });
    if let Some(processes) = limit("nproc").filter(|processes| *processes < PROCESSES) {
        checks.push(Check::new(
            "processes",
            CheckState::Advice,
            format!("{processes} processes and threads at most"),
            "workers and their threads count: `ulimit -u`, or fewer of them",
        ));
    }
    for (name, what) in [("as", "address space"), ("data", "data segment")] {
        if let Some(bytes) = limit(name) {
            checks.push(Check::new(
                "ulimit",
                CheckState::Problem,
                format!("the {what} is limited to {}", Bytes(bytes)),
                "CUDA and memory maps reserve far more than they use: lift it (`ulimit -v unlimited`, `ulimit -d unlimited`) \
                 and limit memory by a control group",
            ));
        }
    }
    if let Some(quota) = machine.quota.filter(|quota| *quota + 0.5 < machine.processors as f64) {
        checks.push(Check::new(
            "processors",
            CheckState::Advice,
            format!("{} are seen, but the control group grants the time of {quota:.1}", machine.processors),
            format!(
                "threads and workers would be throttled: `OMP_NUM_THREADS={}`, and as many workers at most",
                quota.floor().max(1.0)
            ),
        ));
    } else {
        checks.push(Check::good("processors", machine.processors.to_string()));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_stop_trainings() {
        let machine = HostFacts {
            limits: [("nofile", 1024), ("nproc", 100), ("as", 8 << 30)]
                .map(|(name, limit)| (name.to_owned(), limit))
                .into(),
            processors: 64,
            quota: Some(4.0),
            ..HostFacts::default()
        };
        let found: Vec<_> = checks(&machine).iter().map(|check| (check.name, check.state)).collect();
        let expected = [
            ("open-files", CheckState::Advice),
            ("processes", CheckState::Advice),
            ("ulimit", CheckState::Problem),
            ("processors", CheckState::Advice),
        ];
        assert_eq!(found, expected);
    }
}
