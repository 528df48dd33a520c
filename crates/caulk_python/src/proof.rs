//! Proof that a program does the same whether a value is stored with its graph or without.
//!
//! Two things have to be certain. The value is a tensor: anything else may have no `detach`. And nothing that may look at
//! the graph ever gets what is stored: it stays in variables of one function, and all that is done with them reads
//! numbers. What is not known to be harmless is harmful; a variable is taken for all that it ever holds.

mod holder;
mod names;
mod reads;
mod scope;
mod tensors;
mod variables;

use caulk_core::{Edit, Fix};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use crate::project::{Location, Parsed, Project};
use crate::proof::holder::holder;
use crate::proof::scope::Scope;

/// Whether a fix that detaches what a statement stores leaves everything that the program does as it is.
pub fn detaches_safely(project: &Project, fix: &Fix) -> bool {
    let proved = |edit: &Edit| is_unseen(project, edit).unwrap_or(false);
    !fix.edits.is_empty() && fix.edits.iter().all(proved)
}

fn is_unseen(project: &Project, edit: &Edit) -> Option<bool> {
    let id = project.find(&edit.file)?;
    let file = project.file(id);
    let range = TextRange::new(file.source.offset(edit.start)?, file.source.offset(edit.end)?);
    let scope = Scope::around(project, Location { file: id, range: range.into() })?;
    let stmt = statement_around(scope.body, range)?;
    let value = detached(file, stmt, range, edit)?;
    let holder = holder(stmt)?;
    let tensor = tensors::is_tensor(&scope, value) && !scope.is_replaced(value);
    Some(tensor && reads::are_of_numbers(&scope, holder))
}

/// The expression behind which an edit puts `.detach()`.
fn detached<'a>(file: &Parsed, stmt: &'a Stmt, range: TextRange, edit: &Edit) -> Option<&'a Expr> {
    let text = file.slice(range);
    let plain = edit.content == format!("{text}.detach()") || edit.content == format!("({text}).detach()");
    expression_at(stmt, range).filter(|_| plain)
}

/// The innermost statement around a place.
fn statement_around(body: &[Stmt], range: TextRange) -> Option<&Stmt> {
    struct Search<'a> {
        range: TextRange,
        found: Option<&'a Stmt>,
    }
    impl<'a> Visitor<'a> for Search<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if stmt.range().contains_range(self.range) {
                self.found = Some(stmt);
                visitor::walk_stmt(self, stmt);
            }
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut search = Search { range, found: None };
    search.visit_body(body);
    search.found
}

fn expression_at(stmt: &Stmt, range: TextRange) -> Option<&Expr> {
    struct Search<'a> {
        range: TextRange,
        found: Option<&'a Expr>,
    }
    impl<'a> Visitor<'a> for Search<'a> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if expr.range() == self.range {
                self.found = self.found.or(Some(expr));
            } else if expr.range().contains_range(self.range) {
                visitor::walk_expr(self, expr);
            }
        }
    }
    let mut search = Search { range, found: None };
    search.visit_stmt(stmt);
    search.found
}
