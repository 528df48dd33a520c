//! A functools cache around a method.

use caulk_core::{LeakClass, Severity};
use caulk_python::Location;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::CachedMethod,
    severity: Severity::Warning,
    default: true,
    explanation: include_str!("cached_method.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for file in cx.project().ids() {
        let mut classes = Classes { found: Vec::new(), names: Vec::new() };
        classes.visit_body(&cx.project().file(file).tree().body);
        for cached in classes.found {
            let message = format!(
                "`{}` caches by `self`: every instance that it was called on, and every result, is kept",
                cached.method
            );
            cx.report(Location { file, range: cached.decorator.into() }, &cached.method, message);
        }
    }
}

struct Cached {
    decorator: TextRange,
    method: String,
}

struct Classes {
    found: Vec<Cached>,
    names: Vec<String>,
}

impl<'a> Visitor<'a> for Classes {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::ClassDef(class) = stmt {
            self.names.push(class.name.to_string());
            for method in class.body.iter().filter_map(Stmt::as_function_def_stmt) {
                let name = format!("{}.{}", self.names.join("."), method.name);
                self.found.extend(cached(method).map(|decorator| Cached { decorator, method: name }));
            }
            visitor::walk_stmt(self, stmt);
            self.names.pop();
        } else {
            visitor::walk_stmt(self, stmt);
        }
    }
}

/// The decorator that caches a method by its first argument.
fn cached(method: &StmtFunctionDef) -> Option<TextRange> {
    let first = method.parameters.iter_non_variadic_params().next()?;
    let found = method.decorator_list.iter().find(|decorator| {
        let called = match &decorator.expression {
            Expr::Call(call) => &*call.func,
            plain => plain,
        };
        let name = match called {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => "",
        };
        matches!(name, "lru_cache" | "cache")
    })?;
    (first.name().as_str() == "self").then_some(found.range())
}
