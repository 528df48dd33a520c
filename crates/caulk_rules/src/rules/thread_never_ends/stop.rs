//! Events that are to end a thread, and whether anything ever sets them.

use caulk_python::Project;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

use crate::source::last_name;

/// The event of `not self.stop.is_set()`.
pub(super) fn waits_for(test: &Expr) -> Option<&str> {
    let Expr::UnaryOp(not) = test else { return None };
    let Expr::Call(asked) = &*not.operand else { return None };
    let Expr::Attribute(method) = &*asked.func else { return None };
    last_name(&method.value).filter(|_| matches!(method.attr.as_str(), "is_set" | "wait"))
}

/// Whether an event of this name is set by a function that something in the project refers to.
pub(super) fn is_ever_set(project: &Project, event: &str) -> bool {
    let mut setters = Setters { event, around: Vec::new(), found: Vec::new(), at_once: false };
    for file in project.ids() {
        setters.visit_body(&project.file(file).tree().body);
    }
    setters.at_once || setters.found.iter().any(|function| is_named(project, function))
}

/// Functions that set an event.
struct Setters<'a, 'n> {
    event: &'n str,
    around: Vec<&'a str>,
    found: Vec<&'a str>,
    /// A module does, or a method that Python calls by itself.
    at_once: bool,
}

impl<'a> Visitor<'a> for Setters<'a, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let Stmt::FunctionDef(definition) = stmt else { return visitor::walk_stmt(self, stmt) };
        self.around.push(&definition.name);
        visitor::walk_stmt(self, stmt);
        self.around.pop();
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Attribute(set) = expr
            && set.attr.as_str() == "set"
            && last_name(&set.value) == Some(self.event)
        {
            match self.around.last() {
                Some(name) if !name.starts_with("__") => self.found.push(name),
                _ => self.at_once = true,
            }
        }
        visitor::walk_expr(self, expr);
    }
}

/// Whether anything refers to a function or method of this name.
fn is_named(project: &Project, function: &str) -> bool {
    struct Named<'n>(&'n str, bool);
    impl<'a> Visitor<'a> for Named<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.1 |= match expr {
                Expr::Attribute(attribute) => attribute.attr.as_str() == self.0,
                Expr::Name(name) => name.id.as_str() == self.0,
                Expr::StringLiteral(text) => text.value.to_str() == self.0,
                _ => false,
            };
            visitor::walk_expr(self, expr);
        }
    }
    let mut named = Named(function, false);
    for file in project.ids() {
        named.visit_body(&project.file(file).tree().body);
    }
    named.1
}
