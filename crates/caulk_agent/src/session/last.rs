//! A look at what is known to grow while the process still can say: its supervisor asks for it as memory comes near to a
//! limit and before a signal that ends it, and at an orderly end it is taken where the last one was long ago.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use caulk_wire::Unit;
use pyo3::prelude::*;

use super::Session;
use super::cut::{Cut, Last};
use super::guard::guarded;
use crate::census::Census;
use crate::heap::Heap;
use crate::holders::Scope;
use crate::stopwatch::{monotonic, process_time};
use crate::suspects::Looking;
use crate::torch::Torch;
use crate::{board, passes};

/// What the look at an orderly end may cost beyond the budget: one part in so many of the process's CPU time.
const SHARE: u32 = 100;

/// Optimizer steps so far.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The look that was answered last.
static ANSWERED: AtomicU32 = AtomicU32::new(0);
/// The process itself has reason to look: an allocation was refused.
static OWN_REASON: AtomicBool = AtomicBool::new(false);

/// An optimizer step went by: a moment at which the heap can be looked through.
pub(super) fn stepped(py: Python<'_>, steps: u64) -> PyResult<()> {
    STEPS.store(steps, Ordering::Relaxed);
    look_if_asked(py)
}

/// Memory was refused: a look is taken at the next step, or at the end whatever it costs.
pub(super) fn look_soon() {
    OWN_REASON.store(true, Ordering::Relaxed);
}

/// Takes the look that the supervisor has asked for, or for which the process has reason, if it has not been taken yet.
pub(crate) fn look_if_asked(py: Python<'_>) -> PyResult<()> {
    let asked = board::looks_asked();
    let reason = OWN_REASON.load(Ordering::Relaxed);
    // What a backward pass lets go of must not be looked at.
    if (asked == ANSWERED.load(Ordering::Relaxed) && !reason) || passes::are_under_way() {
        return Ok(());
    }
    ANSWERED.store(asked, Ordering::Relaxed);
    OWN_REASON.store(false, Ordering::Relaxed);
    let result = guarded(|session| session.look_now(py, Last::Near)).unwrap_or(Ok(()));
    board::look_taken();
    result
}

impl Session {
    /// At an orderly end of a program with epochs.
    pub(super) fn look_once_more(&mut self, py: Python<'_>) -> PyResult<()> {
        let follows = self.tracked == Unit::Epoch && !self.suspects.is_empty();
        let price = self.census_costs.last().unwrap_or(Duration::MAX);
        let affordable = OWN_REASON.swap(false, Ordering::Relaxed)
            || self.budget.affords(price, Duration::ZERO)
            || price < process_time() / SHARE;
        if follows && affordable { self.look_now(py, Last::AtExit) } else { Ok(()) }
    }

    /// Looks at what is known to grow, or, where boundaries of this kind are what censuses are compared at, at everything.
    fn look_now(&mut self, py: Python<'_>, last: Last) -> PyResult<()> {
        let Some((before, at)) = self.last else { return Ok(()) };
        if before.of != 0 {
            // Its boundaries are another process's.
            return Ok(());
        }
        let steps = STEPS.load(Ordering::Relaxed).max(before.steps);
        let (unit, index) = if steps > 0 {
            (Unit::Steps, steps)
        } else {
            let seconds = monotonic().saturating_sub(at).as_secs();
            (Unit::Seconds, before.index + seconds.max(1))
        };
        self.boundary(
            py,
            Cut { unit, index, steps, phase: before.phase, of: 0, with_census: true, last: Some(last) },
        )
    }

    /// Takes in how long what is followed is, amid an epoch: new suspects cannot be distinguished there from what comes and goes.
    pub(super) fn compare_known(
        &mut self,
        heap: &mut Heap<'_>,
        census: Census,
        seq: u32,
        last: Option<Last>,
    ) {
        let types = self.largest_types(heap, &census);
        self.suspects.confirm_owners(heap, &census.alive);
        self.suspects.meet_known(heap, &census, seq, &mut self.channel);
        drop(census);
        // As in `compare`.
        let _overrides_off = Torch::new(heap.py);
        // At the end much has been let go of that was there at every epoch.
        if last != Some(Last::AtExit) {
            self.send_types(heap, types, seq);
        }
        let Self { budget, suspects, channel, sampler, epochs, .. } = self;
        if suspects.has_unexplained(Scope::User, false) {
            suspects.explain(heap, Scope::User, seq, channel);
        }
        suspects.follow_names(heap, seq, *sampler, channel);
        let looking = Looking { boundary: seq, epochs: *epochs, budget, sampler: *sampler };
        suspects.look(heap, &looking, channel);
    }
}
