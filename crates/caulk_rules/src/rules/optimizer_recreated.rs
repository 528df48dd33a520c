//! Optimizers that are made again and again and all kept.

use caulk_core::{LeakClass, Scope};
use caulk_python::FileId;
use caulk_python::program::{CallFact, FunctionId, Guards, Kinds, LoopId, Object, Root, Shape};

use crate::advice::advice;
use crate::container::{Told, proof, report};
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::of_call;
use crate::resource::keep_worst;
use crate::rule::Rule;
use crate::source::located;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::OptimizerRecreated,
    default: true,
    explanation: include_str!("optimizer_recreated.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let message = format!(
            "`{}` keeps every optimizer, each with moments as large as the model: it grows {}",
            cx.text(kept.growth.container),
            kept.exposure.words()
        );
        Some(Told {
            proof: proof(cx, kept),
            message,
            note: "the new one is stored beside the old ones",
            fix: None,
        })
    });
    groups_added(cx);
}

/// `optimizer.add_param_group(..)` of modules that are made again and again: the groups of the old ones stay.
fn groups_added(cx: &mut Context<'_>) {
    let made = cx.analysis.calls_giving(Kinds::OPTIMIZER);
    let mut found: Vec<(CallFact, Exposure)> = Vec::new();
    for call in cx.analysis.calls(&["torch.optim.Optimizer.add_param_group"]) {
        if call.root == Root::Test || call.guards.has(Guards::ONCE) {
            continue;
        }
        let duration = cx.analysis.piling(&call, std::iter::empty());
        let Some(exposure) = Exposure::outside(cx.analysis, &duration) else { continue };
        let made_anew = made.iter().any(|made| {
            cx.analysis.origin(&call.receiver) == Some(made.at)
                && made.around.contains(&exposure.through)
                && (!made.guards.has(Guards::ONCE) || owner_is_made_in(cx, made.function, exposure.through))
        });
        if !made_anew && exposure.scope == Scope::Run && cx.analysis.makes_models(exposure.through) {
            keep_worst(&mut found, call, exposure);
        }
    }
    found.retain(|(call, _)| !takes_groups_out(cx, call.at.file));
    for (call, exposure) in found {
        let function = cx.function(call.function).to_owned();
        let message = format!(
            "a group of parameters is added {} and none is removed: the optimizer keeps the parameters of old modules, and their moments",
            exposure.pace.words()
        );
        let chain: Vec<_> =
            cx.link_loop(exposure, "a new module in each turn of this loop").into_iter().collect();
        let proof = of_call(cx.analysis, &call, exposure);
        let diagnostic = cx.report(call.at, &function, message);
        diagnostic.proof = proof;
        diagnostic.weight = Weight::Host;
        diagnostic.chain = chain;
        diagnostic.fix = advice(
            "Make a new optimizer for the new module, or remove the group of the old one and its state.",
        );
    }
}

/// Whether the objects whose method a function is are made in a loop: what a method makes once it makes once for each.
fn owner_is_made_in(cx: &Context<'_>, function: FunctionId, id: LoopId) -> bool {
    let Some(class) = cx.analysis.function(function).class else { return false };
    // What nobody makes stands for whatever users make.
    let is_own = |known: &Object| known.shape == Shape::Instance(class) && known.at.is_some();
    let mut own = cx.analysis.objects().filter(|(_, known)| is_own(known)).peekable();
    own.peek().is_some() && own.all(|(object, _)| cx.analysis.made_in(object, id))
}

/// Whether something is done with the groups of an optimizer that may take some out.
fn takes_groups_out(cx: &Context<'_>, file: FileId) -> bool {
    const OUT: &[&str] = &["del ", ".pop(", ".remove(", ".clear(", "param_groups =", "param_groups[:] ="];
    let tree = cx.project().file(file).tree();
    let mut lines = cx.project().text(located(file, tree)).lines();
    lines.any(|line| line.contains("param_groups") && OUT.iter().any(|out| line.contains(out)))
}
