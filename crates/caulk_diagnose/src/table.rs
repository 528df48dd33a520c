//! The one table that decides severity and confidence.

use caulk_core::{Cause, Confidence, LeakClass, Severity};

use crate::claim::{Claim, Share, Standing, Witness};

impl Claim {
    /// How harmful it is.
    pub(crate) fn severity(&self) -> Severity {
        severity(self)
    }

    /// How sure it is.
    pub(crate) fn confidence(&self) -> Confidence {
        confidence(self.witness)
    }

    /// Is it more than advice?
    pub(crate) fn weighs(&self) -> bool {
        self.severity() > Severity::Info
    }
}

/// How sure a claim with such a witness is.
fn confidence(witness: Witness) -> Confidence {
    match witness {
        Witness::Exact | Witness::TracedLine => Confidence::Proved,
        Witness::OnlyLine | Witness::HeapLine => Confidence::Likely,
        Witness::SourcePattern | Witness::Signs => Confidence::Suspected,
    }
}

/// How harmful a claim is: by its standing, its cause or class, and its share of the growth.
fn severity(claim: &Claim) -> Severity {
    let own = match claim.standing {
        _ if claim.yields => Severity::Info,
        Standing::Light => Severity::Info,
        Standing::Partial => Severity::Warning,
        Standing::Whole => of_cause(&claim.cause).unwrap_or_else(|| of_class(claim.class, claim.heavy)),
    };
    match claim.share {
        Share::Open | Share::Leading => own,
        Share::Some => own.min(Severity::Warning),
        Share::Little => Severity::Info,
    }
}

/// Severity that the cause decides; `None` if the class does.
fn of_cause(cause: &Cause) -> Option<Severity> {
    let severity = match cause {
        Cause::Class | Cause::Grows(_) | Cause::LikeSibling { .. } => return None,
        Cause::NeverFreed(_)
        | Cause::Lengthened { .. }
        | Cause::Stored { .. }
        | Cause::Pattern { .. }
        | Cause::Profiler(_)
        | Cause::Segments { .. }
        | Cause::Exhausted { .. }
        | Cause::RetainedOnGpu(_)
        | Cause::Cycles { .. } => Severity::Error,
        Cause::Retained(_)
        | Cause::MayExplain { .. }
        | Cause::RecordedBackward { .. }
        | Cause::KeptPages { .. }
        | Cause::Counts { .. }
        | Cause::ProcessesLeft { .. }
        | Cause::SegmentsLeft { .. }
        | Cause::Peak { .. }
        | Cause::Gathered { .. }
        | Cause::StaleGradients
        | Cause::Copied { .. } => Severity::Warning,
        Cause::Waiting { .. } => Severity::Info,
    };
    Some(severity)
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
