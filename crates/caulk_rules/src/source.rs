//! Syntax trees around what the analysis tells: bodies of functions and loops.

use caulk_python::Project;
use caulk_python::{FileId, Location};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// The smallest function's body around a place, else the module's.
pub(crate) fn body_around(project: &Project, at: Location) -> &[Stmt] {
    struct Around<'a> {
        at: TextRange,
        body: &'a [Stmt],
    }
    impl<'a> Visitor<'a> for Around<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if !stmt.range().contains_range(self.at) {
                return;
            }
            if let Stmt::FunctionDef(function) = stmt {
                self.body = &function.body;
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let body = &project.file(at.file).tree().body;
    let mut around = Around { at: at.range.into(), body };
    around.visit_body(body);
    around.body
}

/// The statement that begins and ends at a place.
pub(crate) fn statement_at(project: &Project, at: Location) -> Option<&Stmt> {
    struct At<'a> {
        at: TextRange,
        found: Option<&'a Stmt>,
    }
    impl<'a> Visitor<'a> for At<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if stmt.range() == self.at {
                self.found = self.found.or(Some(stmt));
            } else if stmt.range().contains_range(self.at) {
                visitor::walk_stmt(self, stmt);
            }
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut search = At { at: at.range.into(), found: None };
    search.visit_body(&project.file(at.file).tree().body);
    search.found
}

/// The expression that begins and ends at a place.
pub(crate) fn expression_at(project: &Project, at: Location) -> Option<&Expr> {
    struct At<'a> {
        at: TextRange,
        found: Option<&'a Expr>,
    }
    impl<'a> Visitor<'a> for At<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if stmt.range().contains_range(self.at) {
                visitor::walk_stmt(self, stmt);
            }
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            if expr.range() == self.at {
                self.found = self.found.or(Some(expr));
            } else if expr.range().contains_range(self.at) {
                visitor::walk_expr(self, expr);
            }
        }
    }
    let mut search = At { at: at.range.into(), found: None };
    search.visit_body(&project.file(at.file).tree().body);
    search.found
}

/// What a call is a call of, as it is written.
pub(crate) fn callee(project: &Project, call: Location) -> String {
    match expression_at(project, call) {
        Some(Expr::Call(expr)) => project.text(located(call.file, &*expr.func)).to_owned(),
        _ => project.text(call).to_owned(),
    }
}

pub(crate) fn located(file: FileId, node: &impl Ranged) -> Location {
    Location { file, range: node.range().into() }
}

/// The last name of an expression: `c` of `a.b.c`, of `a.c()` and of `c`.
pub(crate) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}
