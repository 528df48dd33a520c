//! Messages of memory that ran out, in logs of trainings, schedulers and the kernel.

use serde::Serialize;

/// Who ran out of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// GPU memory, in torch.
    Cuda,
    /// Host memory: an allocation was refused.
    Host,
    /// Host memory: the kernel, a control group or a scheduler killed the process.
    Killed,
    /// Shared memory of `DataLoader` workers.
    SharedMemory,
}

impl Kind {
    /// What it means and what to do.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Cuda => {
                "GPU memory ran out: smaller batches with accumulation, or `caulk run` to see what stays on it"
            }
            Self::Host => "host memory ran out: `caulk run` names what grows",
            Self::Killed => {
                "the process was killed for host memory: `caulk run` names what grows, and survives the kill"
            }
            Self::SharedMemory => "/dev/shm ran out: more of it (`--shm-size`), or fewer workers",
        }
    }
}

/// Texts, in lower case, that one line must all contain.
const MESSAGES: [(Kind, &[&str]); 13] = [
    (Kind::SharedMemory, &["out of shared memory"]),
    (Kind::SharedMemory, &["bus error", "shared memory"]),
    (Kind::SharedMemory, &["dataloader worker", "killed by signal: bus error"]),
    (Kind::Killed, &["dataloader worker", "killed by signal: killed"]),
    (Kind::Killed, &["oom-kill"]),
    (Kind::Killed, &["oom_kill"]),
    (Kind::Killed, &["out of memory: killed process"]),
    (Kind::Killed, &["memory cgroup out of memory"]),
    (Kind::Killed, &["exceeded memory limit"]),
    (Kind::Cuda, &["cuda", "out of memory"]),
    (Kind::Cuda, &["outofmemoryerror"]),
    (Kind::Host, &["can't allocate memory"]),
    (Kind::Host, &["memoryerror"]),
];

/// The same in fewer words, which other lines say too: looked for last, at the beginning or end of a line.
const BARE: [(Kind, &str); 3] = [
    (Kind::Killed, "out of memory"),
    (Kind::Host, "cannot allocate memory"),
    (Kind::Killed, "exit code 137"),
];

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// From 1.
    pub line: usize,
    /// What ran out.
    pub kind: Kind,
    /// The line, cut to 200 characters.
    pub text: String,
}

/// What one line says, if it tells of memory that ran out.
pub fn kind(line: &str) -> Option<Kind> {
    let lower = line.to_ascii_lowercase();
    let found = MESSAGES.iter().find(|(_, texts)| texts.iter().all(|text| lower.contains(text)));
    let bare = || {
        let trimmed = lower.trim().trim_end_matches(['.', '!']);
        BARE.iter()
            .find(|(_, text)| trimmed.starts_with(text) || trimmed.ends_with(text))
            .map(|(kind, _)| *kind)
    };
    found.map(|(kind, _)| *kind).or_else(bare)
}

/// Every line of a log that tells of memory that ran out.
pub fn scan(text: &str) -> Vec<Hit> {
    let told = |(index, line): (usize, &str)| {
        let kind = kind(line)?;
        Some(Hit { line: index + 1, kind, text: line.trim().chars().take(200).collect() })
    };
    text.lines().enumerate().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_torch_the_kernel_and_schedulers() {
        for (line, expected) in [
            ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", Some(Kind::Cuda)),
            ("RuntimeError: CUDA error: out of memory", Some(Kind::Cuda)),
            (
                "RuntimeError: [enforce fail at alloc_cpu.cpp:117] data. DefaultCPUAllocator: can't allocate memory",
                Some(Kind::Host),
            ),
            ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.87 GiB", Some(Kind::Host)),
            ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.batch.", Some(Kind::Killed)),
            (
                "slurmstepd: error: Job 4711 exceeded memory limit (83842308 > 83886080), being killed",
                Some(Kind::Killed),
            ),
            ("[12345.6] Memory cgroup out of memory: Killed process 99 (python)", Some(Kind::Killed)),
            ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.", Some(Kind::Killed)),
            (
                "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
                Some(Kind::SharedMemory),
            ),
            ("OSError: [Errno 12] Cannot allocate memory", Some(Kind::Host)),
            ("epoch 3: memory 12.1 GB, loss 0.3", None),
            ("we never run out of memory here, says the documentation", None),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_are_numbered_and_cut() {
        let text = format!("epoch 1\nMemoryError{}\n", "x".repeat(500));
        let [hit] = scan(&text).try_into().expect("one");
        assert_eq!((hit.line, hit.text.len()), (2, 200));
    }
}
