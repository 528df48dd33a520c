//! The values of which a recording consists. `caulk_record` keeps them on disk; `caulk_diagnose` judges them.

use caulk_wire::Message;
use serde::{Deserialize, Serialize};

use crate::{GpuSample, Note};

/// What a process is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The training process: what the command became, or the first process below it that trains.
    #[default]
    Main,
    /// A `DataLoader` worker.
    Worker,
    /// A rank of a distributed job.
    Rank,
    /// Anything else.
    Other,
}

impl Role {
    /// Name, as reports and tables write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Worker => "worker",
            Self::Rank => "rank",
            Self::Other => "other",
        }
    }
}

/// What a process has in use, as its sampler counts it at every allocation. Without the program's help.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counted {
    /// Bytes that malloc has handed out, with the heads of their blocks.
    pub malloc_bytes: u64,
    /// Blocks that it has handed out.
    pub blocks: u64,
    /// Bytes that pymalloc has mapped for small objects since the sampler began, used and free.
    pub arena_bytes: u64,
}

impl Counted {
    /// Bytes of all of it.
    pub fn bytes(self) -> u64 {
        self.malloc_bytes + self.arena_bytes
    }
}

/// One look at one process from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Resident set size, in bytes.
    pub rss_bytes: u64,
    /// Shared part of it (file and shared memory pages), in bytes.
    pub shared_bytes: u64,
    /// Proportional set size, in bytes, where this look took one.
    pub pss_bytes: Option<u64>,
    /// Private dirty pages, in bytes, where this look took them.
    pub private_dirty_bytes: Option<u64>,
    /// Swapped out, in bytes, where this look took it.
    pub swap_bytes: Option<u64>,
    /// Threads, where this look counted them.
    pub threads: Option<u32>,
    /// Open file descriptors, where this look counted them.
    pub fds: Option<u32>,
    /// User and system CPU time so far, in nanoseconds, where this look took it.
    pub cpu_ns: Option<u64>,
    /// What it has in use, where that is counted.
    pub counted: Option<Counted>,
    /// Address space, in bytes, where [`ProcessLimits::address_space_bytes`] limits it.
    pub address_space_bytes: Option<u64>,
    /// Private writable mappings, in bytes, where [`ProcessLimits::data_bytes`] limits them.
    pub data_bytes: Option<u64>,
}

/// One look at what surrounds the processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemSample {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// `memory.current` of the nearest cgroup with a limit, in bytes.
    pub cgroup_bytes: Option<u64>,
    /// Page cache in it that the kernel gives back before it kills, in bytes, where this look read it.
    pub cgroup_cache_bytes: Option<u64>,
    /// `MemAvailable`, in bytes.
    pub available_bytes: u64,
    /// Sum of the tree's RSS, in bytes.
    pub tree_rss_bytes: u64,
    /// Processes in the tree.
    pub processes: u32,
    /// Bytes taken in `/dev/shm`, by whomever; `None` where there is none.
    pub shm_used_bytes: Option<u64>,
}

/// One process of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRecord {
    /// Process id.
    pub pid: u32,
    /// Parent when first seen.
    pub parent: u32,
    /// What it is for.
    pub role: Role,
    /// Which one of that role, from 0.
    pub index: u32,
    /// Short name (`comm`).
    pub name: String,
    /// Started, as far as that is known, `CLOCK_MONOTONIC` in nanoseconds.
    pub first_ns: u64,
    /// Last seen, likewise.
    pub last_ns: u64,
    /// An agent in it said hello.
    pub agent: bool,
}

/// A message of an agent, with who said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEvent {
    /// `CLOCK_MONOTONIC` on arrival, in nanoseconds.
    pub time_ns: u64,
    /// Process id of the sender.
    pub pid: u32,
    /// What it said.
    pub message: Message,
}

