//! Threads that are started again and again and run for ever.

mod blocked;
mod stop;

use caulk_core::{Certainty, LeakClass};
use caulk_python::Location;
use caulk_python::program::{CallFact, Root, Shape};
use ruff_python_ast::{CmpOp, Expr, Stmt};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::resource::{Kind, keep_worst, piling, reaches, report};
use crate::rule::Rule;
use crate::source::{leaves, never_left, statement_at};
use stop::{is_ever_set, is_none_put, waits_for};

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::ThreadNeverEnds,
    default: true,
    explanation: include_str!("thread_never_ends.md"),
    check,
};

const THREADS: Kind = Kind { made: &["threading.Thread"], given_back: &[] };

fn check(cx: &mut Context<'_>) {
    let started = cx.analysis.calls(&["threading.Thread.start"]);
    let runs = |made: &CallFact| reaches(cx, made, &started) && endless(cx, made).is_some();
    for (made, exposure) in piling(cx, &THREADS, runs) {
        let target = endless(cx, &made).map(|target| cx.link(target, "this function never returns"));
        let diagnostic = report(
            cx,
            &made,
            exposure,
            "and its threads never end: each keeps its stack, its arguments and what its function refers to",
            "a thread lives until its function returns, even if no name refers to it",
        );
        diagnostic.chain.splice(1..1, target);
        diagnostic.fix = advice(
            "Start one thread before the loop, or let it end: `while not stop.is_set():` and `stop.set()`.",
        );
    }
    for (started, exposure, run) in own_threads(cx, &started) {
        let target = cx.link(run, "this function never returns");
        let diagnostic = report(
            cx,
            &started,
            exposure,
            "and its threads never end: each keeps its stack and what its object refers to",
            "a thread lives until its `run` returns, even if no name refers to it",
        );
        diagnostic.chain.insert(1, target);
        diagnostic.fix = advice(
            "Stop each thread where it is used last, by a method that sets its event; or start one thread before the loop.",
        );
    }
    let blocks = |made: &CallFact| reaches(cx, made, &started) && waits_for_room(cx, made).is_some();
    for (made, exposure) in piling(cx, &THREADS, blocks) {
        let put = waits_for_room(cx, &made).map(|put| cx.link(put, "waits here for room in the queue"));
        let diagnostic = report(
            cx,
            &made,
            exposure,
            "and the loop that takes from its queue is left early: the thread waits for room for ever, with its data",
            "a thread lives until its function returns, even if no name refers to it",
        );
        diagnostic.proof.unreleased = Certainty::Likely;
        diagnostic.chain.splice(1..1, put);
        diagnostic.fix = advice(
            "Let the thread give up: `put(item, timeout=1)` in a loop that asks an event, which `close()` sets; or empty the queue when the loop is left.",
        );
    }
}

/// The target, where it has a loop that nothing leaves.
fn endless(cx: &Context<'_>, made: &CallFact) -> Option<Location> {
    let function = target(cx, made)?;
    never_returns(cx, function, made.root).then_some(function)
}

fn never_returns(cx: &Context<'_>, function: Location, root: Root) -> bool {
    let Some(Stmt::FunctionDef(definition)) = statement_at(cx.project(), function) else { return false };
    let endless =
        |stmt: &Stmt| never_left(stmt) || is_never_stopped(cx, stmt) || is_never_told(cx, stmt, root);
    definition.body.iter().any(endless)
}

/// Where objects of the project's own classes of threads are started, with the `run` that never returns.
fn own_threads(cx: &Context<'_>, started: &[CallFact]) -> Vec<(CallFact, Exposure, Location)> {
    let mut found: Vec<(CallFact, Exposure)> = Vec::new();
    for call in started.iter().filter(|call| call.root != Root::Test && own_run(cx, call).is_some()) {
        let duration = cx.analysis.piling(call, std::iter::empty());
        if let Some(exposure) = Exposure::outside(cx.analysis, &duration) {
            keep_worst(&mut found, call.clone(), exposure);
        }
    }
    found
        .into_iter()
        .filter_map(|(call, exposure)| own_run(cx, &call).map(|run| (call, exposure, run)))
        .collect()
}

/// The `run` of a started object's class, if it never returns.
fn own_run(cx: &Context<'_>, started: &CallFact) -> Option<Location> {
    let name = cx.analysis.symbol("run")?;
    started.receiver.objects.iter().find_map(|object| {
        let Shape::Instance(class) = cx.analysis.object(object).shape else { return None };
        let run = cx.analysis.function(*cx.analysis.class(class).methods.get(&name)?).at;
        never_returns(cx, run, started.root).then_some(run)
    })
}

/// Where a thread waits for room in a queue that nobody takes from any more.
fn waits_for_room(cx: &Context<'_>, made: &CallFact) -> Option<Location> {
    blocked::puts(cx, made, target(cx, made)?)
}

/// The function that a thread runs.
fn target(cx: &Context<'_>, made: &CallFact) -> Option<Location> {
    let target = made.argument(cx.analysis, Some(1), "target")?;
    target.objects.iter().find_map(|object| {
        let object = match cx.analysis.object(object).shape {
            Shape::Method(function, _) | Shape::Partial(function) => function,
            _ => object,
        };
        match cx.analysis.object(object).shape {
            Shape::Function(function, _) => Some(cx.analysis.function(function).at),
            _ => None,
        }
    })
}

/// `while True:` that is left by `if job is None: break` alone, and nobody puts `None` into anything.
fn is_never_told(cx: &Context<'_>, stmt: &Stmt, root: Root) -> bool {
    let Stmt::While(repeated) = stmt else { return false };
    let forever = matches!(&*repeated.test, Expr::BooleanLiteral(literal) if literal.value);
    let told = |stmt: &&Stmt| match stmt {
        Stmt::If(branch) => branch.elif_else_clauses.is_empty() && is_none(&branch.test),
        _ => false,
    };
    let others = repeated.body.iter().filter(|stmt| !told(stmt));
    forever
        && repeated.body.iter().any(|stmt| told(&stmt))
        && !others.into_iter().any(|stmt| leaves(std::slice::from_ref(stmt)))
        && !is_none_put(cx.project())
        && !cx.analysis.puts_none(root)
}

/// `job is None`.
fn is_none(test: &Expr) -> bool {
    match test {
        Expr::Compare(compare) => {
            let [right] = &*compare.comparators else { return false };
            right.is_none_literal_expr() && matches!(&*compare.ops, [CmpOp::Is | CmpOp::Eq])
        }
        _ => false,
    }
}

/// `while not self.stop.is_set():`, and nobody sets it.
fn is_never_stopped(cx: &Context<'_>, stmt: &Stmt) -> bool {
    let Stmt::While(repeated) = stmt else { return false };
    waits_for(&repeated.test)
        .is_some_and(|event| !leaves(&repeated.body) && !is_ever_set(cx.project(), event))
}
