//! Gradients that hold the graphs that made them, in a program that records its backward passes.
//!
//! `backward(create_graph=True)` leaves each gradient with the graph that made it, which holds the parameter, which holds
//! the gradient: a cycle in C++, where neither a census nor the garbage collector sees it (torch's documentation of
//! `torch.Tensor.backward`, `create_graph`).

use caulk_core::{
    Bytes, Confidence, Evidence, Finding, Growth, LeakClass, Scope, Series, Severity, SiteRole,
};

use crate::process::Process;
use crate::verdicts::{Judged, unit_name};
use crate::{Files, fix, place};

/// The backward pass that makes cycles, for growth of which so much is `open`.
pub(super) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    open: f64,
) -> Option<Finding> {
    let (scale, located) = (judged.scale?, place::recorded_backward(files, process)?);
    let class = LeakClass::GraphRetained;
    let unit = unit_name(scale.verdict_unit());
    let growth = Growth {
        unit: scale.verdict_unit(),
        series: Series::InUse,
        bytes_per_epoch: scale.per_epoch(open),
        bytes_per_unit: open,
        elements_per_epoch: None,
        elements_per_unit: 0.0,
        interval: None,
        elements: 0,
    };
    let text = "`create_graph=True` was given here; gradients and the graphs that made them hold each other, where the \
                garbage collector does not see it";
    Some(Finding {
        class,
        confidence: Confidence::Suspected,
        scope: Scope::Run,
        severity: Severity::Warning,
        message: format!(
            "memory grows by {} per {unit} that no container holds, and `{}` records its own graph: {}",
            Bytes::signed(open),
            located.container,
            class.summary()
        ),
        sites: vec![located.spot.site(&files.display(&located.path), SiteRole::Grows)],
        container: located.container.clone(),
        holder: String::new(),
        holder_path: Vec::new(),
        chain: Vec::new(),
        process: process.reference(),
        growth: Some(growth),
        pinned: None,
        evidence: vec![Evidence { kind: "backward".into(), text: text.into() }],
        fix: fix::of(class, Some(&located), "grad"),
        twins: Vec::new(),
    })
}
