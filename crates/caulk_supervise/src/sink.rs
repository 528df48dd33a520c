//! What a run tells whoever started it: all that is seen while it goes on, and how it ended.

use caulk_core::{AgentEvent, Death, GpuSample, Left, Limits, Note, ProcessRecord, Sample, SystemSample};

use crate::guard::Checkpoints;

/// One life under the guard, over.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarded {
    /// How it ended.
    pub end: caulk_guard::End,
    /// It made a step.
    pub stepped: bool,
    /// Ends of epochs that it passed.
    pub epochs: u64,
    /// Where the checkpoints are, with those that were told in it.
    pub checkpoints: Checkpoints,
}

/// What is known when the command has been started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStart {
    /// Process id of the command.
    pub root_pid: u32,
    /// `CLOCK_MONOTONIC` just before it was started, in nanoseconds.
    pub start_ns: u64,
    /// Limits in force.
    pub limits: Limits,
}

/// Takes what the supervisor sees. Called from its loop: what a call costs delays the next look.
pub trait Sink {
    /// The command has been started. First call, once.
    fn started(&mut self, start: &RunStart);
    /// Other limits hold from now on: the program has gone into another control group.
    fn limited(&mut self, limits: &Limits);
    /// One look at one process; the first may come before the process's record.
    fn sample(&mut self, sample: &Sample);
    /// One look at what surrounds the processes.
    fn system(&mut self, sample: &SystemSample);
    /// One look at a GPU, or at what a process has of it; only where torch uses one.
    fn gpu(&mut self, sample: &GpuSample);
    /// Something new about a process. Said again when it changes and when the process has ended: of several records
    /// with the same `pid` and `first_ns` the last one holds.
    fn process(&mut self, record: &ProcessRecord);
    /// A message of an agent.
    fn event(&mut self, event: &AgentEvent);
    /// Nothing more at this moment (`CLOCK_MONOTONIC`, in nanoseconds): time to flush. Comes once a second or more
    /// often.
    fn tick(&mut self, now_ns: u64);
    /// A line that the report should repeat: why something could not be looked at. Each is said once.
    fn note(&mut self, note: &Note);
    /// The guard does something: to be said at once, and repeated by the report.
    fn act(&mut self, text: &str);
}

/// A command that caulk ended on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Length of the file with its standard output at that moment, if it has one.
    pub output_bytes: Option<u64>,
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How the command ended.
    pub death: Death,
    /// Exit code to end with: the command's own, or 128 and the signal's number.
    pub exit_code: i32,
    /// What the command left behind.
    pub left: Left,
    /// All that [`Sink::note`] was told.
    pub notes: Vec<Note>,
    /// `CLOCK_MONOTONIC` when the command's end was seen, in nanoseconds.
    pub end_ns: u64,
    /// Caulk ended the command on purpose, after [`crate::Options::epochs`] or [`crate::Options::time_limit`].
    pub cut: Option<Cut>,
    /// The last signal to end that a person or a program sent meanwhile.
    pub signalled: Option<i32>,
    /// What the guard makes of it, where there is one.
    pub guarded: Option<Guarded>,
}
