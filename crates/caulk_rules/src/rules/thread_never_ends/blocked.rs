//! Threads that fill a queue of limited size for a loop that may be left early: then `put` waits for ever.

use caulk_python::Location;
use caulk_python::program::{CallFact, Shape};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::stop::{is_ever_set, waits_for};
use crate::context::Context;
use crate::source::{body_around, last_name, located, statement_at};

/// Where a new thread waits for room while it runs its target, if the loop over its queue is left early.
pub(super) fn puts(cx: &Context<'_>, made: &CallFact, runs: Location) -> Option<Location> {
    let class = cx.analysis.function(made.function).class?;
    let run = cx.analysis.function_around(runs)?;
    let methods: Vec<_> = cx.analysis.class(class).methods.values().copied().collect();
    let bodies = methods.iter().filter_map(|method| {
        match statement_at(cx.project(), cx.analysis.function(*method).at)? {
            Stmt::FunctionDef(definition) => Some(definition),
            _ => None,
        }
    });
    let mut calls = Calls::default();
    let mut of_run = Calls::default();
    for definition in bodies {
        calls.visit_body(&definition.body);
        if located(run.at.file, definition) == run.at {
            of_run.visit_body(&definition.body);
        }
    }
    // The target puts, or calls a method of its object that does.
    let tries = |call: &&&ExprCall| is_put(call) && is_tried_for_ever(cx, located(run.at.file, **call));
    let blocking = calls.found.iter().find(|call| is_blocking_put(call));
    let put = blocking.or_else(|| calls.found.iter().find(tries))?;
    let holder = method_around(cx, &methods, located(run.at.file, *put))?;
    let reaches = holder == run.name.rsplit('.').next().unwrap_or_default()
        || of_run.found.iter().any(|call| last_name(&call.func) == Some(holder.as_str()));
    let limited = calls.found.iter().any(|call| {
        matches!(last_name(&call.func), Some("Queue" | "LifoQueue" | "PriorityQueue"))
            && !call.arguments.is_empty()
    });
    let drains =
        calls.found.iter().any(|call| matches!(last_name(&call.func), Some("get_nowait" | "shutdown")));
    let instances = cx.analysis.objects().filter_map(|(_, object)| match object.shape {
        Shape::Instance(of) if of == class => object.at,
        _ => None,
    });
    let left = instances.into_iter().any(|at| is_left_early(cx, at));
    (reaches && limited && !drains && left).then(|| located(run.at.file, *put))
}

/// The name of the method that a place is in.
fn method_around(
    cx: &Context<'_>,
    methods: &[caulk_python::program::FunctionId],
    at: Location,
) -> Option<String> {
    let inside =
        methods.iter().map(|method| cx.analysis.function(*method)).find(|method| at.is_in(method.at))?;
    inside.name.rsplit('.').next().map(str::to_owned)
}

fn is_put(call: &ExprCall) -> bool {
    call.func.as_attribute_expr().is_some_and(|method| method.attr.as_str() == "put")
}

/// `queue.put(item)`, without a limit of time.
fn is_blocking_put(call: &ExprCall) -> bool {
    is_put(call) && call.arguments.args.len() == 1 && call.arguments.keywords.is_empty()
}

/// `put(item, timeout=1)` in a loop that continues until an event is set, which nothing does.
fn is_tried_for_ever(cx: &Context<'_>, put: Location) -> bool {
    struct Around<'c, 'x> {
        cx: &'c Context<'x>,
        put: Location,
        found: bool,
    }
    impl<'a> Visitor<'a> for Around<'_, '_> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::While(repeated) = stmt
                && self.put.is_in(located(self.put.file, repeated))
                && waits_for(&repeated.test).is_some_and(|event| !is_ever_set(self.cx.project(), event))
            {
                self.found = true;
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut around = Around { cx, put, found: false };
    around.visit_body(body_around(cx.project(), put));
    around.found
}

/// Whether a loop over an object that is made at a place may be left before its end.
fn is_left_early(cx: &Context<'_>, made: Location) -> bool {
    struct Loops<'a> {
        name: &'a str,
        found: bool,
    }
    impl<'a> Visitor<'a> for Loops<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::For(repeated) = stmt {
                self.found |= mentions(&repeated.iter, self.name) && breaks(&repeated.body);
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let body = body_around(cx.project(), made);
    let Some(name) = bound_to(body, made) else { return false };
    let mut loops = Loops { name, found: false };
    loops.visit_body(body);
    loops.found
}

/// The variable of an object that is made at a place.
fn bound_to(body: &[Stmt], made: Location) -> Option<&str> {
    struct Bound<'a> {
        made: Location,
        found: Option<&'a str>,
    }
    impl<'a> Visitor<'a> for Bound<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::Assign(assign) = stmt
                && located(self.made.file, &*assign.value) == self.made
                && let [Expr::Name(name)] = &*assign.targets
            {
                self.found = Some(&name.id);
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut bound = Bound { made, found: None };
    bound.visit_body(body);
    bound.found
}

fn mentions(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Name(one) => one.id == name,
        Expr::Call(call) => call.arguments.args.iter().any(|argument| mentions(argument, name)),
        _ => false,
    }
}

/// Whether a `return`, or a `break` of this loop and not of one inside it, is in its body.
fn breaks(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break(_) | Stmt::Return(_) => true,
        Stmt::If(branch) => {
            breaks(&branch.body) || branch.elif_else_clauses.iter().any(|clause| breaks(&clause.body))
        }
        Stmt::With(with) => breaks(&with.body),
        Stmt::Try(tried) => breaks(&tried.body),
        _ => false,
    })
}

/// All calls in some statements.
#[derive(Default)]
struct Calls<'a> {
    found: Vec<&'a ExprCall>,
}

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr {
            self.found.push(call);
        }
        visitor::walk_expr(self, expr);
    }
}
