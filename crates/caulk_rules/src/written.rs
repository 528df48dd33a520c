//! Entries that a loop writes before it reads them: nothing of the turn before goes into them.

use caulk_python::{Location, Project};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use crate::source::{body_around, expression_at, located};

/// Whether a statement in a loop binds an entry, `states[i] = f(x)`, of a container that the same loop has just made, or that the
/// function has not read so far.
pub(crate) fn is_written_first(project: &Project, target: Location, statement: Location) -> bool {
    let Some(Expr::Subscript(entry)) = expression_at(project, target) else { return false };
    let base = project.text(located(target.file, &*entry.value));
    let body = body_around(project, statement);
    let statement: TextRange = statement.range.into();
    let mut uses = Uses { project, target, base, statement, indices: Vec::new(), made: false, read: false };
    uses.visit_body(body);
    let counted = uses.indices.iter().any(|index| names(&entry.slice).contains(&index.as_str()));
    uses.made || counted && !uses.read
}

struct Uses<'a> {
    project: &'a Project,
    target: Location,
    base: &'a str,
    statement: TextRange,
    /// Variables of the loops around the statement.
    indices: Vec<String>,
    /// One of these loops binds the container before.
    made: bool,
    /// The container is read before, or by the statement.
    read: bool,
}

impl Uses<'_> {
    fn is_base(&self, expr: &Expr) -> bool {
        self.project.text(located(self.target.file, expr)) == self.base
    }
}

impl<'a> Visitor<'a> for Uses<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if stmt.range().start() > self.statement.start() {
            return;
        }
        match stmt {
            Stmt::For(turns) if turns.range.contains_range(self.statement) => {
                self.indices.extend(names(&turns.target).into_iter().map(str::to_owned));
                self.made = turns.body.iter().any(|inner| {
                    let before = inner.range().end() <= self.statement.start();
                    before && inner.as_assign_stmt().is_some_and(|bound| self.binds(&bound.targets))
                }) || self.made;
            }
            Stmt::Assign(assign) if stmt.range() == self.statement => {
                self.visit_expr(&assign.value);
                return;
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Subscript(entry) if entry.ctx.is_store() && self.is_base(&entry.value) => {}
            Expr::Name(name) if self.is_base(expr) => self.read |= name.ctx.is_load(),
            Expr::Attribute(attribute) if self.is_base(expr) => self.read |= attribute.ctx.is_load(),
            _ => visitor::walk_expr(self, expr),
        }
    }
}

impl Uses<'_> {
    /// Whether targets of an assignment have the container among them, as a variable.
    fn binds(&self, targets: &[Expr]) -> bool {
        targets.iter().any(|target| match target {
            Expr::Name(name) => name.id.as_str() == self.base,
            Expr::Tuple(parts) => self.binds(&parts.elts),
            _ => false,
        })
    }
}

/// The names in an expression.
fn names(expr: &Expr) -> Vec<&str> {
    struct Names<'a>(Vec<&'a str>);
    impl<'a> Visitor<'a> for Names<'a> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(name) = expr {
                self.0.push(name.id.as_str());
            }
            visitor::walk_expr(self, expr);
        }
    }
    let mut found = Names(Vec::new());
    found.visit_expr(expr);
    found.0
}
