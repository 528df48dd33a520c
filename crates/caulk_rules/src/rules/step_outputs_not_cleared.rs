//! Outputs of a Lightning module's steps, gathered for the end of the epoch and never cleared.

use caulk_core::LeakClass;
use caulk_python::Lines;

use crate::container::{Told, fix, proof, report};
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::StepOutputsNotCleared,
    default: true,
    explanation: include_str!("step_outputs_not_cleared.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let container = cx.text(kept.growth.container);
        let message = format!(
            "`{container}` gathers what steps put out and no hook empties it: it grows {}",
            kept.exposure.words()
        );
        let fix = fix(cx, kept, Lines::clear_fix);
        Some(Told { proof: proof(cx, kept), message, note: "gathered here", fix })
    });
}
