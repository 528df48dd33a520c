//! A container of the module or class that is added to for the whole run.

use caulk_core::LeakClass;

use crate::container::{history, report};
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::GlobalAccumulation,
    default: true,
    explanation: include_str!("global_accumulation.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| history(cx, kept, "the global"));
}
