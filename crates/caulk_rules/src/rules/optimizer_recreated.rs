//! Optimizers that are made again and again and all kept.

use caulk_core::{LeakClass, Severity};

use crate::container::{Told, report};
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::OptimizerRecreated,
    severity: Severity::Error,
    default: true,
    explanation: include_str!("optimizer_recreated.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let message = format!(
            "`{}` keeps every optimizer, each with moments as large as the model: it grows {}",
            cx.text(kept.growth.container),
            kept.exposure.words()
        );
        Some(Told {
            severity: Severity::Error,
            message,
            note: "the new one is stored beside the old ones",
            fix: None,
        })
    });
}
