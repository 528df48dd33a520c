//! A functools cache around a method of objects that are made again and again.

use caulk_core::{Certainty, LeakClass, Proof, Scope};
use caulk_python::program::MemoFact;

use crate::context::Context;
use crate::memo::{is_by_instance, remembered};
use crate::offered::{Offered, definition};
use crate::rule::Rule;
use crate::source::last_name;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::CachedMethod,
    default: true,
    explanation: include_str!("cached_method.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let offered = Offered::new(cx);
    let mut classes = Vec::new();
    for memo in cx.analysis.memos() {
        let Some(found) = remembered(cx, &memo) else {
            if let Some(class) = offered.class_of(cx, memo.function).filter(|class| !classes.contains(class))
                && memo.unbounded
                && is_by_instance(cx, &memo)
                && !is_of_the_class(cx, &memo)
            {
                classes.push(class);
                report_offered(cx, &memo);
            }
            continue;
        };
        if found.class != LeakClass::CachedMethod {
            continue;
        }
        let name = cx.function(memo.function);
        let message = format!(
            "`{name}` caches by `self`, and objects of its class are made {}: each stays in the cache",
            found.exposure.pace.words()
        );
        let chain: Vec<_> = cx.through(found.exposure).into_iter().collect();
        let fix = cx.analysis.lines(memo.decorator.file).uncache_fix(name);
        let proof = found.proof(cx);
        let diagnostic = cx.report(memo.decorator, name, message);
        diagnostic.proof = proof;
        diagnostic.weight = if found.tensors { Weight::Tensors } else { Weight::Host };
        diagnostic.chain = chain;
        diagnostic.fix = fix;
    }
}

/// A class method's first key is the class, and there is one class; a static method has no such key.
fn is_of_the_class(cx: &Context<'_>, memo: &MemoFact) -> bool {
    definition(cx, memo.function).is_none_or(|method| {
        let names = method.decorator_list.iter().filter_map(|decorator| last_name(&decorator.expression));
        names.into_iter().any(|name| matches!(name, "classmethod" | "staticmethod"))
    })
}

/// A method of a class whose objects somebody else makes.
fn report_offered(cx: &mut Context<'_>, memo: &MemoFact) {
    let name = cx.function(memo.function);
    let message =
        format!("`{name}` caches by `self`: every object of its class that is asked stays in the cache");
    let fix = cx.analysis.lines(memo.decorator.file).uncache_fix(name);
    let diagnostic = cx.report(memo.decorator, name, message);
    diagnostic.scope = Scope::Object;
    // Somebody outside makes the objects.
    diagnostic.proof = Proof { repeats: Certainty::Likely, ..Proof::FULL };
    diagnostic.fix = fix;
}
