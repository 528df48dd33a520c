//! The facts on which a finding rests. `caulk_report` puts them into words.

use serde::{Deserialize, Serialize};

use crate::{LeakClass, Series, VerdictUnit};

/// A line that made memory which is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MadeAt {
    /// File, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Qualified name of the function; before Python 3.11 its name.
    pub function: String,
    /// Bytes, estimated from samples.
    pub bytes: u64,
}

/// Bytes per unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// Bytes that are added in each unit.
    #[serde(rename = "bytes_per_unit")]
    pub bytes: f64,
    /// The unit.
    pub unit: VerdictUnit,
}

impl Rate {
    /// So many bytes in each unit.
    pub const fn new(bytes: f64, unit: VerdictUnit) -> Self {
        Self { bytes, unit }
    }
}

/// Elements of a container and the memory that they keep alive.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ElementFacts {
    /// The frequent types, the most frequent first.
    pub types: Vec<String>,
    /// Bytes that one element keeps alive.
    pub bytes_per_element: u64,
    /// Elements of the sample, if they share what they keep alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<u32>,
    /// Only a part was followed: the bytes are a lower bound.
    pub truncated: bool,
    /// Bytes that graphs saved for backward: of one element, or of all that share them.
    pub saved_bytes: u64,
    /// The frequent types of graph nodes with their number.
    pub nodes: Vec<(String, u32)>,
    /// Bytes that the element shows and bytes that its storage has, if it is a small view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<[u64; 2]>,
}

/// Things that have become more: threads by their function, files by their name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindCount {
    /// How many more there are.
    pub count: u32,
    /// Their name; empty if a function is known instead.
    pub name: String,
    /// The function that they run.
    pub function: String,
    /// Its file, as in [`crate::Site::file`].
    pub file: String,
    /// Its first line.
    pub line: u32,
}

