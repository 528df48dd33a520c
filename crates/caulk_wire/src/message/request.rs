//! What the supervisor asks of an agent, and what it answers.

use crate::codec::{codes, records};

codes! {
    /// What the supervisor asks for.
    AskWish {
        /// Collect, empty caches, give pages back.
        #[default]
        Cleanup = 0 "cleanup",
        /// Save the state of the training.
        Checkpoint = 1 "checkpoint",
        /// Say at which step you are.
        Where = 2 "where",
        /// Stop at a step until you are told to go on, or say that you are past it.
        StopAt = 3 "stop at",
        /// Go on without doing anything.
        Cancel = 4 "cancel",
    }

    /// What came of it.
    AskOutcome {
        /// It is done.
        #[default]
        Done = 0 "done",
        /// It failed.
        Failed = 1 "failed",
        /// The process is at this step, or past the one named.
        At = 2 "at",
        /// It has stopped at the step named.
        Arrived = 3 "arrived",
    }
}

records! {
    /// How far a process is that is to be guarded, and how it can save its state: at its first step, and then as often
    /// as half a second allows.
    Standing {
        /// Optimizer steps so far.
        steps: u64,
        /// Epochs that have begun and ended.
        epochs: u64,
        /// By what it can save its state: `caulk.on_checkpoint`, `Lightning`, `Transformers`; empty where by nothing.
        way: String,
        /// It must not be sent SIGUSR1: that means something else there.
        spare_signal: bool,
        /// `torch.cuda.memory_reserved()` over all devices, in bytes.
        cuda_reserved_bytes: u64,
        /// Memory of these devices, in bytes.
        cuda_total_bytes: u64,
    }

    /// Supervisor to agent: do this at the next boundary.
    Ask {
        /// Number of the request, for its answer.
        id: u32,
        /// What to do.
        wish: AskWish,
        /// For [`AskWish::StopAt`]: the step.
        step: u64,
    }

    /// What came of a request ([`Ask`]).
    Answer {
        /// Its number.
        id: u32,
        /// What came of it.
        outcome: AskOutcome,
        /// Optimizer steps so far.
        steps: u64,
        /// Resident and reserved GPU memory that came back, in bytes.
        freed_bytes: u64,
        /// The checkpoint that was made, where that is known.
        path: String,
        /// For people: why it failed.
        text: String,
    }

    /// Supervisor to agent: the run is being ended; say what you have.
    Finish {
        /// Reason, for people.
        reason: String,
    }
}
