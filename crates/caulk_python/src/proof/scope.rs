//! One function's variables and what the names in it mean, as far as that is certain.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprContext, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::project::{Location, Parsed, Project};
use crate::proof::names::Names;
use crate::proof::variables::{Binding, Variables};

/// A function's body with its variables.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub file: &'a Parsed,
    pub body: &'a [Stmt],
    /// No class of the project has a `backward` of its own to be called on its objects.
    pub only_tensors_differentiate: bool,
    pub variables: FxHashMap<&'a str, Binding<'a>>,
    /// Names that functions, lambdas and classes inside mention, and those that are global.
    shared: FxHashSet<&'a str>,
    /// What the file imports, by the name it has there.
    imports: FxHashMap<&'a str, String>,
    /// Names that are bound in the file other than by one import.
    rebound: FxHashSet<&'a str>,
}

impl<'a> Scope<'a> {
    /// The innermost function around a place; none where a class, a lambda or the module is.
    pub(super) fn around(project: &'a Project, at: Location) -> Option<Self> {
        let file = project.file(at.file);
        let mut search = Search { range: at.range.into(), found: None };
        search.visit_body(&file.tree.body);
        let only = project.ids().all(|id| project.file(id).tree.body.iter().all(|stmt| !has_backward(stmt)));
        search.found.map(|function| Self { only_tensors_differentiate: only, ..Self::of(file, function) })
    }

    /// A function's own scope.
    pub(super) fn of(file: &'a Parsed, function: &'a StmtFunctionDef) -> Self {
        let mut names = Names::default();
        names.visit_body(&file.tree.body);
        let mut variables = Variables::default();
        variables.parameters(&function.parameters);
        variables.visit_body(&function.body);
        Self {
            file,
            body: &function.body,
            only_tensors_differentiate: false,
            variables: variables.own,
            shared: variables.shared,
            imports: names.imports,
            rebound: names.rebound,
        }
    }

    /// A variable of this function that no other code can see.
    pub(super) fn is_private(&self, name: &str) -> bool {
        self.variables.contains_key(name) && !self.shared.contains(name)
    }

    /// What a variable may be bound to, where it is private and these are all.
    pub(super) fn values(&self, name: &str) -> Option<&[&'a Expr]> {
        let binding = self.variables.get(name).filter(|binding| !binding.otherwise)?;
        (!self.shared.contains(name) && !binding.values.is_empty()).then_some(&binding.values)
    }

    /// The dotted name of a library's function, class or module.
    pub(super) fn canonical(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Name(name) => {
                let name = name.id.as_str();
                let known = self.imports.get(name).filter(|_| !self.rebound.contains(name))?;
                Some(crate::library::canonical(known))
            }
            Expr::Attribute(attribute) => {
                let dotted = format!("{}.{}", self.canonical(&attribute.value)?, attribute.attr);
                Some(crate::library::canonical(&dotted))
            }
            _ => None,
        }
    }

    /// The name of one of Python's own functions.
    pub(super) fn builtin<'e>(&self, expr: &'e Expr) -> Option<&'e str> {
        let Expr::Name(name) = expr else { return None };
        let name = name.id.as_str();
        (!self.rebound.contains(name) && !self.imports.contains_key(name)).then_some(name)
    }

    /// A function at the top of the file that a name means.
    pub(super) fn function(&self, expr: &Expr) -> Option<&'a StmtFunctionDef> {
        let Expr::Name(name) = expr else { return None };
        let mut top = self.file.tree.body.iter().filter_map(|stmt| match stmt {
            Stmt::FunctionDef(function) if function.name.as_str() == name.id.as_str() => Some(function),
            _ => None,
        });
        let bound = Names::count(&self.file.tree.body, name.id.as_str());
        top.next().filter(|_| bound == 1)
    }

    /// Whether something puts other numbers behind a variable: `loss.data = x`, `loss.set_(x)`.
    pub(super) fn is_replaced(&self, value: &Expr) -> bool {
        struct Replaces<'n>(&'n str, bool);
        impl<'v> Visitor<'v> for Replaces<'_> {
            fn visit_expr(&mut self, expr: &'v Expr) {
                if let Expr::Attribute(attribute) = expr
                    && matches!(&*attribute.value, Expr::Name(name) if name.id.as_str() == self.0)
                {
                    let sets = matches!(attribute.attr.as_str(), "set_" | "resize_" | "resize_as_" | "swap_");
                    self.1 |= sets || attribute.ctx != ExprContext::Load;
                }
                visitor::walk_expr(self, expr);
            }
        }
        let Expr::Name(name) = value else { return false };
        let mut replaces = Replaces(name.id.as_str(), false);
        replaces.visit_body(self.body);
        replaces.1
    }
}

/// A class whose objects have a method `backward`. Those of autograd functions are static.
fn has_backward(stmt: &Stmt) -> bool {
    let Stmt::ClassDef(class) = stmt else { return false };
    class.body.iter().any(|stmt| {
        matches!(stmt, Stmt::FunctionDef(function)
            if function.name.as_str() == "backward" && function.decorator_list.is_empty())
    })
}

/// The innermost function around a place.
struct Search<'a> {
    range: TextRange,
    found: Option<&'a StmtFunctionDef>,
}

impl<'a> Visitor<'a> for Search<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if !stmt.range().contains_range(self.range) {
            return;
        }
        match stmt {
            Stmt::FunctionDef(function) => self.found = Some(function),
            Stmt::ClassDef(_) => self.found = None,
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if matches!(expr, Expr::Lambda(_)) && expr.range().contains_range(self.range) {
            self.found = None;
        }
    }
}
