//! Handlers that are added to loggers again and again: `logging` keeps every logger for good, and it its handlers.
//!
//! Source: the reference of Python, "logging", `getLogger` and `Logger.addHandler`. A handler that a logger has is not added
//! to it once more.

use caulk_core::{Certainty, Proof};
use caulk_python::FileId;
use caulk_python::program::{CallFact, FunctionId, Guards, Root};
use ruff_python_ast::{CmpOp, Expr, Stmt};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::of_call;
use crate::resource::keep_worst;
use crate::source::{body_around, expression_at, located};

pub(super) fn check(cx: &mut Context<'_>) {
    let memos: Vec<FunctionId> = cx.analysis.memos().iter().map(|memo| memo.function).collect();
    let mut found: Vec<(CallFact, Exposure)> = Vec::new();
    for call in cx.analysis.calls(&["logging.getLogger.addHandler", "logging.Logger.addHandler"]) {
        // Set up once for each name: a variable, a dict or a cache remembers that it was.
        let once = call.guards.has(Guards::ONCE.with(Guards::MISSING))
            || remembers_names(cx, &call)
            || memos.contains(&call.function) && !names_one(cx, &call);
        if call.root == Root::Test || once || !adds_another(cx, &call) {
            continue;
        }
        let duration = cx.analysis.piling(&call, std::iter::empty());
        if let Some(exposure) = Exposure::outside(cx.analysis, &duration) {
            keep_worst(&mut found, call, exposure);
        }
    }
    found.retain(|(call, _)| !asks_for_handlers(cx, call.at.file));
    for (call, exposure) in found {
        report(cx, &call, exposure);
    }
}

/// Whether the handler is made by the function that adds it.
fn adds_another(cx: &Context<'_>, call: &CallFact) -> bool {
    let Some(Expr::Call(adds)) = expression_at(cx.project(), call.at) else { return false };
    match adds.arguments.args.first() {
        Some(Expr::Call(_)) => true,
        Some(Expr::Name(name)) => body_around(cx.project(), call.at).iter().any(|stmt| match stmt {
            Stmt::Assign(assign) => {
                let binds = |target: &Expr| target.as_name_expr().is_some_and(|bound| bound.id == name.id);
                assign.value.is_call_expr() && assign.targets.iter().any(binds)
            }
            _ => false,
        }),
        _ => false,
    }
}

/// `if name in known: return known[name]` above, and `known[name] = ...` in the same function.
fn remembers_names(cx: &Context<'_>, call: &CallFact) -> bool {
    let body = body_around(cx.project(), call.at);
    let text = |expr: &Expr| cx.project().text(located(call.at.file, expr)).to_owned();
    let stored = |known: &str| {
        body.iter().any(|stmt| match stmt {
            Stmt::Assign(assign) => assign
                .targets
                .iter()
                .any(|target| target.as_subscript_expr().is_some_and(|entry| text(&entry.value) == known)),
            _ => false,
        })
    };
    body.iter().any(|stmt| {
        let Stmt::If(asks) = stmt else { return false };
        let Expr::Compare(compare) = &*asks.test else { return false };
        let returns = matches!(asks.body.last(), Some(Stmt::Return(_)));
        match (&*compare.ops, &*compare.comparators) {
            ([CmpOp::In], [known]) if returns => stored(&text(known)),
            _ => false,
        }
    })
}

/// Whether the function around a call asks for a logger by a constant name: it gets the same one each time.
fn names_one(cx: &Context<'_>, call: &CallFact) -> bool {
    body_around(cx.project(), call.at).iter().any(|stmt| {
        let text = cx.project().text(located(call.at.file, stmt));
        ["getLogger(\"", "getLogger('", "getLogger()"].iter().any(|named| text.contains(named))
    })
}

/// Whether something is done with the handlers of a logger that may take some out, or ask which there are.
fn asks_for_handlers(cx: &Context<'_>, file: FileId) -> bool {
    let tree = cx.project().file(file).tree();
    let text = cx.project().text(located(file, tree)).replace("logging.handlers", "");
    [".removeHandler(", ".handlers", "hasHandlers("].iter().any(|word| text.contains(word))
}

fn report(cx: &mut Context<'_>, call: &CallFact, exposure: Exposure) {
    let message = format!(
        "a handler is added to a logger {} and never removed: all of them stay, each with what it holds",
        exposure.pace.words()
    );
    let chain: Vec<_> =
        cx.link_loop(exposure, "another handler in each turn of this loop").into_iter().collect();
    let function = cx.function(call.function).to_owned();
    // Functions that set a logger up remember in many ways that they did: whether this one adds more than one is assumed.
    let proof = Proof { repeats: Certainty::Assumed, ..of_call(cx.analysis, call, exposure) };
    let diagnostic = cx.report(call.at, &function, message);
    diagnostic.proof = proof;
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Add it once, before the loop, or call `logger.removeHandler(handler)` and `handler.close()` when it has served.",
    );
}
