//! Profilers and recorders that go on recording.

use caulk_core::{LeakClass, Proof, Scope};
use caulk_python::program::{CallFact, Guards, Kinds, LoopKind, Root};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

use crate::advice::advice;
use crate::context::Context;
use crate::resource::{Kind, piling, reaches, report};
use crate::rule::Rule;
use crate::source::{callee, statement_at};

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::ProfilerLeftOn,
    default: true,
    explanation: include_str!("profiler_left_on.md"),
    check,
};

const MADE: &[&str] = &["torch.profiler.profile", "torch.autograd.profiler.profile"];
const PROFILERS: Kind = Kind { made: MADE, given_back: &["torch.profiler.profile.stop"] };

fn check(cx: &mut Context<'_>) {
    let started = cx.analysis.calls(&["torch.profiler.profile.start"]);
    for (made, exposure) in piling(cx, &PROFILERS, |made| reaches(cx, made, &started)) {
        let diagnostic = report(
            cx,
            &made,
            exposure,
            "and no profiler is stopped: every operation is recorded, and all records are kept",
            "a started profiler records until it is stopped",
        );
        diagnostic.fix =
            advice("Use it as a context, `with torch.profiler.profile(..):`, around a few steps.");
    }
    let mut seen = Vec::new();
    let contexts = cx.analysis.calls(&["with"]);
    for made in cx.analysis.calls(MADE) {
        let around = contexts.iter().find(|context| context.at == made.at && around_training(cx, context));
        if let Some(context) = around
            && made.root != Root::Test
            && !is_scheduled(cx, &made)
            && !seen.contains(&made.at)
        {
            seen.push(made.at);
            report_context(cx, &made, context);
        }
    }
}

/// With a schedule, records are handed over and dropped every few steps.
fn is_scheduled(cx: &Context<'_>, made: &CallFact) -> bool {
    let given =
        |name: &str| made.argument(cx.analysis, None, name).is_some_and(|value| !value.only(Kinds::NONE));
    given("schedule") || made.guards.has(Guards::SWITCH) || given("enabled")
}

/// A context around a whole training: around a loop over epochs or steps that nothing leaves early.
fn around_training(cx: &Context<'_>, context: &CallFact) -> bool {
    let Some(Stmt::With(with)) = statement_at(cx.project(), context.statement) else { return false };
    let trains = cx
        .analysis
        .training_loops_in(context.statement)
        .any(|a_loop| matches!(a_loop.kind, LoopKind::Epochs | LoopKind::Batches | LoopKind::Forever));
    trains && !leaves(&with.body)
}

fn leaves(body: &[Stmt]) -> bool {
    struct Exits(bool);
    impl<'a> Visitor<'a> for Exits {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            self.0 |= matches!(stmt, Stmt::Break(_) | Stmt::Return(_));
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut exits = Exits(false);
    exits.visit_body(body);
    exits.0
}

fn report_context(cx: &mut Context<'_>, made: &CallFact, context: &CallFact) {
    let container = callee(cx.project(), made.at);
    let message = format!(
        "`{container}` records the whole training: every operation of every step is kept until the end"
    );
    let chain = vec![
        cx.link(made.at, "without a schedule, nothing is handed over before the context ends"),
        cx.link(context.statement, "the training runs inside of this context"),
    ];
    let function = cx.function(made.function).to_owned();
    let diagnostic = cx.report(made.at, &function, message);
    diagnostic.container = container;
    diagnostic.scope = Scope::Run;
    diagnostic.proof = Proof::FULL;
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Give it a schedule, `schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1)`, and call `prof.step()`.",
    );
}
