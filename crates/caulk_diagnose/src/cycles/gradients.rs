//! Gradients that hold the graphs that made them, in a program that records its backward passes.
//!
//! `backward(create_graph=True)` leaves each gradient with the graph that made it, which holds the parameter, which holds
//! the gradient: a cycle in C++, where neither a census nor the garbage collector sees it (torch's documentation of
//! `torch.Tensor.backward`, `create_graph`).

use caulk_core::{Cause, Evidence, Series, SiteRole};

use crate::claim::{Observed, Standing};
use crate::files::Files;
use crate::judged::Judged;
use crate::process::Process;
use crate::{place, remedy};

/// The backward pass that makes cycles, for growth of which so much is `open`.
pub(super) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    open: f64,
) -> Option<Observed> {
    let (scale, located) = (judged.scale?, place::recorded_backward(files, process)?);
    // Those that are returned (`torch.autograd.grad`) are no parameter's `grad`: nothing closes the cycle.
    let calls = |name: &str| {
        located.source.lines().calls(name).iter().any(|call| located.spot.covers(call.spot.line))
    };
    if calls("grad") && !calls("backward") {
        return None;
    }
    let growth = scale.growth(Series::InUse, open);
    let cause = Cause::RecordedBackward { rate: growth.rate(), call: located.container.clone() };
    Some(Observed {
        standing: Standing::Whole,
        sites: vec![located.spot.site(&files.display(&located.path), SiteRole::Grows)],
        container: located.container.clone(),
        process: process.reference(),
        growth: Some(growth),
        evidence: vec![Evidence::Backward],
        remedy: Some(remedy::of_cause(&cause, Some(&located), "grad")),
        ..Observed::of(cause)
    })
}
