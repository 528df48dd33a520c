//! Augmented data that is kept once for every fold although no fold changes it.

use caulk_core::LeakClass;
use caulk_python::program::{Growth, GrowthCase, GrowthFact, Guards, Kinds, LoopKind, Shape, Traits, Value};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::of_case;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::AugmentationPerFold,
    default: true,
    explanation: include_str!("augmentation_per_fold.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for growth in cx.analysis.growths() {
        let found = growth.cases.iter().find_map(|case| kept(cx, growth, case).map(|found| (found, case)));
        if let Some((exposure, case)) = found {
            report(cx, growth, case, exposure);
        }
    }
}

/// A case in which each fold adds entries of its own to a cache, with values that do not depend on it.
pub(crate) fn kept(cx: &Context<'_>, growth: &GrowthFact, case: &GrowthCase) -> Option<Exposure> {
    let cached = growth.how == Growth::Store && case.duration.guards.has(Guards::MISSING);
    let contents = cx.analysis.contents(&case.value);
    let large = Kinds::TENSOR.with(Kinds::ARRAY).with(Kinds::UNKNOWN).with(Kinds::TABLE);
    if !cached
        || !names_fold_and_more(cx, &case.key)
        || contents.traits.has(Traits::FOLD)
        || !contents.kinds.has(large)
    {
        return None;
    }
    Exposure::of(cx.analysis, &case.duration, cx.analysis.holder(case.object))
}

/// `(fold, path)`, `f"{fold}/{path}"`: more than the fold alone.
fn names_fold_and_more(cx: &Context<'_>, key: &Value) -> bool {
    if !key.traits.has(Traits::FOLD) {
        return false;
    }
    let in_tuple = key.objects.iter().any(|object| {
        let object = cx.analysis.object(object);
        object.shape == Shape::Tuple && object.fields.values().any(|part| !part.traits.has(Traits::FOLD))
    });
    in_tuple || key.kinds.has(Kinds::TEXT)
}

fn report(cx: &mut Context<'_>, growth: &GrowthFact, case: &GrowthCase, exposure: Exposure) {
    let container = cx.text(growth.container);
    let message = format!(
        "`{container}` is a cache whose key names the fold although the value does not depend on it: every fold keeps its own copy of the same data"
    );
    let mut chain = vec![cx.link(growth.statement, "the same value is stored again for the next fold")];
    chain.extend(cx.made(case.object));
    let folds = case.duration.around.iter().find(|id| cx.analysis.a_loop(**id).kind == LoopKind::Folds);
    let header = folds.and_then(|id| cx.analysis.a_loop(*id).header);
    chain.extend(header.map(|header| cx.link(header, "the folds")));
    let function = cx.function(growth.function).to_owned();
    let proof = of_case(cx.analysis, case, growth.function);
    let diagnostic = cx.report(growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.chain = chain;
    diagnostic.fix =
        advice("Leave the fold out of the key: split by original video, and let all folds share one copy.");
}
