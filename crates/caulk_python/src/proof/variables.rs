//! Variables of one function, with all that they are bound to.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, Parameters, Pattern, Stmt};
use ruff_text_size::{Ranged, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::proof::names::{Names, pattern_name};

/// What a variable is bound to.
#[derive(Debug, Default)]
pub(super) struct Binding<'a> {
    /// Right sides of plain assignments.
    pub values: Vec<&'a Expr>,
    /// Where it is bound at all.
    pub places: Vec<TextSize>,
    /// It is bound in another way, too: a parameter, a loop, an import.
    pub otherwise: bool,
}

/// Variables of one function.
#[derive(Default)]
pub(super) struct Variables<'a> {
    pub own: FxHashMap<&'a str, Binding<'a>>,
    /// Names that functions, lambdas and classes inside mention, and those that are global.
    pub shared: FxHashSet<&'a str>,
}

impl<'a> Variables<'a> {
    pub(super) fn parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters {
            self.otherwise(parameter.name().as_str(), parameter.start());
        }
    }

    fn otherwise(&mut self, name: &'a str, at: TextSize) {
        let binding = self.own.entry(name).or_default();
        binding.otherwise = true;
        binding.places.push(at);
    }

    /// Everything that code with variables of its own mentions.
    fn share(&mut self, inner: impl FnOnce(&mut Mentioned<'a>)) {
        let mut mentioned = Mentioned::default();
        inner(&mut mentioned);
        self.shared.extend(mentioned.0);
    }
}

impl<'a> Visitor<'a> for Variables<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                self.otherwise(function.name.as_str(), stmt.start());
                self.share(|mentioned| mentioned.visit_stmt(stmt));
                return;
            }
            Stmt::ClassDef(class) => {
                self.otherwise(class.name.as_str(), stmt.start());
                self.share(|mentioned| mentioned.visit_stmt(stmt));
                return;
            }
            Stmt::Global(names) => self.shared.extend(names.names.iter().map(ast::Identifier::as_str)),
            Stmt::Nonlocal(names) => self.shared.extend(names.names.iter().map(ast::Identifier::as_str)),
            Stmt::Assign(assign) => {
                self.visit_expr(&assign.value);
                for target in &assign.targets {
                    self.assigned(target, &assign.value);
                }
                return;
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.visit_expr(value);
                    self.assigned(&assign.target, value);
                }
                return;
            }
            // What `+=` leaves of a tensor is one.
            Stmt::AugAssign(assign) => {
                self.visit_expr(&assign.value);
                if let Expr::Name(name) = &*assign.target {
                    self.own.entry(name.id.as_str()).or_default().places.push(stmt.start());
                } else {
                    self.visit_expr(&assign.target);
                }
                return;
            }
            Stmt::Import(_) | Stmt::ImportFrom(_) => {
                let mut names = Names::default();
                names.visit_stmt(stmt);
                for name in names.imports.into_keys().chain(names.bound) {
                    self.otherwise(name, stmt.start());
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Lambda(_) => self.share(|mentioned| mentioned.visit_expr(expr)),
            Expr::Name(name) if name.ctx != ExprContext::Load => {
                self.otherwise(name.id.as_str(), expr.start());
            }
            _ => visitor::walk_expr(self, expr),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.otherwise(name.as_str(), handler.start());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        if let Some(name) = pattern_name(pattern) {
            self.otherwise(name, pattern.start());
        }
        visitor::walk_pattern(self, pattern);
    }
}

impl<'a> Variables<'a> {
    fn assigned(&mut self, target: &'a Expr, value: &'a Expr) {
        match (target, value) {
            (Expr::Name(name), _) => {
                let binding = self.own.entry(name.id.as_str()).or_default();
                binding.values.push(value);
                binding.places.push(target.start());
            }
            // `xs, ys = [], []`
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.elts.len() == values.elts.len() => {
                for (target, value) in targets.elts.iter().zip(&values.elts) {
                    self.assigned(target, value);
                }
            }
            _ => self.visit_expr(target),
        }
    }
}

/// All names in some code.
#[derive(Default)]
struct Mentioned<'a>(FxHashSet<&'a str>);

impl<'a> Visitor<'a> for Mentioned<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr {
            self.0.insert(name.id.as_str());
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::Nonlocal(names) = stmt {
            self.0.extend(names.names.iter().map(ast::Identifier::as_str));
        }
        visitor::walk_stmt(self, stmt);
    }
}
