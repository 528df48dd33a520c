//! A list that is added to at every step for the whole run.

use caulk_core::LeakClass;

use crate::container::{history, report};
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::UnboundedHistory,
    default: true,
    explanation: include_str!("unbounded_history.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| history(cx, kept, "the history"));
}
