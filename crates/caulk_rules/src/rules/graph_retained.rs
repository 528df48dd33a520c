//! Graphs that outlive their backward pass: gradients zeroed in place after `create_graph=True`, terms that are stored
//! after `retain_graph=True`.

use std::collections::BTreeSet;

use caulk_core::{LeakClass, Proof, Scope, SiteRole};
use caulk_python::Lines;
use caulk_python::program::{CallFact, Kinds};

use crate::claims::asks_for;
use crate::context::Context;
use crate::fixes;
use crate::graphs::report_growth;
use crate::proven::repeats_through;
use crate::rule::Rule;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::GraphRetained,
    default: true,
    explanation: include_str!("graph_retained.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for claim in cx.growths() {
        report_growth(cx, claim, "stored while the backward pass keeps its graph");
    }
    check_gradients(cx);
}

/// With `create_graph=True` the gradients carry graphs, and zeroing them in place leaves these where they are.
fn check_gradients(cx: &mut Context<'_>) {
    let passes = cx.analysis.calls(&["torch.Tensor.backward", "torch.autograd.backward"]);
    let recorded = passes.iter().filter(|call| asks_for(cx.analysis, call, "create_graph"));
    let recorded: Vec<&CallFact> = recorded.filter(|call| repeats(cx, call)).collect();
    if recorded.is_empty() {
        return;
    }
    let dropped = cx.analysis.calls(&["torch.Tensor.grad ="]);
    let dropped: Vec<&CallFact> = dropped.iter().filter(|call| call.argument.only(Kinds::NONE)).collect();
    let mut zeroed = cx.analysis.calls(&["torch.Tensor.zero_"]);
    zeroed.retain(|zero| cx.text(zero.at).contains(".grad."));
    let mut told = BTreeSet::new();
    for zero in &zeroed {
        let pass = recorded.iter().find(|pass| share_a_training(cx, pass, zero));
        let kept = !dropped.iter().any(|drop| share_a_training(cx, drop, zero));
        if let Some(pass) = pass.filter(|_| kept && told.insert(zero.at)) {
            report_gradients(cx, pass, zero);
        }
    }
}

fn repeats(cx: &Context<'_>, call: &CallFact) -> bool {
    call.around.iter().any(|id| cx.analysis.repeats(*id))
}

fn share_a_training(cx: &Context<'_>, one: &CallFact, other: &CallFact) -> bool {
    one.around.iter().any(|id| cx.analysis.repeats(*id) && other.around.contains(id))
}

fn report_gradients(cx: &mut Context<'_>, pass: &CallFact, zero: &CallFact) {
    let zeroing = cx.text(zero.at);
    let gradient = zeroing.split(".zero_").next().unwrap_or_default().to_owned();
    let message = format!(
        "`{gradient}` carries the graph of the backward pass, and zeroing it in place leaves that there: the graph \
         gets longer at every step, for the whole run"
    );
    let chain = vec![
        cx.link(pass.statement, "`create_graph=True` makes gradients that carry graphs themselves"),
        cx.link(
            zero.statement,
            "the values become zero, the graph stays and the next gradient is added to it",
        ),
    ];
    let fix = fixes::at_line(cx.analysis, zero.at, Lines::grad_none_fix);
    let made = cx.site(SiteRole::Allocates, pass.at, pass.function);
    let function = cx.function(zero.function).to_owned();
    let proof = Proof { repeats: repeats_through(cx.analysis, &zero.around), ..Proof::FULL };
    let diagnostic = cx.report(zero.at, &function, message);
    diagnostic.container = gradient;
    diagnostic.scope = Scope::Run;
    diagnostic.proof = proof;
    diagnostic.weight = Weight::Graphs;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
    diagnostic.sites.push(made);
}
