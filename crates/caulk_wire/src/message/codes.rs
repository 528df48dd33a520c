//! Codes that are sent by name: what notes are about, and how traces end.

use crate::codec::names;

names! {
    /// What a note is about. A note without a code of its own is [`NoteCode::Unnamed`].
    NoteCode {
        /// A note of a recording from before notes had codes.
        #[default]
        Unnamed = "unnamed",
        /// An alarm that was raised during the run.
        Alarm = "alarm",
        /// What the guard did.
        Guard = "guard",
        /// A plan has changed a data loader, or has left it as it is.
        Applied = "applied",
        /// A library has no hook where one was looked for.
        NotHooked = "not-hooked",
        /// A hook of caulk's failed and was taken out.
        HookFailed = "hook-failed",
        /// No line is watched: a debugger or a profiler is there.
        TraceRefused = "trace-refused",
        /// A profiler of torch's is on.
        ProfilerOn = "profiler-on",
        /// ... and off again.
        ProfilerOff = "profiler-off",
        /// What torch's record of GPU memory tells of lines, or why there is none.
        GpuLines = "gpu-lines",
        /// The interpreter's objects cannot be looked through.
        CensusUnavailable = "census-unavailable",
        /// There are too many objects for the time of a pause.
        CensusTooLong = "census-too-long",
        /// There was no memory for a census.
        CensusWithoutMemory = "census-without-memory",
        /// Censuses were left out because of what they cost.
        CensusesLeftOut = "censuses-left-out",
        /// Readings of memory were left out because of what they cost.
        ReadingsLeftOut = "readings-left-out",
        /// The sums of what malloc has handed out are no longer kept.
        SumsLost = "sums-lost",
        /// The heap sampler is not loaded.
        HeapNotLoaded = "heap-not-loaded",
        /// The heap sampler does not see small objects.
        HeapWithoutSmallObjects = "heap-without-small-objects",
        /// The heap sampler cannot read stacks.
        HeapWithoutStacks = "heap-without-stacks",
        /// Part of the heap profile was lost, or counts for another line.
        HeapProfile = "heap-profile",
        /// Messages of an agent were dropped.
        MessagesDropped = "messages-dropped",
        /// An error for want of memory ended the program.
        MemoryError = "memory-error",
        /// Memory is seen from outside alone, and why.
        OutsideOnly = "outside-only",
        /// No agent answers in a process, or only late, and why.
        NoAgent = "no-agent",
        /// The program has another version of caulk inside.
        OtherVersion = "other-version",
        /// Of some processes only sums are recorded.
        ProcessesLeftOut = "processes-left-out",
        /// Records could not be written, or were not kept.
        RecordsLost = "records-lost",
        /// A file of a finding is newer than the run.
        SourceChanged = "source-changed",
        /// How the ranks of a distributed job compare.
        Ranks = "ranks",
        /// Memory grows, and nothing that was found accounts for it.
        Unexplained = "unexplained",
        /// The allocator keeps pages that the program has given back.
        AllocatorKeeps = "allocator-keeps",
        /// Memory grows in processes without an agent.
        GrowsOutside = "grows-outside",
        /// Pages of files are in the control group.
        PageCache = "page-cache",
        /// Files in `/dev/shm` become more.
        ShmFiles = "shm-files",
        /// A GPU, and what this run has of it.
        GpuDevice = "gpu-device",
        /// The GPU holds memory that torch does not count.
        GpuRest = "gpu-rest",
        /// Gaps in what torch has reserved on the GPU, or caches that were emptied for want of memory.
        GpuAllocator = "gpu-allocator",
        /// A GPU had no memory for an allocation, and the program continued.
        GpuRefused = "gpu-refused",
    }

    /// How an armed trace ended.
    TraceOutcome {
        /// A line was seen.
        #[default]
        Hit = "hit",
        /// No watched function made anything grow.
        Silent = "silent",
        /// Watched functions ran, and no event was seen.
        Blind = "blind",
        /// It was stopped before its time.
        Stopped = "stopped",
        /// It was not armed.
        Refused = "refused",
    }
}

impl NoteCode {
    /// Whether it says that censuses are not taken.
    pub fn stops_censuses(&self) -> bool {
        matches!(self, Self::CensusUnavailable | Self::CensusTooLong | Self::CensusWithoutMemory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Field;

    #[test]
    fn a_code_is_its_name_and_an_unknown_one_is_kept() {
        for code in NoteCode::ALL {
            assert_eq!(NoteCode::from_name(code.as_str()), *code);
        }
        let later = NoteCode::from_name("of-a-later-version");
        assert_eq!(later, NoteCode::Unknown("of-a-later-version".into()));
        let mut bytes = Vec::new();
        later.write(&mut bytes);
        TraceOutcome::Blind.write(&mut bytes);
        let mut input = bytes.as_slice();
        assert_eq!(NoteCode::read(&mut input), Ok(later));
        assert_eq!(TraceOutcome::read(&mut input), Ok(TraceOutcome::Blind));
    }

    #[test]
    fn notes_about_censuses_say_so() {
        let named: Vec<_> =
            NoteCode::ALL.iter().filter(|code| code.as_str().starts_with("census-")).collect();
        assert!(named.len() == 3 && named.iter().all(|code| code.stops_censuses()));
    }
}
