//! Why memory grows: the typed facts from which `caulk_report` makes the message of a finding.

use caulk_wire::ContainerKind;

use crate::{LeakClass, Rate, VerdictUnit};

/// The last words of a message on something that grows: why it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// The summary of its class says it.
    Class,
    /// An optimizer gets other parameters and keeps the state of each.
    MoreParameters,
    /// Figures are kept outside pyplot.
    MoreFigures,
    /// Artists pile up on one Axes.
    MoreArtists,
    /// An iterator of `itertools.tee` is read more slowly than another.
    Lags,
    /// It is full at so many elements.
    Fills {
        /// The elements.
        most: u64,
        /// Bytes that it keeps then, if known.
        bytes: Option<u64>,
    },
}

/// What grows, by the words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grower {
    /// A container of Python's, or a graph, tensor, buffer, cache or chain.
    Kind(ContainerKind),
    /// The elements that are drawn on a figure.
    Drawn,
    /// The functions that run at exit.
    AtExit,
}

/// Facts of something that grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Grows {
    /// The pattern, by the signs of holder and elements.
    pub class: LeakClass,
    /// What it is.
    pub grower: Grower,
    /// Its name as its line writes it; empty if it is held from C.
    pub container: String,
    /// Name under which a link of a chain refers to the one before it.
    pub link: Option<String>,
    /// Other containers that the same line grows.
    pub others: usize,
    /// How fast, without the pages around it.
    pub rate: Rate,
    /// Elements per unit.
    pub elements: f64,
    /// Why.
    pub why: Why,
}

/// Why the garbage collector does not free cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// It is switched off.
    Off,
    /// Its threshold is this high.
    Seldom(u64),
    /// It counts objects, not bytes.
    CountsObjects,
}

/// What closes a cycle of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Attributes of objects.
    Objects,
    /// An attribute of the context of a `torch.autograd.Function`, which is the node of the graph.
    Context,
}

/// Things that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Countable {
    /// Child processes.
    Children,
    /// Child processes that work for a data loader.
    LoaderWorkers,
    /// Open file descriptors.
    Files,
    /// Threads.
    Threads,
}

/// Why an allocator cannot return pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Between {
    /// Elements of this container lie in between.
    Container(String),
    /// Retained blocks lie in between.
    Blocks,
    /// Nothing is known but the class.
    Class,
}

