//! Loaders with workers that are made anew in every epoch.

use caulk_core::{Certainty, LeakClass, Proof, Scope};
use caulk_python::program::{CallFact, GrowthFact, Kinds, Literal, LoopId, LoopKind, Root, Traits, Value};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::repeats_through;
use crate::resource::comes_back;
use crate::rule::Rule;
use crate::rules::worker_copy_on_write::has_workers;
use crate::source::callee;
use crate::twins::Cause;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::LoaderPerEpoch,
    default: true,
    explanation: include_str!("loader_per_epoch.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let growths = cx.analysis.growths();
    let mut seen = Vec::new();
    for made in cx.analysis.calls(&["torch.utils.data.DataLoader"]) {
        if made.root == Root::Test || !has_workers(cx, &made) || seen.contains(&made.at) {
            continue;
        }
        if comes_back(cx, &made) {
            continue;
        }
        if let Some(epochs) = epochs_around(cx, &made) {
            seen.push(made.at);
            let kept = is_kept(cx, &made, growths);
            report(cx, &made, epochs, kept);
        }
    }
}

/// The epochs in which the same loader is made again.
fn epochs_around(cx: &Context<'_>, made: &CallFact) -> Option<LoopId> {
    let innermost = made.around.iter().rev().find(|id| cx.analysis.repeats(**id)).copied()?;
    let a_loop = cx.analysis.a_loop(innermost);
    let place = a_loop.at?;
    let of_epoch = |value: &Value| {
        value.traits.has(Traits::COUNTER.with(Traits::UNIQUE).with(Traits::FOLD))
            || value
                .objects
                .iter()
                .any(|object| cx.analysis.object(object).at.is_some_and(|at| at.is_in(place)))
    };
    let epochs = a_loop.kind == LoopKind::Epochs && cx.analysis.trains(innermost);
    (epochs && !made.given.iter().any(|(_, value)| of_epoch(value))).then_some(innermost)
}

/// Workers that stay, of a loader that is stored.
fn is_kept(cx: &Context<'_>, made: &CallFact, growths: &[GrowthFact]) -> bool {
    let stay = made.argument(cx.analysis, None, "persistent_workers");
    let stored = || {
        growths.iter().any(|growth| {
            growth.cases.iter().any(|case| {
                case.value.kinds.has(Kinds::LOADER)
                    && Exposure::of(cx.analysis, &case.duration, cx.analysis.holder(case.object)).is_some()
            })
        })
    };
    stay.is_some_and(|stay| stay.literal == Literal::Bool(true)) && stored()
}

fn report(cx: &mut Context<'_>, made: &CallFact, epochs: LoopId, kept: bool) {
    let container = callee(cx.project(), made.at);
    let message = if kept {
        format!(
            "`{container}` starts persistent workers in every epoch, and the loaders are kept: so are all workers"
        )
    } else {
        format!(
            "`{container}` is made anew in every epoch: its workers start, import and read their index again"
        )
    };
    let mut chain = vec![cx.link(made.at, "workers of its own for each loader")];
    let header = cx.analysis.a_loop(epochs).header;
    chain.extend(header.map(|header| cx.link(header, "the epochs")));
    let function = cx.function(made.function).to_owned();
    let cause = Some(Cause::Called(made.name));
    let proof = Proof {
        repeats: repeats_through(cx.analysis, &[epochs]),
        unreleased: Certainty::proven_if(kept, Certainty::Assumed),
        ..Proof::FULL
    };
    let diagnostic = cx.report_due_to(cause, made.at, &function, message);
    diagnostic.container = container;
    diagnostic.scope = if kept { Scope::Run } else { Scope::Peak };
    diagnostic.proof = proof;
    diagnostic.chain = chain;
    diagnostic.fix = advice("Make the loader once, before the epochs, with `persistent_workers=True`.");
}
