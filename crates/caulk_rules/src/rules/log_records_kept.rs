//! A logging handler that keeps the records it gets.

use caulk_core::{Certainty, LeakClass, Proof};
use caulk_python::program::{Kinds, Literal, Root};

use crate::advice::advice;
use crate::container::{Told, bound, proof, report};
use crate::context::Context;
use crate::resource::reaches;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::LogRecordsKept,
    default: true,
    explanation: include_str!("log_records_kept.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let message = format!(
            "`{}` keeps every log record with all that was passed to the logger: it grows whenever something is logged",
            cx.text(kept.growth.container)
        );
        Some(Told {
            proof: proof(cx, kept),
            message,
            note: "the whole record is stored",
            fix: bound(cx, kept),
        })
    });
    memory_handlers(cx);
}

/// Records that are as good as never handed on: each takes a kilobyte or more.
const MANY: i64 = 100_000;

/// `MemoryHandler(capacity)`: without a target, a full buffer is not emptied; with one, it is when it is full.
///
/// Source: the reference of Python, `logging.handlers.MemoryHandler.flush`.
fn memory_handlers(cx: &mut Context<'_>) {
    let targets = cx.analysis.calls(&["logging.handlers.MemoryHandler.setTarget"]);
    let flushed = cx.analysis.calls(&["logging.handlers.MemoryHandler.flush"]);
    let mut found = Vec::new();
    for made in cx.analysis.calls(&["logging.handlers.MemoryHandler"]) {
        if made.root == Root::Test || found.contains(&made.at) {
            continue;
        }
        let target = made.argument(cx.analysis, Some(2), "target");
        let without = target.is_none_or(|target| target.only(Kinds::NONE)) && !reaches(cx, &made, &targets);
        let capacity = made.argument(cx.analysis, Some(0), "capacity").map(|capacity| capacity.literal);
        let (message, advised) = match capacity {
            _ if without => (
                "this handler has no target: its buffer is never emptied, and every record that is logged stays".to_owned(),
                "Give it a target: `MemoryHandler(capacity, target=handler)`.",
            ),
            Some(Literal::Int(capacity)) if capacity >= MANY && !reaches(cx, &made, &flushed) => (
                format!("this handler keeps up to {capacity} log records, each with all that was passed to the logger"),
                "Give it a smaller capacity, a hundred records say, or flush it in each epoch: `handler.flush()`.",
            ),
            _ => continue,
        };
        found.push(made.at);
        let function = cx.function(made.function).to_owned();
        let diagnostic = cx.report(made.at, &function, message);
        // How much is logged is not known.
        diagnostic.proof = Proof { repeats: Certainty::Likely, ..Proof::FULL };
        diagnostic.chain = vec![];
        diagnostic.fix = advice(advised);
    }
}