/// The cause of a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// Nothing is known but the class.
    Class,
    /// Something grows.
    Grows(Grows),
    /// A container of a sibling process explains this growth.
    LikeSibling {
        /// The container as its line writes it.
        container: String,
        /// How fast it grows here.
        rate: Rate,
    },
    /// Native memory that a line allocates is never freed.
    NeverFreed(Rate),
    /// Memory that a line allocates is retained by an unknown holder.
    Retained(Rate),
    /// A string gets longer.
    Lengthened {
        /// Its name.
        target: String,
        /// How fast.
        rate: Rate,
    },
    /// The value that a line makes is stored.
    Stored {
        /// In which container.
        container: String,
        /// How fast it grows.
        rate: Rate,
        /// The line that makes it, if the statement that stores it is at another.
        made: Option<u32>,
    },
    /// `check` finds a pattern at the line that allocates.
    Pattern {
        /// The pattern.
        class: LeakClass,
        /// The message of `check`.
        message: String,
        /// Retained allocations of the line.
        rate: Option<Rate>,
    },
    /// `check` finds a pattern that may explain the growth.
    MayExplain {
        /// The pattern.
        class: LeakClass,
        /// The message of `check`.
        message: String,
    },
    /// Objects in cycles wait for the collector, and more of them do.
    Cycles {
        /// Through what.
        through: Through,
        /// How fast.
        rate: Rate,
        /// Why it does not free them.
        collector: Collector,
    },
    /// Objects in cycles wait for the collector.
    Waiting {
        /// Through what they are in cycles.
        through: Through,
        /// Bytes at most.
        bytes: u64,
    },
    /// A backward pass records its own graph.
    RecordedBackward {
        /// How fast memory grows.
        rate: Rate,
        /// The call.
        call: String,
    },
    /// A profiler collects events.
    Profiler(Rate),
    /// An allocator keeps freed pages.
    KeptPages {
        /// Its name.
        allocator: &'static str,
        /// How fast.
        rate: Rate,
        /// Free bytes and all bytes that it had last.
        free_of: Option<[u64; 2]>,
        /// Why.
        between: Between,
    },
    /// Memory that torch has reserved on GPUs is free, in pieces.
    GpuPieces {
        /// Bytes of an allocation that failed by it.
        failed: Option<u64>,
        /// Bytes of tensors.
        allocated_bytes: u64,
        /// Bytes reserved.
        reserved_bytes: u64,
        /// Free bytes beside tensors in the same segment.
        gaps_bytes: u64,
        /// The largest free block, if known.
        largest_free_bytes: Option<u64>,
        /// The largest block of a tensor, if known.
        largest_used_bytes: Option<u64>,
        /// How fast what is reserved grows, if it does.
        rate: Option<Rate>,
    },
    /// Torch's pool of pinned host memory grows.
    PinnedPool {
        /// How fast.
        rate: Rate,
        /// Its bytes at the end.
        pool_bytes: u64,
        /// Those in use.
        used_bytes: u64,
    },
    /// Things outside the heap become more.
    Counts {
        /// Which.
        counted: Countable,
        /// How many in each unit.
        per_unit: f64,
        /// The unit.
        unit: VerdictUnit,
        /// How many there were last.
        last: f64,
    },
    /// Segments of shared memory become more.
    Segments {
        /// How fast.
        rate: Rate,
        /// Their bytes at the last reading.
        last: u64,
    },
    /// Processes outlive the program.
    ProcessesLeft {
        /// How many.
        count: usize,
        /// Their resident bytes.
        bytes: u64,
    },
    /// Segments of shared memory outlive the program.
    SegmentsLeft {
        /// How many.
        count: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// A container with graphs is full when memory is highest.
    Peak {
        /// The container.
        container: String,
        /// Its bytes.
        held: u64,
        /// Its elements.
        elements: u64,
        /// Bytes in use at the peak.
        high: u64,
        /// Bytes in use at the boundary.
        base: u64,
        /// The function at whose end it is freed.
        function: String,
    },
    /// Memory is gathered within each epoch.
    Gathered {
        /// The container, if known.
        holder: String,
        /// Bytes per step.
        per_step: f64,
        /// Bytes in each epoch.
        rise: u64,
    },
    /// Gradients are never cleared.
    StaleGradients,
    /// Memory ran out.
    Exhausted {
        /// Bytes that the line had allocated.
        bytes: u64,
        /// Bytes in use.
        whole: u64,
        /// The container that stores them, if known.
        stored: Option<String>,
    },
    /// Memory on a GPU that a line allocates is retained.
    RetainedOnGpu(Rate),
    /// Workers copy shared memory.
    Copied {
        /// The container and its elements, if known.
        container: Option<(String, u64)>,
        /// Bytes copied in each worker, if copying has ended.
        ended: Option<u64>,
        /// Workers that do the same.
        workers: usize,
        /// How fast all of them copy.
        rate: Rate,
    },
}

impl Cause {
    /// The cause of a part of its growth.
    #[must_use]
    pub fn scaled(mut self, part: f64) -> Self {
        match &mut self {
            Self::Grows(grows) => {
                grows.rate.bytes *= part;
                grows.elements *= part;
            }
            Self::NeverFreed(rate)
            | Self::Retained(rate)
            | Self::Profiler(rate)
            | Self::RetainedOnGpu(rate)
            | Self::LikeSibling { rate, .. }
            | Self::Lengthened { rate, .. }
            | Self::Stored { rate, .. }
            | Self::Cycles { rate, .. }
            | Self::RecordedBackward { rate, .. }
            | Self::KeptPages { rate, .. }
            | Self::PinnedPool { rate, .. }
            | Self::Segments { rate, .. }
            | Self::Copied { rate, .. } => rate.bytes *= part,
            Self::Pattern { rate, .. } | Self::GpuPieces { rate, .. } => {
                *rate = rate.map(|rate| Rate::new(rate.bytes * part, rate.unit));
            }
            Self::Counts { per_unit, .. } => *per_unit *= part,
            Self::Class
            | Self::MayExplain { .. }
            | Self::Waiting { .. }
            | Self::ProcessesLeft { .. }
            | Self::SegmentsLeft { .. }
            | Self::Peak { .. }
            | Self::Gathered { .. }
            | Self::StaleGradients
            | Self::Exhausted { .. } => {}
        }
        self
    }
}
