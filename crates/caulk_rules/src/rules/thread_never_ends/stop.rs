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

/// Whether an event of this name is set by something that runs: see [`is_done`].
pub(super) fn is_ever_set(project: &Project, event: &str) -> bool {
    is_done(
        project,
        &|expr| matches!(expr, Expr::Attribute(set) if set.attr.as_str() == "set" && last_name(&set.value) == Some(event)),
    )
}

/// Whether `None` is put into a queue or list, or into what may be one, by something that runs: `jobs.put(None)`.
pub(super) fn is_none_put(project: &Project) -> bool {
    is_done(project, &|expr| match expr {
        Expr::Call(call) => {
            matches!(last_name(&call.func), Some("put" | "put_nowait" | "append" | "send"))
                && call.arguments.args.iter().any(Expr::is_none_literal_expr)
        }
        _ => false,
    })
}

/// Whether an expression stands in a function, or in a method which something in the project refers to.
fn is_done(project: &Project, what: &dyn Fn(&Expr) -> bool) -> bool {
    let mut places = Places { what, around: Vec::new(), in_class: false, found: Vec::new(), at_once: false };
    for file in project.ids() {
        places.visit_body(&project.file(file).tree().body);
    }
    places.at_once || places.found.iter().any(|function| is_named(project, function))
}

/// Methods in which an expression stands.
struct Places<'a, 'n> {
    what: &'n dyn Fn(&Expr) -> bool,
    /// The functions around a statement; those that are no methods have no name.
    around: Vec<Option<&'a str>>,
    /// The statement is in the body of a class.
    in_class: bool,
    found: Vec<&'a str>,
    /// It stands in a module or function, or in a method that Python calls by itself.
    at_once: bool,
}

impl<'a> Visitor<'a> for Places<'a, '_> {
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
        if (self.what)(expr) {
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
