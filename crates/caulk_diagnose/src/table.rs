//! The one table that decides class, severity and confidence of a claim, from its cause and how it is known.

use caulk_core::{Advice, Cause, Confidence, Countable, LeakClass, ProcessRef, Scope, Severity, Through};

use crate::claim::{Claim, Observed, Share, Standing, Witness};

impl Observed {
    /// An observation of nothing but a cause: advice about the main process, for the whole run.
    pub(crate) fn of(cause: Cause) -> Self {
        Self {
            remedy: Some(Advice::Class(class_of(&cause)).into()),
            cause,
            witness: Witness::Signs,
            standing: Standing::Light,
            heavy: true,
            scope: Scope::Run,
            sites: Vec::new(),
            container: String::new(),
            holder: String::new(),
            holder_path: Vec::new(),
            chain: Vec::new(),
            process: ProcessRef::main(),
            growth: None,
            pinned: None,
            evidence: Vec::new(),
            twins: Vec::new(),
            more_twins: 0,
        }
    }
}

impl Claim {
    /// Its class.
    pub(crate) fn class(&self) -> LeakClass {
        if self.in_worker() {
            return LeakClass::WorkerMemoryGrows;
        }
        self.pattern().unwrap_or_else(|| class_of(&self.cause))
    }

    /// How harmful it is: by its standing, its cause or class, and its share of the growth.
    pub(crate) fn severity(&self) -> Severity {
        let own = match self.standing {
            _ if self.yields() => Severity::Info,
            Standing::Light => Severity::Info,
            Standing::Partial => Severity::Warning,
            Standing::Whole => row(&self.cause).1.unwrap_or_else(|| of_class(self.class(), self.heavy)),
        };
        match self.share() {
            Share::Open | Share::Leading => own,
            Share::Some => own.min(Severity::Warning),
            Share::Little => Severity::Info,
        }
    }

    /// How sure it is.
    pub(crate) fn confidence(&self) -> Confidence {
        match self.witness {
            Witness::Exact | Witness::TracedLine => Confidence::Proved,
            Witness::OnlyLine | Witness::HeapLine => Confidence::Likely,
            Witness::SourcePattern | Witness::Signs => Confidence::Suspected,
        }
    }

    /// Is it more than advice?
    pub(crate) fn weighs(&self) -> bool {
        self.severity() > Severity::Info
    }
}

/// The class of a cause.
pub(crate) fn class_of(cause: &Cause) -> LeakClass {
    row(cause).0
}

/// The class of each cause, and its severity if it lasts for the whole run; `None` if the class decides that.
fn row(cause: &Cause) -> (LeakClass, Option<Severity>) {
    use LeakClass as Class;
    use Severity::{Error, Info, Warning};
    match cause {
        Cause::Grows(grows) => (grows.class, None),
        Cause::LikeSibling { .. } => (Class::WorkerMemoryGrows, None),
        Cause::Pattern { class, .. } => (*class, Some(Error)),
        Cause::MayExplain { class, .. } => (*class, Some(Warning)),
        Cause::Class
        | Cause::NeverFreed(_)
        | Cause::RetainedOnGpu(_)
        | Cause::Exhausted { stored: None, .. } => (Class::NativeGrowth, Some(Error)),
        Cause::Retained(_) => (Class::NativeGrowth, Some(Warning)),
        Cause::Exhausted { .. } | Cause::Lengthened { .. } | Cause::Stored { .. } => {
            (Class::UnboundedHistory, Some(Error))
        }
        Cause::Profiler(_) => (Class::ProfilerLeftOn, Some(Error)),
        Cause::Cycles { through, .. } => (of_cycle(*through), Some(Error)),
        Cause::Waiting { through, .. } => (of_cycle(*through), Some(Info)),
        Cause::RecordedBackward { .. } => (Class::GraphRetained, Some(Warning)),
        Cause::StaleGradients => (Class::GradientsNeverCleared, Some(Warning)),
        Cause::Peak { .. } => (Class::GraphKeptInContainer, Some(Warning)),
        Cause::Gathered { .. } => (Class::LargeLocalKept, Some(Warning)),
        Cause::KeptPages { .. } | Cause::GpuPieces { .. } | Cause::PinnedPool { .. } => {
            (Class::AllocatorFragmentation, Some(Warning))
        }
        Cause::Copied { .. } => (Class::WorkerCopyOnWrite, Some(Warning)),
        Cause::Segments { .. } => (Class::SharedMemoryLeft, Some(Error)),
        Cause::SegmentsLeft { .. } => (Class::SharedMemoryLeft, Some(Warning)),
        Cause::ProcessesLeft { .. } => (Class::OrphanProcess, Some(Warning)),
        Cause::Counts { counted, .. } => (of_counted(*counted), Some(Warning)),
    }
}

fn of_cycle(through: Through) -> LeakClass {
    match through {
        Through::Objects => LeakClass::ReferenceCycle,
        Through::Context => LeakClass::ContextAttributeTensor,
    }
}

fn of_counted(counted: Countable) -> LeakClass {
    match counted {
        Countable::Children => LeakClass::OrphanProcess,
        Countable::LoaderWorkers => LeakClass::LoaderPerEpoch,
        Countable::Files => LeakClass::FileHandlesGrow,
        Countable::Threads => LeakClass::ThreadNeverEnds,
    }
}

/// Severity of something that grows for the whole run: the class's own, or by the weight of its elements.
fn of_class(class: LeakClass, heavy: bool) -> Severity {
    match class {
        LeakClass::RowsKeptUntilEnd | LeakClass::AugmentationPerFold => Severity::Warning,
        LeakClass::OptimizerRecreated | LeakClass::FigureNotClosed | LeakClass::HookNeverRemoved => {
            Severity::Error
        }
        _ if heavy => Severity::Error,
        _ => Severity::Warning,
    }
}
