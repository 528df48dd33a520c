//! Proof that a program does the same whether a value is stored with its graph or without.
//!
//! Two things have to be certain. The value is a tensor: anything else may have no `detach`. And nothing that may look at
//! the graph ever gets what is stored: it stays in variables of one function, and all that is done with them reads
//! numbers. What is not known to be harmless is harmful; a variable is taken for all that it ever holds.

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

/// The variable in which a statement stores.
#[derive(Debug, Clone, Copy)]
struct Holder<'a> {
    name: &'a str,
    /// Not in its own object, but in one that this holds: `losses["val"].append(x)`.
    inside: bool,
}

impl<'a> Holder<'a> {
    fn of(expr: &'a Expr) -> Option<Self> {
        match expr {
            Expr::Name(name) => Some(Self { name: name.id.as_str(), inside: false }),
            Expr::Subscript(part) => Some(Self { inside: true, ..Self::of(&part.value)? }),
            _ => None,
        }
    }
}

/// `losses` of `losses.append(x)`, of `losses["val"].append(x)`, of `losses += x`.
fn holder(stmt: &Stmt) -> Option<Holder<'_>> {
    match stmt {
        Stmt::Expr(stmt) => match &*stmt.value {
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(method) => Holder::of(&method.value),
                _ => None,
            },
            _ => None,
        },
        Stmt::AugAssign(stmt) => Holder::of(&stmt.target),
        Stmt::Assign(stmt) => match stmt.targets.as_slice() {
            [Expr::Subscript(target)] => Holder::of(&target.value),
            [target] => Holder::of(target),
            _ => None,
        },
        _ => None,
    }
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
