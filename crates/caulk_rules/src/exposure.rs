//! How bad it is that something grows: for how long, how often, in which loops.

use caulk_core::Scope;
use caulk_python::Analysis;
use caulk_python::program::{Chain, Duration, Guards, Holder, LoopId, LoopKind, Root};

use crate::source::{is_ended_from_outside, never_left, statement_at};

/// How often something grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pace {
    /// Once per epoch or fold.
    Epoch,
    /// Once per batch of an evaluation, or per sample.
    Batch,
    /// Once per training step or call of a hook.
    Step,
}

impl Pace {
    /// As a person says it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Epoch => "once per epoch",
            Self::Batch => "once per batch",
            Self::Step => "at every step",
        }
    }
}

/// What growing for a duration means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exposure {
    pub(crate) scope: Scope,
    pub(crate) pace: Pace,
    /// The outermost loop in which it grows.
    pub(crate) through: LoopId,
    /// The innermost loop in which it grows.
    pub(crate) inner: LoopId,
}

impl Exposure {
    /// `None` where nothing repeats: it grows within one step, or in loops over a handful of things.
    pub(crate) fn of(analysis: &Analysis, duration: &Duration, holder: Holder) -> Option<Self> {
        Self::judged(analysis, duration, holder == Holder::Local)
    }

    /// The same for what is kept outside of the program's own variables: by a library, by the system.
    ///
    /// What somebody may call back, is not known to be called again and again.
    pub(crate) fn outside(analysis: &Analysis, duration: &Duration) -> Option<Self> {
        Self::judged(analysis, duration, false).filter(|exposure| exposure.through != LoopId::CALLBACKS)
    }

    /// Of what happens in loops and is never undone.
    pub(crate) fn around(analysis: &Analysis, loops: &Chain) -> Option<Self> {
        let duration = Duration {
            growing: loops.clone(),
            around: loops.clone(),
            guards: Guards::default(),
            root: Root::Module,
            released_by: None,
            of_call: false,
        };
        Self::outside(analysis, &duration)
    }

    fn judged(analysis: &Analysis, duration: &Duration, local: bool) -> Option<Self> {
        let start = duration.around.len() - duration.growing.len();
        let step = duration.around.iter().rposition(|id| analysis.trains(*id) && analysis.is_step(*id));
        if step.is_some_and(|step| start > step) {
            return None;
        }
        let mut repeating = duration.growing.iter().copied().filter(|id| analysis.repeats(*id));
        let through = repeating.next()?;
        let inner = repeating.next_back().unwrap_or(through);
        let pace = if duration.growing.iter().any(|id| analysis.trains(*id) && analysis.is_step(*id))
            || inner == LoopId::CALLBACKS
        {
            Pace::Step
        } else if matches!(analysis.a_loop(inner).kind, LoopKind::Epochs | LoopKind::Folds) {
            Pace::Epoch
        } else {
            Pace::Batch
        };
        let outside = duration.around[..start].iter().any(|id| analysis.repeats(*id));
        let trains = duration.growing.iter().any(|id| analysis.trains(*id));
        // So does an object that only a function has which is still running, when it goes through its loop once.
        let once = through == inner && analysis.a_loop(inner).kind != LoopKind::Epochs;
        let gathers = duration.of_call && once && !trains;
        let local = local || gathers && duration.growing.iter().all(|id| ends(analysis, *id));
        // A variable dies with its function, which goes through the batches of an evaluation, or of one epoch.
        let passes_once = through == inner && matches!(analysis.a_loop(inner).kind, LoopKind::Batches);
        // What is made or emptied before each of a few passes is gone when the last is done with.
        let local = local || passes_once && start > 0;
        let scope = match local {
            true if !trains => Scope::Peak,
            true if passes_once => Scope::Epoch,
            _ if outside => Scope::Epoch,
            _ => Scope::Run,
        };
        Some(Self { scope, pace, through, inner })
    }

    /// The worse of two.
    pub(crate) fn worse(self, other: Self) -> Self {
        let rank = |exposure: &Self| {
            let long = match exposure.scope {
                Scope::Run | Scope::Object => 2,
                Scope::Epoch => 1,
                Scope::Peak => 0,
            };
            (long, exposure.pace)
        };
        if rank(&other) > rank(&self) { other } else { self }
    }

    /// "at every step, for the whole run".
    pub(crate) fn words(self) -> String {
        let long = match self.scope {
            Scope::Run => "for the whole run",
            Scope::Epoch => "until the epoch ends",
            Scope::Peak => "until the function is done",
            Scope::Object => "for each object that is made",
        };
        format!("{}, {long}", self.pace.words())
    }
}

/// Whether a loop comes to an end by what it goes through.
fn ends(analysis: &Analysis, id: LoopId) -> bool {
    let statement = |at| statement_at(analysis.project(), at);
    let lasts = |stmt| never_left(stmt) || is_ended_from_outside(stmt);
    analysis.a_loop(id).at.is_some_and(|at| !statement(at).is_some_and(lasts))
}
