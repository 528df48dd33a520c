//! A functools cache around a method of objects that are made again and again.

use caulk_core::{LeakClass, Severity};

use crate::context::Context;
use crate::memo::remembered;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::CachedMethod,
    severity: Severity::Error,
    default: true,
    explanation: include_str!("cached_method.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for memo in cx.analysis.memos() {
        let Some(found) = remembered(cx, &memo).filter(|found| found.class == LeakClass::CachedMethod) else {
            continue;
        };
        let name = cx.function(memo.function);
        let message = format!(
            "`{name}` caches by `self`, and objects of its class are made {}: each stays in the cache",
            found.exposure.pace.words()
        );
        let chain: Vec<_> = cx.through(found.exposure).into_iter().collect();
        let fix = cx.analysis.lines(memo.decorator.file).uncache_fix(name);
        let diagnostic = cx.report(memo.decorator, name, message);
        diagnostic.severity = if found.tensors { Severity::Error } else { Severity::Warning };
        diagnostic.chain = chain;
        diagnostic.fix = fix;
    }
}
