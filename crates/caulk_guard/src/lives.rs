//! Whether the command is started again after its end, and how long to wait before that.

use std::time::Duration;

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With exit code 0, of its own accord.
    Finished,
    /// The guard ended it below the limit.
    Stopped,
    /// The guard ended it because it does not fit below the limit at all.
    DoesNotFit,
    /// Killed by the kernel, or by something else that watches memory.
    Killed,
    /// By an exception that says there is no memory.
    OutOfMemory,
    /// After a signal that somebody outside has sent: Ctrl-C, TERM, USR1.
    Told,
    /// Another exit code or signal.
    Failed,
}

/// One life, over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedLife {
    /// How it ended.
    pub end: End,
    /// It made a newer checkpoint, or passed the end of an epoch where no checkpoints are known.
    pub progressed: bool,
    /// It made a step.
    pub stepped: bool,
    /// It began with a checkpoint before which there is another one.
    pub has_older: bool,
    /// There is something to go on with.
    pub resumable: bool,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The run is over.
    Over,
    /// It would be started again, but not once more; so many restarts brought no progress.
    GiveUp(u32),
    /// It would be started again, but there is nothing to go on with.
    NothingToResume,
    /// It is started again after a pause; `older`: from the checkpoint before the last one.
    Restart {
        /// To wait for so long.
        pause: Duration,
        /// The last checkpoint may be broken.
        older: bool,
    },
}

/// Longest pause between two lives.
const LONGEST_PAUSE_S: u64 = 60;

/// The lives of one run.
#[derive(Debug, Clone, Copy)]
pub struct Lives {
    most: u32,
    /// Lives so far that were started again without having made progress.
    wasted: u32,
}

impl Lives {
    /// `most`: restarts without progress that are tried.
    pub fn new(most: u32) -> Self {
        Self { most, wasted: 0 }
    }

    /// What follows a life.
    pub fn after(&mut self, life: EndedLife) -> Decision {
        // A life that fails before its first step may have been given a broken checkpoint.
        let unborn = !life.stepped && life.has_older;
        let again = match life.end {
            End::Stopped | End::Killed | End::OutOfMemory => true,
            End::Failed => unborn,
            End::Finished | End::Told | End::DoesNotFit => false,
        };
        if !again {
            return Decision::Over;
        }
        if !life.resumable {
            return Decision::NothingToResume;
        }
        if life.progressed {
            self.wasted = 0;
            return Decision::Restart { pause: Duration::ZERO, older: false };
        }
        if self.wasted >= self.most {
            return Decision::GiveUp(self.wasted);
        }
        self.wasted += 1;
        let seconds = 1_u64.checked_shl(self.wasted - 1).unwrap_or(LONGEST_PAUSE_S).min(LONGEST_PAUSE_S);
        Decision::Restart { pause: Duration::from_secs(seconds), older: unborn }
    }
}

/// Whether an exception says that there is no memory: its type with those it derives from, and its text.
pub fn is_out_of_memory(types: &[String], text: &str) -> bool {
    const TYPES: [&str; 2] = ["MemoryError", "OutOfMemoryError"];
    const TEXTS: [&str; 6] = [
        "can't allocate memory",
        "cannot allocate memory",
        "cuda out of memory",
        "cuda error: out of memory",
        "hip out of memory",
        "std::bad_alloc",
    ];
    // What came from another process is told with its traceback, whose last line begins with the type.
    let told =
        |line: &str| TYPES.contains(&line.split(':').next().unwrap_or(line).trim_start_matches("torch."));
    let of_type = types.iter().any(|name| TYPES.contains(&name.as_str())) || text.lines().any(told);
    let text = text.to_lowercase();
    of_type || TEXTS.iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: EndedLife =
        EndedLife { end: End::Stopped, progressed: true, stepped: true, has_older: false, resumable: true };

    fn check(life: EndedLife, expected: Decision) {
        assert_eq!(Lives::new(3).after(life), expected, "{life:?}");
    }

    const fn restart(seconds: u64, older: bool) -> Decision {
        Decision::Restart { pause: Duration::from_secs(seconds), older }
    }

    #[test]
    fn ends_for_want_of_memory_are_followed_by_another_life() {
        for end in [End::Stopped, End::Killed, End::OutOfMemory] {
            check(EndedLife { end, ..LIFE }, restart(0, false));
            check(EndedLife { end, resumable: false, ..LIFE }, Decision::NothingToResume);
        }
    }

    #[test]
    fn other_ends_are_final() {
        for end in [End::Finished, End::DoesNotFit, End::Told, End::Failed] {
            check(EndedLife { end, ..LIFE }, Decision::Over);
            check(EndedLife { end, progressed: false, ..LIFE }, Decision::Over);
        }
    }

    #[test]
    fn a_checkpoint_that_does_not_load_is_passed_over() {
        let unborn =
            EndedLife { end: End::Failed, progressed: false, stepped: false, has_older: true, ..LIFE };
        check(unborn, restart(1, true));
        check(EndedLife { end: End::Killed, ..unborn }, restart(1, true));
        check(EndedLife { end: End::Told, ..unborn }, Decision::Over);
        check(EndedLife { has_older: false, ..unborn }, Decision::Over);
    }

    #[test]
    fn restarts_without_progress_are_counted_and_come_later_and_later() {
        let mut lives = Lives::new(3);
        let wasted = EndedLife { progressed: false, ..LIFE };
        assert_eq!([1, 2, 3].map(|_| lives.after(wasted)), [1, 2, 4].map(|seconds| restart(seconds, false)));
        assert_eq!(lives.clone().after(wasted), Decision::GiveUp(3));
        assert_eq!(lives.after(LIFE), restart(0, false));
        assert_eq!(lives.after(wasted), restart(1, false));
        let mut patient = Lives::new(u32::MAX);
        let pauses: Vec<Decision> = (0..100).map(|_| patient.after(wasted)).collect();
        assert_eq!(pauses.last(), Some(&restart(60, false)));
        assert_eq!(Lives::new(0).after(wasted), Decision::GiveUp(0));
    }

    #[test]
    fn exceptions_that_mean_memory_are_known() {
        let check = |types: &[&str], text: &str, expected: bool| {
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            assert_eq!(is_out_of_memory(&types, text), expected, "{types:?}: {text}");
        };
        check(&["_ArrayMemoryError", "MemoryError"], "Unable to allocate 8 GiB", true);
        check(&["OutOfMemoryError", "RuntimeError"], "CUDA out of memory. Tried to allocate", true);
        check(
            &["RuntimeError"],
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried",
            true,
        );
        check(&["OSError"], "[Errno 12] Cannot allocate memory", true);
        check(&["RuntimeError"], "CUDA error: out of memory", true);
        check(&["ProcessRaisedException"], "Traceback:\n  File\nMemoryError\n", true);
        check(&["ProcessRaisedException"], "Traceback:\ntorch.OutOfMemoryError: HIP\n", true);
        check(&["RuntimeError"], "size mismatch", false);
        check(&["KeyboardInterrupt"], "", false);
    }
}
