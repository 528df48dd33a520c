//! A cache whose keys do not come back.

use caulk_core::LeakClass;

use crate::container::{Told, bound, proof, report};
use crate::context::Context;
use crate::memo::remembered;
use crate::rule::Rule;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::UnboundedCache,
    default: true,
    explanation: include_str!("unbounded_cache.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        // Numbers and names are worth neither a report nor a guess.
        if Weight::of(&kept.contents) < Weight::Host {
            return None;
        }
        let message = format!(
            "the cache `{}` gets keys that hardly come back: it grows {}",
            cx.text(kept.growth.container),
            kept.exposure.words()
        );
        let note = "stored under a key of its own";
        Some(Told { proof: proof(cx, kept), message, note, fix: bound(cx, kept) })
    });
    for memo in cx.analysis.memos() {
        let Some(found) = remembered(cx, &memo).filter(|found| found.class == LeakClass::UnboundedCache)
        else {
            continue;
        };
        let name = cx.function(memo.function);
        let message = format!(
            "`{name}` is called with values that hardly come back: its cache grows {}",
            found.exposure.words()
        );
        let chain: Vec<_> = cx.through(found.exposure).into_iter().collect();
        let proof = found.proof(cx);
        let diagnostic = cx.report(memo.decorator, name, message);
        diagnostic.proof = proof;
        diagnostic.weight = Weight::Host;
        diagnostic.chain = chain;
    }
}
