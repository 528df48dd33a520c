//! Caches whose keys are tensors: functions that remember, and dicts.

use caulk_core::LeakClass;

use crate::container::{Told, proof, report};
use crate::context::Context;
use crate::memo::remembered;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::CacheKeyedByTensor,
    default: true,
    explanation: include_str!("cache_keyed_by_tensor.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let message = format!(
            "the cache `{}` is keyed by tensors, which are equal to nothing but themselves: it never hits and grows {}",
            cx.text(kept.growth.container),
            kept.exposure.words()
        );
        Some(Told { proof: proof(cx, kept), message, note: "the key is a new tensor", fix: None })
    });
    functions(cx);
}

fn functions(cx: &mut Context<'_>) {
    for memo in cx.analysis.memos() {
        let Some(found) = remembered(cx, &memo).filter(|found| found.class == LeakClass::CacheKeyedByTensor)
        else {
            continue;
        };
        let name = cx.function(memo.function);
        let message = format!(
            "the cache of `{name}` is keyed by tensors, which are equal to nothing but themselves: it never hits and grows {}",
            found.exposure.words()
        );
        let chain: Vec<_> = cx.through(found.exposure).into_iter().collect();
        let fix = cx.analysis.lines(memo.decorator.file).uncache_fix(name);
        let short = name.rsplit('.').next().unwrap_or(name).to_owned();
        let proof = found.proof(cx);
        let diagnostic = cx.report(memo.decorator, name, message);
        diagnostic.proof = proof;
        diagnostic.container = short;
        diagnostic.chain = chain;
        diagnostic.fix = fix;
    }
}
