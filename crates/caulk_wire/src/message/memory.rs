//! How much memory there is at a boundary, and of what.

use crate::codec::records;
use crate::message::program::{CodePlace, Phase, Unit};

records! {
    /// A phase ended; memory as the process's own allocators count it.
    Boundary {
        /// Number of the boundary in this process, from 0; later messages refer to it.
        seq: u32,
        /// `CLOCK_MONOTONIC`, in nanoseconds.
        time_ns: u64,
        /// What `index` counts.
        unit: Unit,
        /// Number of the epoch, step or second at which the boundary lies, from 0.
        index: u64,
        /// Optimizer steps so far.
        steps: u64,
        /// Phase that was running.
        phase: Phase,
        /// Bytes handed out by malloc, counted block by block with their heads; where nobody counts `mallinfo2().uordblks +
        /// hblkhd`, and 0 where it cannot tell, or was not asked because the answer is dear.
        malloc_bytes: u64,
        /// Free bytes that malloc keeps, when it was asked last: `mallinfo2().fordblks`.
        malloc_free_bytes: u64,
        /// `sys.getallocatedblocks()`.
        small_blocks: u64,
        /// Estimate of what those blocks hold, in bytes.
        small_bytes: u64,
        /// Shared memory mapped (`RssShmem`), in bytes.
        shm_bytes: u64,
        /// Resident set size, in bytes.
        rss_bytes: u64,
        /// Pages that are this process's alone and were written to (`Private_Dirty`), in bytes; 0 where that was not read.
        private_bytes: u64,
        /// Pages of a forked process that others still share (`Shared_Dirty`), in bytes, where `private_bytes` was read.
        inherited_bytes: u64,
        /// `torch.cuda.memory_allocated()` over all devices, in bytes.
        cuda_allocated_bytes: u64,
        /// `torch.cuda.memory_reserved()` over all devices, in bytes.
        cuda_reserved_bytes: u64,
        /// Objects seen by the census of this boundary; 0 where none was taken.
        census_objects: u64,
        /// CPU time the agent spent at this boundary, in nanoseconds.
        cost_ns: u64,
        /// Bytes that malloc has for blocks, used and free, those mapped singly left out: `mallinfo2().arena`.
        malloc_heap_bytes: u64,
        /// ... free at the end of the heap, where they can be given back: `mallinfo2().keepcost`.
        malloc_top_bytes: u64,
        /// Resident pages of mapped files (`RssFile`), in bytes.
        file_bytes: u64,
        /// Threads.
        threads: u32,
        /// Open file descriptors.
        fds: u32,
        /// Free bytes that torch's CUDA allocator cannot give back, since blocks beside them are in use.
        cuda_inactive_bytes: u64,
        /// Times that it emptied its caches because the device had no more memory.
        cuda_retries: u64,
        /// Process whose boundary this is, for one that works for another and takes its boundaries over; 0 for its own.
        of: u32,
        /// Bytes that pymalloc has mapped for small objects, those from before the sampler began left out; 0 where that is not
        /// counted.
        arena_bytes: u64,
        /// Bytes in segments of shared memory that the process has made and nobody has unlinked yet, mapped or not.
        segment_bytes: u64,
        /// Private memory that was mapped by anything but malloc, pymalloc and the agent, touched or not, in bytes: `VmData`
        /// less what those have mapped; 0 where that is not known.
        mapped_bytes: u64,
        /// Pages of privately mapped files that the process has written to and has copies of, in bytes; `None` where they were
        /// not counted.
        copied_file_bytes: Option<u64>,
        /// Pinned host memory that torch's caching allocator has for transfers to GPUs, used and free, in bytes.
        pinned_pool_bytes: u64,
        /// Part of that in use, in bytes.
        pinned_used_bytes: u64,
    }

    /// One row of a census.
    TypeCount {
        /// Qualified name, with module.
        name: String,
        /// Live objects.
        count: u64,
        /// Their shallow bytes.
        bytes: u64,
    }

    /// The largest and the fastest growing types at a boundary.
    Types {
        /// Boundary of the census.
        boundary: u32,
        /// Rows, by bytes.
        rows: Vec<TypeCount>,
    }

    /// An attribute through which an object refers to what leads back to it.
    CycleLink {
        /// Qualified name of the type whose attribute it is, with module.
        owner_type: String,
        /// The attribute.
        attribute: String,
        /// Type of the value.
        target_type: String,
        /// File of the module that defines the type.
        file: String,
        /// Objects of a sample in which it is so.
        count: u32,
    }

    /// What a collection would free at a boundary: objects in cycles that nothing else refers to, made since the first
    /// census.
    Garbage {
        /// Boundary of the census.
        boundary: u32,
        /// Objects.
        objects: u64,
        /// Bytes of the objects and of what they alone keep.
        bytes: u64,
        /// ... in storages of tensors and arrays.
        tensor_bytes: u64,
        /// There are more: figures are estimates from a part.
        truncated: bool,
        /// `gc.isenabled()`.
        enabled: bool,
        /// `gc.get_freeze_count()`.
        frozen: u64,
        /// `gc.get_threshold()[0]`: objects made until the youngest are looked at.
        threshold: u64,
        /// The types with most bytes.
        types: Vec<TypeCount>,
        /// Attributes that close the cycles, most frequent first.
        links: Vec<CycleLink>,
        /// The user's functions and frames that are part of them.
        places: Vec<CodePlace>,
    }

    /// A high-water mark inside an epoch, with who was running.
    Peak {
        /// Boundary before it.
        boundary: u32,
        /// Bytes in use at the peak.
        in_use_bytes: u64,
        /// Bytes in use at the boundary.
        baseline_bytes: u64,
        /// Innermost line of the user's code.
        file: String,
        /// ... line, from 1,
        line: u32,
        /// ... function.
        function: String,
        /// Containers that were full at the peak, described by [`crate::Holder`], [`crate::Contents`] and [`crate::ContainerLen`].
        ids: Vec<u32>,
    }

    /// malloc was asked to give back what it can (`malloc_trim`), because the user wanted that.
    Trim {
        /// Boundary at which it was asked.
        boundary: u32,
        /// Resident bytes before.
        before_bytes: u64,
        /// ... and after.
        after_bytes: u64,
        /// CPU time of the answer, in nanoseconds.
        cost_ns: u64,
    }

    /// A line that made memory on a GPU.
    GpuLine {
        /// The innermost line of the user's code.
        place: CodePlace,
        /// Bytes of it that are still there.
        bytes: u64,
        /// Blocks.
        blocks: u64,
    }

    /// What was made on GPUs between two boundaries and is still there at the second, by torch's own record.
    GpuMade {
        /// Boundary from which on torch recorded.
        from: u32,
        /// ... and at which it was asked.
        to: u32,
        /// Bytes of all lines.
        bytes: u64,
        /// Those with most bytes.
        lines: Vec<GpuLine>,
    }

    /// A GPU had no memory for an allocation: the figures of torch's allocator on that device at this moment.
    GpuRefusal {
        /// Number of the device, as torch counts.
        device: u32,
        /// Bytes of the request, rounded as the allocator rounds.
        asked_bytes: u64,
        /// Bytes allocated to tensors.
        allocated_bytes: u64,
        /// Bytes that the allocator has from the driver.
        reserved_bytes: u64,
        /// The largest free block of the allocator, in bytes; 0 if the blocks were not read.
        largest_free_bytes: u64,
        /// Free memory of the device by the driver, in bytes.
        free_bytes: u64,
        /// All memory of the device, in bytes; 0 if not known.
        total_bytes: u64,
        /// The most that the process may take (`set_per_process_memory_fraction`), in bytes; 0 without such a limit.
        allowed_bytes: u64,
        /// Settings of the allocator that are not its defaults (`expandable_segments`, `max_split_size_mb`, ...).
        settings: Vec<String>,
        /// Refusals in this process so far, this one included.
        times: u64,
        /// The innermost line of the user's code.
        place: CodePlace,
    }

    /// One GPU at a boundary: what torch's allocator has of it, and what the driver counts, in bytes.
    GpuLedger {
        /// Number of the boundary.
        boundary: u32,
        /// Number of the device, as torch counts.
        device: u32,
        /// Its UUID, as torch writes it; of a part of a split device (MIG) the part's. Empty where torch does not know it.
        uuid: String,
        /// Allocated to tensors.
        allocated_bytes: u64,
        /// Taken from the driver by torch's allocator.
        reserved_bytes: u64,
        /// Free blocks beside used ones in the same segment.
        gaps_bytes: u64,
        /// Part of `reserved_bytes` in pools of captured graphs, or of the program's own, when the blocks were read last,
        pools_bytes: u64,
        /// ... allocated to tensors,
        pools_used_bytes: u64,
        /// ... and in gaps.
        pools_gaps_bytes: u64,
        /// The largest free block outside these pools; 0 if the blocks were never read.
        largest_free_bytes: u64,
        /// The largest block of a tensor; 0 if the blocks were never read.
        largest_used_bytes: u64,
        /// Free memory of the device by the driver.
        free_bytes: u64,
        /// All memory of the device; 0 if the driver was not asked.
        total_bytes: u64,
        /// The most that the process may take (`set_per_process_memory_fraction`); 0 without such a limit.
        allowed_bytes: u64,
        /// Settings of the allocator that are not its defaults (`expandable_segments`, `max_split_size_mb`, ...).
        settings: Vec<String>,
    }
}
