//! What a validation gathers and keeps through the training after it, because only the next one throws it away.

use caulk_core::{LeakClass, Scope};
use caulk_python::Location;
use caulk_python::program::{GrowthCase, GrowthFact, Holder, Kinds, LoopId, Root};

use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::NoReleaseAfterValidation,
    default: true,
    explanation: include_str!("no_release_after_validation.md"),
    check,
};

/// Hooks that run before the batches.
const STARTS: &[&str] =
    &["on_validation_epoch_start", "on_validation_start", "on_test_epoch_start", "on_test_start"];

fn check(cx: &mut Context<'_>) {
    for growth in cx.analysis.growths() {
        let found = growth.cases.iter().find_map(|case| emptied_first(cx, growth, case));
        if let Some(emptied) = found {
            report(cx, growth, emptied);
        }
    }
}

/// Where a container is emptied before a validation fills it, when it is emptied nowhere else.
fn emptied_first(cx: &Context<'_>, growth: &GrowthFact, case: &GrowthCase) -> Option<Location> {
    let held = matches!(
        cx.analysis.holder(case.object),
        Holder::Attribute(..)
            | Holder::ClassAttribute(..)
            | Holder::FunctionAttribute(..)
            | Holder::Global(_)
    );
    let kinds = cx.analysis.contents(&case.value).kinds;
    if !held || case.duration.root == Root::Test || !kinds.has(Kinds::TENSOR.with(Kinds::ARRAY)) {
        return None;
    }
    let batches = validation(cx, case)?;
    let releases = cx.analysis.releases(case.object);
    let first = releases.first().map(|release| cx.analysis.released_at(release))?;
    let all_before =
        releases.iter().all(|release| is_before(cx, cx.analysis.released_at(release), growth, batches));
    all_before.then_some(first)
}

/// The loop of a validation that is a part of a training.
fn validation(cx: &Context<'_>, case: &GrowthCase) -> Option<LoopId> {
    let start = case.duration.around.len() - case.duration.growing.len();
    let inside = case.duration.around[..start].iter().any(|id| cx.analysis.trains(*id));
    let trains = case.duration.growing.iter().any(|id| cx.analysis.trains(*id));
    let batches = case.duration.growing.iter().find(|id| cx.analysis.repeats(**id)).copied()?;
    (inside && !trains && batches != LoopId::SAMPLES).then_some(batches)
}

fn is_before(cx: &Context<'_>, emptied: Location, growth: &GrowthFact, batches: LoopId) -> bool {
    let Some(function) = cx.analysis.function_around(emptied) else { return false };
    let name = function.name.rsplit('.').next().unwrap_or_default();
    let loop_at = cx.analysis.a_loop(batches).at.unwrap_or(growth.statement);
    STARTS.contains(&name)
        || emptied.file == loop_at.file && loop_at.is_in(function.at) && emptied.range < loop_at.range
}

fn report(cx: &mut Context<'_>, growth: &GrowthFact, emptied: Location) {
    let container = cx.text(growth.container);
    let message = format!(
        "`{container}` is emptied only when the next validation begins: what one gathers stays through the training after it"
    );
    let chain = vec![
        cx.link(growth.statement, "gathered for each batch"),
        cx.link(emptied, "emptied here, before, and nowhere afterwards"),
    ];
    let function = cx.function(growth.function).to_owned();
    let diagnostic = cx.report(growth.container, &function, message);
    diagnostic.scope = Scope::Peak;
    diagnostic.chain = chain;
}
