//! A list or dict as a default argument, which every call adds to.

use caulk_core::LeakClass;

use crate::container::{Told, proof, report};
use crate::context::{Context, shortened};
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::MutableDefaultGrows,
    default: true,
    explanation: include_str!("mutable_default_grows.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let container = cx.text(kept.growth.container);
        let message = format!(
            "`{}` is a default that all calls share: it grows {}",
            shortened(&container),
            kept.exposure.words()
        );
        Some(Told { proof: proof(cx, kept), message, note: "added to the default", fix: None })
    });
}
