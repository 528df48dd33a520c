//! What a program is and does: its processes, phases, loops, backward passes, its end.

use crate::codec::{codes, records};
use crate::message::codes::NoteCode;

codes! {
    /// What one boundary after another counts.
    Unit {
        /// An epoch or another outer loop around the steps.
        #[default]
        Epoch = 0 "epoch",
        /// Optimizer steps (or backward passes, or forwards, where there are none).
        Steps = 1 "steps",
        /// Wall-clock seconds: programs without torch.
        Seconds = 2 "seconds",
    }

    /// What the program was doing when a boundary was cut.
    Phase {
        /// Not known.
        #[default]
        Run = 0 "run",
        /// Between optimizer steps.
        Train = 1 "train",
        /// Model outputs without optimizer steps.
        Validation = 2 "validation",
        /// As validation, said so by the program or its framework.
        Test = 3 "test",
    }
}

records! {
    /// First message of a process.
    Hello {
        /// [`crate::PROTOCOL`] of the agent.
        protocol: u32,
        /// Process id as the process sees it.
        pid: u32,
        /// Parent's process id.
        parent: u32,
        /// `CLOCK_MONOTONIC` at start-up, in nanoseconds.
        time_ns: u64,
        /// `3.11.7`.
        python: String,
        /// `sys.executable`.
        executable: String,
        /// `sys.argv`, or `sys.orig_argv` where there is one.
        argv: Vec<String>,
        /// `RANK` of a distributed job, as the environment has it.
        rank: Option<u32>,
        /// Index of a `DataLoader` worker.
        worker: Option<u32>,
        /// `glibc`, `jemalloc`, ...: who answers for malloc.
        allocator: String,
        /// Version of caulk in the process.
        version: String,
    }

    /// The process's rank in a distributed job, where the environment does not say it or says another.
    Rank {
        /// As the process group has it, or as `torch.multiprocessing` has counted what it has spawned.
        rank: u32,
    }

    /// A loop of the program that was recognised.
    LoopSite {
        /// What it counts.
        unit: Unit,
        /// File.
        file: String,
        /// Line of the loop, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
        /// The loop variable, if one was used.
        variable: String,
        /// `loop`, `dataloader`, `lightning`, `transformers`, `caulk.epoch`.
        source: String,
    }

    /// A line of the program that starts backward passes.
    BackwardSite {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
        /// Calls so far.
        count: u64,
        /// `retain_graph=True`.
        retain_graph: bool,
        /// `create_graph=True`.
        create_graph: bool,
        /// Calls that started with gradients left over from before the last optimizer step.
        stale_gradients: u64,
        /// Calls for which that was looked at.
        checked: u64,
    }

    /// A place in code.
    CodePlace {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
    }

    /// What threads run, what open files are and where segments of shared memory are made, at the first boundary and where
    /// there are far more of them than before.
    Opened {
        /// Boundary.
        boundary: u32,
        /// Threads that run code of the user's, most first.
        threads: Vec<Kin>,
        /// Open files, most first.
        files: Vec<Kin>,
        /// Segments that nobody has unlinked, most first.
        segments: Vec<Kin>,
    }

    /// Threads that run the same, open files of one kind, or segments made in one place.
    Kin {
        /// Of files: their name, numbers left out.
        name: String,
        /// Of threads: the outermost function of the user's, and where it is defined. Of segments: the line that made them.
        place: CodePlace,
        /// How many.
        count: u32,
    }

    /// An exception that nobody has caught ends the program.
    Uncaught {
        /// Names of its type and of those that it derives from.
        types: Vec<String>,
        /// Its text, as far as that is plain.
        text: String,
    }

    /// Something worth one line in the report: a hook that failed, a trace that was not armed.
    Note {
        /// What it is about.
        code: NoteCode,
        /// For people.
        text: String,
    }

    /// Last message of a process that ends in an orderly way.
    Bye {
        /// Optimizer steps.
        steps: u64,
        /// Epochs.
        epochs: u64,
        /// CPU time spent by the agent, in nanoseconds.
        cost_ns: u64,
        /// Longest pause, in nanoseconds.
        longest_pause_ns: u64,
    }
}
