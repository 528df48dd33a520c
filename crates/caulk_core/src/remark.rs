//! What a diagnosis remarks about a run besides its findings, as facts: `caulk_report` makes notes of them.

use caulk_wire::NoteCode;

use crate::{GpuRefused, GpuUse, Note, Series, VerdictUnit};

/// A remark.
#[derive(Debug, Clone, PartialEq)]
pub enum Remark {
    /// A note of the recording.
    Recorded(Note),
    /// Memory grows, and no finding accounts for it.
    Unexplained {
        /// Censuses that were taken.
        censuses: usize,
        /// Containers that were followed.
        followed: usize,
        /// A line that allocates is known, but not what holds the memory.
        line_known: bool,
        /// The heap profile does not have it either.
        beside_profile: bool,
    },
    /// What `malloc_trim` gave back when it gave back most.
    AllocatorKeeps {
        /// Resident bytes before.
        before_bytes: u64,
        /// Resident bytes after.
        after_bytes: u64,
        /// How long it took.
        milliseconds: f64,
        /// How often it was called.
        times: u64,
    },
    /// Memory was judged from outside. `few`: steps and epochs were read, but too few of them.
    GrowsOutside {
        /// Whether there were any.
        few: bool,
    },
    /// Page cache is most of what the control group gained.
    PageCache {
        /// Bytes that it gained.
        bytes: u64,
        /// Those of the page cache.
        cache_bytes: u64,
    },
    /// Files in `/dev/shm` became more.
    ShmFiles {
        /// By so many bytes.
        bytes: u64,
    },
    /// The recording has names of another version.
    OtherVersion {
        /// The names.
        names: Vec<String>,
    },
    /// A process takes more and more of a GPU outside torch.
    GpuRest {
        /// The process.
        pid: u32,
        /// Bytes early on.
        early_bytes: u64,
        /// Bytes at the end.
        late_bytes: u64,
    },
    /// A device.
    GpuDevice(GpuUse),
    /// Caches that torch emptied because a GPU was full.
    GpuRetries {
        /// How often.
        times: u64,
    },
    /// Allocations that a GPU had no memory for, after which the program continued.
    GpuRefused {
        /// How many.
        times: u64,
        /// The last of them.
        last: GpuRefused,
    },
    /// How the ranks of a job compare.
    Ranks {
        /// In which memory.
        series: Series,
        /// The unit of their rates.
        unit: VerdictUnit,
        /// Two or more, in their order.
        ranks: Vec<RankGrowth>,
    },
}

/// How memory moves in a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankGrowth {
    /// Its number.
    pub rank: u32,
    /// Bytes per unit.
    pub bytes_per_unit: f64,
    /// Bytes at the end.
    pub last: f64,
    /// Whether it grows unlike the others.
    pub stands_out: bool,
}

impl Remark {
    /// What it is about.
    pub fn code(&self) -> NoteCode {
        match self {
            Self::Recorded(note) => note.code.clone(),
            Self::Unexplained { .. } => NoteCode::Unexplained,
            Self::AllocatorKeeps { .. } => NoteCode::AllocatorKeeps,
            Self::GrowsOutside { .. } => NoteCode::GrowsOutside,
            Self::PageCache { .. } => NoteCode::PageCache,
            Self::ShmFiles { .. } => NoteCode::ShmFiles,
            Self::OtherVersion { .. } => NoteCode::OtherVersion,
            Self::GpuRest { .. } => NoteCode::GpuRest,
            Self::GpuDevice(_) => NoteCode::GpuDevice,
            Self::GpuRetries { .. } => NoteCode::GpuAllocator,
            Self::GpuRefused { .. } => NoteCode::GpuRefused,
            Self::Ranks { .. } => NoteCode::Ranks,
        }
    }
}
