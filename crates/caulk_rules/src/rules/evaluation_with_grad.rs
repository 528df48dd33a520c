//! Loops over batches that evaluate and record autograd graphs for nobody.

use std::collections::BTreeSet;

use caulk_core::{LeakClass, Scope};
use caulk_python::program::{ApplicationFact, FunctionId, LoopId, LoopKind, Root};

use crate::context::{Context, shortened};
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::EvaluationWithGrad,
    default: true,
    explanation: include_str!("evaluation_with_grad.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let evaluations = cx.analysis.calls(&["torch.nn.Module.eval"]);
    let evaluating: BTreeSet<FunctionId> = evaluations.iter().map(|call| call.function).collect();
    let applications = cx.analysis.applications();
    let mut told: BTreeSet<LoopId> = kept(cx);
    for application in &applications {
        let Some(through) = batches(cx, application) else { continue };
        let ways = || applications.iter().filter(|way| way.around.contains(&through));
        let records = ways().all(|way| way.recording && way.root != Root::Test);
        let function = cx.analysis.a_loop(through).function;
        let evaluates =
            function.is_some_and(|function| evaluating.contains(&function) && !switches(cx, function));
        if records && evaluates && told.insert(through) {
            report(cx, application, through);
        }
    }
}

/// The loop over batches around an application, unless something is differentiated in it.
fn batches(cx: &Context<'_>, application: &ApplicationFact) -> Option<LoopId> {
    let inner =
        *application.around.iter().rev().find(|id| cx.analysis.a_loop(**id).kind == LoopKind::Batches)?;
    (!application.around.iter().any(|id| cx.analysis.trains(*id) && cx.analysis.is_step(*id)))
        .then_some(inner)
}

/// Loops of which something worse is told, with this as a part of its reason.
fn kept(cx: &Context<'_>) -> BTreeSet<LoopId> {
    let growths = cx.claims.growths.iter().map(|claim| claim.exposure.inner);
    let carries = cx.claims.carries.iter().map(|claim| claim.exposure.inner);
    let differentiates = cx.analysis.calls(&["torch.autograd.grad", "torch.Tensor.backward"]);
    growths.chain(carries).chain(differentiates.into_iter().flat_map(|call| call.around)).collect()
}

/// Whether a function decides itself whether graphs are recorded.
fn switches(cx: &Context<'_>, function: FunctionId) -> bool {
    let text = cx.project().text(cx.analysis.function(function).at);
    ["set_grad_enabled", "no_grad", "inference_mode", "requires_grad"].iter().any(|word| text.contains(word))
}

fn report(cx: &mut Context<'_>, application: &ApplicationFact, through: LoopId) {
    let (Some(header), Some(function)) =
        (cx.analysis.a_loop(through).header, cx.analysis.a_loop(through).function)
    else {
        return;
    };
    let made = shortened(&cx.text(application.at));
    let message =
        format!("this loop evaluates and records the graph of `{made}`, which nobody differentiates");
    let chain = vec![
        cx.link(header, "no `torch.no_grad()` or `torch.inference_mode()` around it, here or in its callers"),
        cx.link(application.statement, "keeps what its backward pass would need until its result is gone"),
    ];
    let function = cx.function(function).to_owned();
    let diagnostic = cx.report(header, &function, message);
    diagnostic.scope = Scope::Peak;
    diagnostic.chain = chain;
}
