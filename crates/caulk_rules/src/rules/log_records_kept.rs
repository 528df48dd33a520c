//! A logging handler that keeps the records it gets.

use caulk_core::{Certainty, LeakClass, Proof};
use caulk_python::program::{Kinds, Root};

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
    handlers_without_target(cx);
}

/// `MemoryHandler(capacity)`: without a target, a full buffer is not emptied.
///
/// Source: the reference of Python, `logging.handlers.MemoryHandler.flush`.
fn handlers_without_target(cx: &mut Context<'_>) {
    let targets = cx.analysis.calls(&["logging.handlers.MemoryHandler.setTarget"]);
    let mut found = Vec::new();
    for made in cx.analysis.calls(&["logging.handlers.MemoryHandler"]) {
        let target = made.argument(cx.analysis, Some(2), "target");
        let without = target.is_none_or(|target| target.only(Kinds::NONE));
        if without && made.root != Root::Test && !found.contains(&made.at) && !reaches(cx, &made, &targets) {
            found.push(made.at);
            let function = cx.function(made.function).to_owned();
            let message = "this handler has no target: its buffer is never emptied, and every record that is logged stays";
            let diagnostic = cx.report(made.at, &function, message.to_owned());
            // How much is logged is not known.
            diagnostic.proof = Proof { repeats: Certainty::Likely, ..Proof::FULL };
            diagnostic.chain = vec![];
            diagnostic.fix = advice("Give it a target: `MemoryHandler(capacity, target=handler)`.");
        }
    }
}
