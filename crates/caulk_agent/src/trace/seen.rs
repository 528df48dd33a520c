//! What an armed trace may do, and what it has seen.

/// How much an armed trace may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Events that saw a watched thing grow; then it is no longer looked at.
    pub(crate) max_hits_per_watch: u32,
    /// Functions that are watched.
    pub(crate) max_candidates: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_hits_per_watch: 50, max_candidates: 64 }
    }
}

/// What an armed trace has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Per watch: events that saw it grow and charged a line with it.
    pub(crate) hits: Vec<(u32, u32)>,
    /// Per watch: growth that no watched line is responsible for.
    pub(crate) unexplained: Vec<(u32, u64)>,
    /// Events of watched functions.
    pub(crate) events_seen: u64,
    /// Every watch has its hits: time to disarm.
    pub(crate) enough: bool,
    /// A watched thing grew and not one event was seen: this way of tracing does not work here.
    pub(crate) blind: bool,
    /// Why it ended by itself: disarm and say so.
    pub(crate) stopped: Option<String>,
}

/// A line that made a watched thing grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The watch.
    pub(crate) id: u32,
    /// File of the line.
    pub(crate) file: String,
    /// Line, from 1.
    pub(crate) line: u32,
    /// Qualified name of the function; the bare name on 3.10.
    pub(crate) function: String,
    /// Innermost line of the user's own code on the stack; the same where the line is the user's, empty where there is
    /// none.
    pub(crate) user_file: String,
    /// ... line, from 1; 0 where there is none,
    pub(crate) user_line: u32,
    /// ... function.
    pub(crate) user_function: String,
    /// Elements or bytes it added; for a graph, times it was extended.
    pub(crate) growth: u64,
    /// Events that saw it.
    pub(crate) count: u32,
}

impl From<Hit> for caulk_wire::TraceHit {
    fn from(hit: Hit) -> Self {
        Self {
            id: hit.id,
            file: hit.file,
            line: hit.line,
            function: hit.function,
            user_file: hit.user_file,
            user_line: hit.user_line,
            user_function: hit.user_function,
            growth: hit.growth,
            count: hit.count,
        }
    }
}

/// The highest level of the bytes in use while armed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeakHit {
    /// Bytes in use.
    pub(crate) bytes: u64,
    /// File of the user's line that had just run.
    pub(crate) file: String,
    /// Line, from 1.
    pub(crate) line: u32,
    /// Qualified name of the function.
    pub(crate) function: String,
    /// Its largest locals: name, type, elements (bytes of tensors and arrays).
    pub(crate) locals: Vec<(String, String, u64)>,
    /// Containers in the locals of the user's functions on the stack that held most, heaviest first.
    pub(crate) full: Vec<Full>,
}

/// A container that was full at a peak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Full {
    /// The function and the variable; numbers are left to the caller.
    pub(crate) holder: caulk_wire::Holder,
    /// What was in it, likewise.
    pub(crate) contents: caulk_wire::Contents,
    /// Type of the container.
    pub(crate) type_name: String,
    /// Elements.
    pub(crate) len: u64,
}
