//! Running sums and averages of tensors that carry their graphs.

use caulk_core::LeakClass;

use crate::context::Context;
use crate::graphs::report_carry;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::LossKeptWithGraph,
    default: true,
    explanation: include_str!("loss_kept_with_graph.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for claim in cx.carries() {
        report_carry(
            cx,
            claim,
            "adds up tensors together with their autograd graphs",
            "the new graph is joined to that of all before",
        );
    }
}
