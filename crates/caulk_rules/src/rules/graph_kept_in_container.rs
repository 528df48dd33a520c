//! Tensors stored with their graphs in a container that outlives the step.

use caulk_core::LeakClass;

use crate::context::Context;
use crate::graphs::report_growth;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::GraphKeptInContainer,
    default: true,
    explanation: include_str!("graph_kept_in_container.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for claim in cx.growths() {
        report_growth(cx, claim, "stored here with its graph");
    }
}
