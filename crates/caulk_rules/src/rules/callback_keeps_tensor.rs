//! Functions that are stored again and again and hold tensors.

use caulk_core::LeakClass;

use crate::container::{Told, proof, report};
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::CallbackKeepsTensor,
    default: true,
    explanation: include_str!("callback_keeps_tensor.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let message = format!(
            "`{}` keeps functions that hold tensors: it grows {}",
            cx.text(kept.growth.container),
            kept.exposure.words()
        );
        Some(Told {
            proof: proof(cx, kept),
            message,
            note: "the function is stored, and what it uses with it",
            fix: None,
        })
    });
}