/// A fact on which a finding rests. Several facts may have one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", content = "facts", rename_all = "kebab-case")]
pub enum Evidence {
    /// The bytes in use, or those on a GPU, grow.
    BytesInUse {
        /// The series that grows.
        series: Series,
        /// How fast.
        #[serde(flatten)]
        rate: Rate,
        /// Over how many units.
        units: f64,
    },
    /// Resident memory grows that no allocator accounts for.
    Resident {
        /// How fast.
        #[serde(flatten)]
        rate: Rate,
        /// Over how many units.
        units: f64,
    },
    /// Part of the growth that is the container's own bytes; the rest is pages around them.
    #[serde(rename = "resident")]
    OwnBytes {
        /// How fast.
        #[serde(flatten)]
        own: Rate,
    },
    /// The same line grows another container.
    HolderPath {
        /// That container, from a root.
        holder: String,
        /// How fast it grows.
        #[serde(flatten)]
        rate: Rate,
    },
    /// Lengths at the first and the last census.
    Census {
        /// Length at the first.
        first: u64,
        /// Length at the last.
        last: u64,
        /// The lengths are bytes.
        in_bytes: bool,
        /// Boundaries at which it was read.
        boundaries: usize,
        /// The judgement on the lengths, as `caulk_growth` gives it.
        judgement: String,
    },
    /// The line grew the container while it was traced.
    ArmedTrace {
        /// Elements, or bytes, that it added.
        gained: u64,
        /// The gain is in bytes.
        in_bytes: bool,
        /// How often it was seen.
        times: u64,
    },
    /// The statement grows the container, by its text.
    #[serde(rename = "source")]
    GrowsInSource {
        /// The statement.
        statement: String,
        /// The container as it writes it.
        container: String,
    },
    /// The statement stores the value that a line makes.
    #[serde(rename = "source")]
    StoresInSource {
        /// The statement.
        statement: String,
        /// The container as it writes it.
        container: String,
    },
    /// `check` finds this pattern at the line that allocates.
    #[serde(rename = "source")]
    PatternAtLine,
    /// `check` finds this pattern; the run did not see it grow.
    #[serde(rename = "source")]
    PatternUnseen,
    /// The only matching line of the files that ran; it was not traced.
    #[serde(rename = "source")]
    OnlyPlace {
        /// The line opens files.
        opens: bool,
    },
    /// Memory that the elements keep alive.
    Contents(ElementFacts),
    /// Nodes of the autograd graph.
    #[serde(rename = "contents")]
    Graph {
        /// How many.
        nodes: u64,
        /// Bytes that they saved for backward.
        saved_bytes: u64,
        /// The frequent types with their number.
        types: Vec<(String, u32)>,
        /// Only a part was followed.
        truncated: bool,
    },
    /// Tensors that show memory of arrays get the growth that nothing else accounts for.
    #[serde(rename = "contents")]
    PartOfArrays,
    /// A sample of many containers of one attribute stands for the others.
    #[serde(rename = "contents")]
    SampleOfMany {
        /// Containers that were followed.
        followed: usize,
        /// Growth of those followed last.
        #[serde(flatten)]
        rate: Rate,
    },
    /// Bytes allocated by the line that were alive at the last census.
    HeapProfile {
        /// Estimated from samples.
        live_bytes: u64,
        /// Error of the estimate.
        margin_bytes: u64,
    },
    /// Retained allocations of the loop around the line.
    #[serde(rename = "heap-profile")]
    MadeInLoop {
        /// How fast they grow.
        #[serde(flatten)]
        rate: Rate,
    },
    /// Retained allocations of matplotlib while it draws.
    #[serde(rename = "heap-profile")]
    MadeByDrawing {
        /// How fast they grow.
        #[serde(flatten)]
        rate: Rate,
    },
    /// Retained allocations of lines that only these threads run.
    #[serde(rename = "heap-profile")]
    MadeByThreads {
        /// How fast they grow.
        #[serde(flatten)]
        rate: Rate,
    },
    /// Allocations of the line that rise within an epoch.
    #[serde(rename = "heap-profile")]
    RiseWithinEpoch {
        /// By how many bytes.
        bytes: u64,
    },
    /// What a collection would have freed.
    Garbage {
        /// Objects.
        objects: u64,
        /// Their bytes.
        bytes: u64,
        /// Those in tensors and arrays.
        tensor_bytes: u64,
        /// The frequent types with their number.
        types: Vec<(String, u64)>,
        /// The numbers are estimates.
        truncated: bool,
    },
    /// An attribute that closes a cycle.
    Cycle {
        /// Its name.
        attribute: String,
        /// Type of the object that has it.
        owner_type: String,
        /// Type of the value.
        target_type: String,
    },
    /// Objects that the collector never visits.
    Collector {
        /// How many are frozen.
        frozen: u64,
    },
    /// The facts are of one worker of several.
    Workers {
        /// How many workers there are.
        count: usize,
        /// Growth of all of them.
        #[serde(flatten)]
        rate: Rate,
    },
    /// The class that the finding would have outside a worker.
    Pattern {
        /// That class.
        class: LeakClass,
    },
    /// How a number moves.
    Count {
        /// The verdict, as `caulk_growth` gives it.
        judgement: String,
    },
    /// Private bytes of a child process, the median.
    Children {
        /// Of each.
        bytes_each: u64,
    },
    /// Things left behind.
    Left {
        /// The first of them.
        names: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// malloc's heaps.
    Malloc {
        /// Bytes that it has.
        heap_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
        /// Free bytes at the end of the heap.
        top_bytes: u64,
        /// Threads that share the heaps.
        threads: u32,
    },
    /// pymalloc's arenas.
    #[serde(rename = "malloc")]
    Arenas {
        /// Bytes that are mapped.
        arena_bytes: u64,
        /// Bytes that blocks take.
        small_bytes: u64,
        /// Those blocks.
        blocks: u64,
    },
    /// Effect of `malloc_trim(0)`.
    #[serde(rename = "malloc")]
    Trimmed {
        /// Resident bytes before.
        before_bytes: u64,
        /// Resident bytes after.
        after_bytes: u64,
        /// How long it took.
        milliseconds: f64,
    },
    /// torch's profiler was on to the end.
    Profiler,
    /// Backward passes that began with gradients left over.
    Gradients {
        /// Such passes.
        stale: u64,
        /// All passes that were examined.
        checked: u64,
    },
    /// `create_graph=True` was given.
    Backward,
    /// Lines that made what stayed on a GPU while torch recorded.
    GpuRecord {
        /// Bytes of all of them.
        bytes: u64,
        /// The lines, most bytes first.
        lines: Vec<MadeAt>,
    },
    /// Shared memory that has become private.
    PrivateMemory {
        /// Workers that do the same.
        workers: usize,
        /// Bytes in all, if copying has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        copied_bytes: Option<u64>,
        /// Bytes per unit in each worker.
        #[serde(flatten)]
        rate: Rate,
        /// Units over which this was read.
        units: f64,
        /// Private bytes at the last reading.
        private_bytes: u64,
    },
    /// Elements that lie in copied pages.
    Pages {
        /// Such elements.
        copied: u32,
        /// Elements of the sample.
        sampled: u32,
    },
    /// The highest bytes in use, and where they were read.
    Peak {
        /// The bytes.
        bytes: u64,
        /// File, as in [`crate::Site::file`].
        file: String,
        /// Line, from 1.
        line: u32,
        /// Function.
        function: String,
    },
    /// Functions that the new threads run.
    Threads {
        /// The most frequent.
        kinds: Vec<KindCount>,
    },
    /// Names of the new open files.
    Files {
        /// The most frequent.
        kinds: Vec<KindCount>,
    },
}

impl Evidence {
    /// Kebab-case name of the kind, as JSON and reports write it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::BytesInUse { .. } => "bytes-in-use",
            Self::Resident { .. } | Self::OwnBytes { .. } => "resident",
            Self::HolderPath { .. } => "holder-path",
            Self::Census { .. } => "census",
            Self::ArmedTrace { .. } => "armed-trace",
            Self::GrowsInSource { .. }
            | Self::StoresInSource { .. }
            | Self::PatternAtLine
            | Self::PatternUnseen
            | Self::OnlyPlace { .. } => "source",
            Self::Contents(_) | Self::Graph { .. } | Self::PartOfArrays | Self::SampleOfMany { .. } => {
                "contents"
            }
            Self::HeapProfile { .. }
            | Self::MadeInLoop { .. }
            | Self::MadeByDrawing { .. }
            | Self::MadeByThreads { .. }
            | Self::RiseWithinEpoch { .. } => "heap-profile",
            Self::Garbage { .. } => "garbage",
            Self::Cycle { .. } => "cycle",
            Self::Collector { .. } => "collector",
            Self::Workers { .. } => "workers",
            Self::Pattern { .. } => "pattern",
            Self::Count { .. } => "count",
            Self::Children { .. } => "children",
            Self::Left { .. } => "left",
            Self::Malloc { .. } | Self::Arenas { .. } | Self::Trimmed { .. } => "malloc",
            Self::Profiler => "profiler",
            Self::Gradients { .. } => "gradients",
            Self::Backward => "backward",
            Self::GpuRecord { .. } => "gpu-record",
            Self::PrivateMemory { .. } => "private-memory",
            Self::Pages { .. } => "pages",
            Self::Peak { .. } => "peak",
            Self::Threads { .. } => "threads",
            Self::Files { .. } => "files",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_the_one_that_is_written() {
        let rate = Rate::new(1.0, VerdictUnit::Epoch);
        let all = [
            Evidence::OwnBytes { own: rate },
            Evidence::MadeByDrawing { rate },
            Evidence::PatternAtLine,
            Evidence::Trimmed { before_bytes: 2, after_bytes: 1, milliseconds: 0.5 },
            Evidence::BytesInUse { series: Series::InUse, rate, units: 8.0 },
        ];
        for evidence in all {
            let written = serde_json::to_value(&evidence).expect("plain data");
            assert_eq!(written["kind"], evidence.kind());
        }
    }
}
