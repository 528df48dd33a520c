//! Names that code binds, whatever they belong to.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, Parameters, Pattern, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// All names that a file binds, and how.
#[derive(Default)]
pub(super) struct Names<'a> {
    pub imports: FxHashMap<&'a str, String>,
    /// Names that are bound other than by one import.
    pub rebound: FxHashSet<&'a str>,
    pub bound: Vec<&'a str>,
}

impl<'a> Names<'a> {
    /// How often a name is bound anywhere.
    pub(super) fn count(body: &'a [Stmt], name: &str) -> usize {
        let mut names = Self::default();
        names.visit_body(body);
        names.bound.iter().filter(|bound| **bound == name).count()
            + usize::from(names.imports.contains_key(name))
    }

    fn bind(&mut self, name: &'a str) {
        self.rebound.insert(name);
        self.bound.push(name);
    }

    fn import(&mut self, name: &'a str, what: String) {
        if self.imports.get(name).is_some_and(|known| *known != what) {
            self.rebound.insert(name);
        }
        self.imports.insert(name, what);
    }
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.bind(function.name.as_str()),
            Stmt::ClassDef(class) => self.bind(class.name.as_str()),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let dotted = alias.name.as_str();
                    let top = dotted.split('.').next().unwrap_or(dotted);
                    let (name, what) =
                        alias.asname.as_ref().map_or((top, top), |name| (name.as_str(), dotted));
                    self.import(name, what.to_owned());
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    match import.level {
                        0 => self.import(name, format!("{module}.{}", alias.name)),
                        // Of the project, whatever it is called.
                        _ => self.bind(name),
                    }
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && name.ctx != ExprContext::Load
        {
            self.bind(name.id.as_str());
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters {
            self.bind(parameter.name().as_str());
        }
        visitor::walk_parameters(self, parameters);
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bind(name.as_str());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        if let Some(name) = pattern_name(pattern) {
            self.bind(name);
        }
        visitor::walk_pattern(self, pattern);
    }
}

/// The name that a part of a pattern binds.
pub(super) fn pattern_name(pattern: &Pattern) -> Option<&str> {
    match pattern {
        Pattern::MatchAs(part) => part.name.as_ref(),
        Pattern::MatchStar(part) => part.name.as_ref(),
        Pattern::MatchMapping(part) => part.rest.as_ref(),
        _ => None,
    }
    .map(ast::Identifier::as_str)
}
