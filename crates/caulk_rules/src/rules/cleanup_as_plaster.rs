//! Cleaning up in every step.

use caulk_core::{LeakClass, Scope};
use caulk_python::program::{Guards, Root};

use crate::context::Context;
use crate::exposure::{Exposure, Pace};
use crate::resource::keep_worst;
use crate::rule::Rule;
use crate::source::callee;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::CleanupAsPlaster,
    default: false,
    explanation: include_str!("cleanup_as_plaster.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let mut found = Vec::new();
    for call in cx.analysis.calls(&["torch.cuda.empty_cache", "gc.collect"]) {
        let rare = Guards::MODULO.with(Guards::CAUGHT).with(Guards::ONCE);
        if call.root == Root::Test || call.guards.has(rare) {
            continue;
        }
        let duration = cx.analysis.piling(&call, std::iter::empty());
        let exposure = Exposure::outside(cx.analysis, &duration);
        if let Some(exposure) = exposure.filter(|exposure| exposure.pace != Pace::Epoch) {
            keep_worst(&mut found, call, exposure);
        }
    }
    for (call, exposure) in found {
        let container = callee(cx.project(), call.at);
        let message = format!(
            "`{container}` runs {}: it costs time each time, and frees nothing that something still refers to",
            exposure.pace.words()
        );
        let chain = cx.link_loop(exposure, "each time this loop turns").into_iter().collect();
        let function = cx.function(call.function).to_owned();
        let diagnostic = cx.report(call.at, &function, message);
        diagnostic.container = container;
        diagnostic.scope = Scope::Peak;
        diagnostic.chain = chain;
    }
}
