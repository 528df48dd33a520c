//! What a data set keeps of every sample that it is asked for: each worker of a `DataLoader` has its own.

use caulk_core::LeakClass;
use caulk_python::program::{
    Growth, GrowthCase, GrowthFact, Guards, Holder, Kinds, LoopId, Shape, Traits, Value,
};

use crate::advice::advice;
use crate::classify::is_limited;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::of_case;
use crate::rule::Rule;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::WorkerMemoryGrows,
    default: true,
    explanation: include_str!("worker_memory_grows.md"),
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

/// A case in which every sample leaves something behind.
pub(crate) fn kept(cx: &Context<'_>, growth: &GrowthFact, case: &GrowthCase) -> Option<Exposure> {
    let kept = cx.analysis.holder(case.object) != Holder::Local && !is_limited(case);
    if !kept || !case.duration.growing.contains(&LoopId::SAMPLES) {
        return None;
    }
    let new = match growth.how {
        // What is put in when it is missing is put in once.
        Growth::Append | Growth::Extend => !case.duration.guards.has(Guards::MISSING),
        Growth::Store | Growth::Add => {
            let key = if growth.how == Growth::Store { &case.key } else { &case.value };
            never_comes_back(cx, key)
        }
        Growth::Put | Growth::Concatenate | Growth::Link => false,
    };
    if !new {
        return None;
    }
    Exposure::of(cx.analysis, &case.duration, cx.analysis.holder(case.object))
}

/// A key with something random beside something else: a crop of an image, not one of so many images.
fn never_comes_back(cx: &Context<'_>, key: &Value) -> bool {
    let composed = key.kinds.has(Kinds::TEXT)
        || key.objects.iter().any(|object| {
            let object = cx.analysis.object(object);
            object.shape == Shape::Tuple && object.fields.len() > 1
        });
    key.traits.has(Traits::UNIQUE.with(Traits::DRAWN)) && composed
}

fn report(cx: &mut Context<'_>, growth: &GrowthFact, case: &GrowthCase, exposure: Exposure) {
    let container = cx.text(growth.container);
    let why = match growth.how {
        Growth::Store | Growth::Add => "under keys that do not come back",
        _ => "of every sample",
    };
    let message = format!(
        "`{container}` keeps an entry {why}: it grows in every worker of the DataLoader for as long as the worker lives"
    );
    let mut chain = vec![cx.link(growth.statement, "kept when a sample is asked for")];
    chain.extend(cx.made(case.object));
    let contents = cx.analysis.contents(&case.value);
    let function = cx.function(growth.function).to_owned();
    let proof = of_case(cx.analysis, case, growth.function);
    let diagnostic = cx.report(growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.weight = if contents.is_plain() { Weight::Host } else { Weight::Tensors };
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Give the sample back without keeping it, or cache what comes before anything random, by its index.",
    );
}
