//! Optimizers that step again and again while nothing clears the gradients of their parameters.
//!
//! A training error: memory does not grow.

use std::collections::BTreeSet;

use caulk_core::{LeakClass, SiteRole};
use caulk_python::Lines;
use caulk_python::program::{CallFact, Kinds, LoopId, Value};

use crate::context::Context;
use crate::fixes;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::GradientsNeverCleared,
    default: true,
    explanation: include_str!("gradients_never_cleared.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let training = Training::new(cx);
    let mut told = BTreeSet::new();
    for step in &training.steps {
        let all_ways = training.steps.iter().filter(|way| way.at == step.at);
        let Some(missing) = all_ways.map(|way| training.missing(cx, way)).collect::<Option<Vec<_>>>() else {
            continue;
        };
        if let Some(missing) = missing.first().filter(|_| told.insert(step.at)) {
            report(cx, step, missing);
        }
    }
}

/// What trains.
struct Training {
    steps: Vec<CallFact>,
    passes: Vec<CallFact>,
    clears: Vec<CallFact>,
}

/// A step without a clearing in reach.
struct Missing<'t> {
    /// The loop that steps.
    through: LoopId,
    /// The backward pass whose gradients it takes.
    pass: &'t CallFact,
    /// The clearing out of its reach.
    elsewhere: Option<&'t CallFact>,
}

impl Training {
    fn new(cx: &Context<'_>) -> Self {
        const CLEARS: &[&str] =
            &["torch.optim.Optimizer.zero_grad", "torch.nn.Module.zero_grad", "torch.Tensor.grad ="];
        let mut clears = cx.analysis.calls(CLEARS);
        let zeroed = cx.analysis.calls(&["torch.Tensor.zero_"]);
        clears.extend(zeroed.into_iter().filter(|call| cx.text(call.at).contains(".grad")));
        // A closure that is handed to the step clears what it differentiates.
        let mut steps = cx.analysis.calls(&["torch.optim.Optimizer.step"]);
        steps.retain(|call| call.argument.is_nothing() || call.argument.kinds.has(Kinds::OPTIMIZER));
        Self { steps, passes: cx.analysis.calls(&["torch.Tensor.backward"]), clears }
    }

    fn missing(&self, cx: &Context<'_>, step: &CallFact) -> Option<Missing<'_>> {
        let through = *step.around.iter().rev().find(|id| cx.analysis.repeats(**id))?;
        let beside = self.passes.iter().filter(|pass| pass.around == step.around);
        let before = beside.filter(|pass| pass.function == step.function && pass.at < step.at);
        let pass = before.max_by_key(|pass| pass.at)?;
        let mut elsewhere = None;
        for clear in self.clears.iter().filter(|clear| may_be_same(cx, step, clear)) {
            let outside = step.around.starts_with(&clear.around);
            if clear.around.contains(&through) || clear.function != step.function && !outside {
                return None;
            }
            elsewhere = Some(clear);
        }
        Some(Missing { through, pass, elsewhere })
    }
}

/// The optimizer that a call is about.
fn optimizer(call: &CallFact) -> &Value {
    if call.receiver.kinds.has(Kinds::OPTIMIZER) { &call.receiver } else { &call.argument }
}

/// Whether a clearing may be of the parameters that a step changes: a model's always may.
fn may_be_same(cx: &Context<'_>, step: &CallFact, clear: &CallFact) -> bool {
    let (stepped, cleared) = (optimizer(step), optimizer(clear));
    if !cleared.kinds.has(Kinds::OPTIMIZER) && !cx.text(clear.at).contains("opt") {
        return true;
    }
    match (cx.analysis.origin(stepped), cx.analysis.origin(cleared)) {
        (Some(one), Some(other)) => one == other,
        _ => receiver(cx, step) == receiver(cx, clear) || !stepped.kinds.has(Kinds::OPTIMIZER),
    }
}

/// What a method is called on, as it is written.
fn receiver(cx: &Context<'_>, call: &CallFact) -> String {
    let text = cx.text(call.at);
    let called = text.split('(').next().unwrap_or_default();
    called.rsplit_once('.').map_or_else(String::new, |(receiver, _)| receiver.to_owned())
}

fn report(cx: &mut Context<'_>, step: &CallFact, missing: &Missing<'_>) {
    let pass = missing.pass;
    let called = cx.text(pass.at).split('(').next().unwrap_or_default().to_owned();
    let by = receiver(cx, step);
    let message = format!(
        "gradients of all steps add up: nothing clears them between two calls of `{by}.step()`; a training error, \
         memory does not grow"
    );
    let mut chain = vec![
        cx.link(pass.statement, "adds to the gradients that are there"),
        cx.link(step.statement, "steps with the sum of all gradients so far"),
    ];
    chain.extend(
        missing.elsewhere.map(|clear| cx.link(clear.statement, "runs outside of the loop that steps")),
    );
    let header = cx.analysis.a_loop(missing.through).header;
    chain.extend(header.map(|header| cx.link(header, "nothing clears gradients in this loop")));
    let fix = fixes::at_line(cx.analysis, pass.at, Lines::zero_grad_fix);
    let stepping = cx.site(SiteRole::ReleasesMissing, step.at, step.function);
    let function = cx.function(pass.function).to_owned();
    let diagnostic = cx.report(pass.at, &function, message);
    diagnostic.container = called;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
    diagnostic.sites.push(stepping);
}
