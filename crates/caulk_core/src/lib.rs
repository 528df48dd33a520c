//! caulk's vocabulary, shared by every other crate: quantities, leak classes, verdicts, findings, and the
//! values of which a recording consists.
//!
//! Values only: no I/O, clocks or threads.

mod advice;
mod beside;
mod bytes;
mod cause;
mod comparison;
mod diagnostic;
mod ending;
mod evidence;
mod finding;
mod fix;
mod gpu;
mod leak_class;
mod library_holder;
mod line_use;
mod link;
mod note;
mod places;
mod problem;
mod proof;
mod quote;
mod recording;
mod remark;
mod remedy;
mod sampled;
mod verdict;

pub use advice::{Advice, Remedy, SuggestedChange};
pub use beside::{Beside, private_bytes};
pub use bytes::{Bytes, NotASize};
pub use caulk_wire as wire;
pub use cause::{Between, Cause, Collector, Countable, Grower, Grows, Through, Why};
pub use comparison::{Comparison, ContainerChange, LineChange, Moment, TypeChange};
pub use diagnostic::Diagnostic;
pub use ending::{Ending, EndingKind, GpuHolder, GpuRefused, GpuShortage};
pub use evidence::{ElementFacts, Evidence, KindCount, MadeAt, Rate};
pub use finding::{
    Confidence, Finding, Growth, Harm, MOST_TWINS, Pinned, Place, Scope, Settled, Severity, Site, SiteRole,
    most_harmful_first,
};
pub use fix::{Applicability, Edit, Fix, Position};
pub use gpu::{GpuLedger, GpuPart, GpuSample, GpuUse, Slowed};
pub use leak_class::{Group, LeakClass};
pub use library_holder::LibraryHolder;
pub use line_use::{HeapTotal, LineUse, StackFrame, StackUse};
pub use link::{ChainStep, Link, LinkEvent};
pub use note::{Note, NoteFact};
pub use places::{first_places, rank};
pub use problem::Problem;
pub use proof::{Certainty, Proof};
pub use quote::{git_name, is_command, no_command, shown_name, steers, without_marks, written_out};
pub use recording::{
    AgentEvent, Counted, Death, Kill, Left, LeftProcess, LeftSegment, Limits, ProcessLimits, ProcessRecord,
    Recording, Role, RunInfo, Sample, SystemSample, Target,
};
pub use remark::{RankGrowth, Remark};
pub use sampled::Sampled;
pub use verdict::{Limit, LimitKind, ProcessRef, Series, State, Verdict, VerdictUnit};
