//! State that a model or solver is fed with again, and iterates that are stored with the graph of all iterations.

use caulk_core::LeakClass;

use crate::context::Context;
use crate::graphs::{report_carry, report_growth};
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::StateNotDetached,
    default: true,
    explanation: include_str!("state_not_detached.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for claim in cx.carries() {
        report_carry(
            cx,
            claim,
            "is fed back without `detach()`",
            "the new state hangs on the graph of the old",
        );
    }
    for claim in cx.growths() {
        report_growth(cx, claim, "stored with the graph of all iterations of its loop");
    }
}