/// Limits in force when the run began, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// `memory.max` of the nearest cgroup that has one.
    pub cgroup_bytes: Option<u64>,
    /// `memory.current` of it when the run began: what others in it used.
    pub cgroup_start_bytes: Option<u64>,
    /// Physical memory.
    pub physical_bytes: u64,
    /// `--budget`.
    pub budget_bytes: Option<u64>,
    /// Of each process.
    #[serde(default, flatten)]
    pub each: ProcessLimits,
    /// Size of `/dev/shm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<u64>,
}

/// Soft limits that each process of the run has for itself, as `getrlimit(2)` names them; `None` if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessLimits {
    /// `RLIMIT_AS`: address space, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_space_bytes: Option<u64>,
    /// `RLIMIT_DATA`: private writable mappings, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// `RLIMIT_NOFILE`: open file descriptors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

/// Who killed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kill {
    /// The kernel counted an OOM kill while the program died.
    Oom,
    /// No kill was counted, but memory stood at its limit when SIGKILL came.
    ProbablyOom,
    /// A person or a program.
    NotOom,
    /// Nothing to tell by.
    Unknown,
}

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Death {
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
    /// For SIGKILL: by whom. Also set where a child of the command was OOM-killed.
    pub kill: Option<Kill>,
    /// For people: by what this was told.
    pub text: String,
    /// caulk ended it: the guard, or after as many epochs as were asked for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stopped: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A process of the tree that lives on although the command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftProcess {
    /// Process id.
    pub pid: u32,
    /// Short name (`comm`).
    pub name: String,
    /// Resident set size when last seen, in bytes.
    pub rss_bytes: u64,
}

/// A segment of shared memory that the tree has made and that is there although the command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftSegment {
    /// Name below `/dev/shm`.
    pub name: String,
    /// Size, in bytes.
    pub bytes: u64,
}

/// What the command left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Left {
    /// Processes.
    pub processes: Vec<LeftProcess>,
    /// Shared memory.
    pub segments: Vec<LeftSegment>,
}

/// What was run and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// Command and arguments, secrets redacted.
    pub command: Vec<String>,
    /// Working directory.
    pub directory: String,
    /// Host.
    pub host: String,
    /// Environment variables that matter, secrets redacted.
    pub environment: Vec<(String, String)>,
}

/// `run.json`: the recording's head.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunInfo {
    /// Version of the layout of the recording; readers refuse a newer major one.
    pub schema: u32,
    /// Version of caulk that recorded.
    pub caulk: String,
    /// `<time>-<name>`.
    pub id: String,
    /// What was run.
    pub target: Target,
    /// Start, RFC 3339 with zone.
    pub started: String,
    /// `CLOCK_MONOTONIC` at the start, in nanoseconds: zero of every `time_ns`.
    pub start_ns: u64,
    /// End, likewise, once it is known.
    pub end_ns: Option<u64>,
    /// Limits at the start.
    pub limits: Limits,
    /// Process id of the command.
    pub root_pid: u32,
    /// Process id of the supervisor.
    pub supervisor_pid: u32,
    /// How it ended; `None` while it runs, or where the supervisor did not live to see it.
    pub death: Option<Death>,
    /// What it left behind.
    #[serde(default)]
    pub left: Left,
    /// The recording was closed in an orderly way.
    pub complete: bool,
    /// Lines that the report should repeat: why something could not be looked at.
    pub notes: Vec<Note>,
}

/// Everything that was recorded of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// The head.
    pub info: RunInfo,
    /// The tree.
    pub processes: Vec<ProcessRecord>,
    /// Looks from outside, in order of time.
    pub samples: Vec<Sample>,
    /// Surroundings, in order of time.
    pub system: Vec<SystemSample>,
    /// GPUs, in order of time; empty where the program uses none.
    pub gpus: Vec<GpuSample>,
    /// What the agents said, in order of arrival.
    pub events: Vec<AgentEvent>,
    /// What could not be read, for people.
    pub problems: Vec<String>,
}
