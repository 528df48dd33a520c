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

/// Whether an event of this name is set: by a function, or by a method that something in the project refers to.
pub(super) fn is_ever_set(project: &Project, event: &str) -> bool {
    let mut setters =
        Setters { event, around: Vec::new(), in_class: false, found: Vec::new(), at_once: false };
    for file in project.ids() {
        setters.visit_body(&project.file(file).tree().body);
    }
    setters.at_once || setters.found.iter().any(|function| is_named(project, function))
}

/// Methods that set an event.
struct Setters<'a, 'n> {
    event: &'n str,
    /// The functions around a statement; those that are no methods have no name.
    around: Vec<Option<&'a str>>,
    /// The statement is in the body of a class.
    in_class: bool,
    found: Vec<&'a str>,
    /// A module or function does, or a method that Python calls by itself.
    at_once: bool,
}

impl<'a> Visitor<'a> for Setters<'a, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let in_class = std::mem::replace(&mut self.in_class, matches!(stmt, Stmt::ClassDef(_)));
        if let Stmt::FunctionDef(definition) = stmt {
            self.around.push(in_class.then_some(definition.name.as_str()));
            visitor::walk_stmt(self, stmt);
            self.around.pop();
        } else {
            visitor::walk_stmt(self, stmt);
        }
        self.in_class = in_class;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Attribute(set) = expr
            && set.attr.as_str() == "set"
            && last_name(&set.value) == Some(self.event)
        {
            match self.around.last() {
                Some(Some(name)) if !name.starts_with("__") => self.found.push(name),
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
