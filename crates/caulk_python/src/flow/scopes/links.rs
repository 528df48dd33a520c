//! Assignments of an object made from the old value of their target: `x = Node(value, x)`, also through variables.

use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, StmtFunctionDef};
use rustc_hash::FxHashMap;

use crate::flow::syntax::last_name;

/// Aliases of aliases that are followed.
const MAX_ALIASES: usize = 3;

/// What a variable was bound to last.
#[derive(Debug, Clone, Copy)]
enum Source<'p> {
    Value(&'p Expr),
    Function(&'p StmtFunctionDef),
}

/// An attribute that is bound or read, by its name in source or by an expression; or any other expression.
#[derive(Debug, PartialEq, Eq)]
enum Spot<'e> {
    Attribute(ComparableExpr<'e>, &'e str),
    Named(ComparableExpr<'e>, ComparableExpr<'e>),
    Plain(ComparableExpr<'e>),
}

impl<'e> Spot<'e> {
    fn of(expr: &'e Expr) -> Self {
        match expr {
            Expr::Attribute(attribute) => {
                Self::Attribute((&*attribute.value).into(), attribute.attr.as_str())
            }
            Expr::Call(call) if last_name(&call.func) == Some("getattr") => match &*call.arguments.args {
                [object, name, ..] => Self::named(object, name),
                _ => Self::Plain(expr.into()),
            },
            _ => Self::Plain(expr.into()),
        }
    }

    fn named(object: &'e Expr, name: &'e Expr) -> Self {
        match name {
            Expr::StringLiteral(text) => Self::Attribute(object.into(), text.value.to_str()),
            _ => Self::Named(object.into(), name.into()),
        }
    }
}

/// Values of the variables of one function, up to the statement that is read.
#[derive(Debug, Default)]
pub(super) struct Links<'p> {
    bound: FxHashMap<&'p str, Source<'p>>,
}

impl<'p> Links<'p> {
    /// A target is bound to a value.
    pub(super) fn bind(&mut self, target: &'p Expr, value: &'p Expr) {
        if let Expr::Name(name) = target {
            self.bound.insert(name.id.as_str(), Source::Value(value));
        }
    }

    /// A function is defined.
    pub(super) fn define(&mut self, function: &'p StmtFunctionDef) {
        self.bound.insert(function.name.as_str(), Source::Function(function));
    }

    /// Whether a target gets an object that may keep its old value.
    pub(super) fn assigns(&self, target: &Expr, value: &Expr) -> bool {
        self.makes(&Spot::of(target), value, 0)
    }

    /// As [`Self::assigns`] of `setattr(object, name, value)`.
    pub(super) fn sets(&self, call: &ast::ExprCall) -> bool {
        match &*call.arguments.args {
            [object, name, value] if last_name(&call.func) == Some("setattr") => {
                self.makes(&Spot::named(object, name), value, 0)
            }
            _ => false,
        }
    }

    /// Whether an expression makes an object from the value of a place.
    fn makes(&self, spot: &Spot<'_>, value: &Expr, depth: usize) -> bool {
        let gives = |part: &Expr| self.gives(spot, part, 0);
        match value {
            Expr::If(choice) => {
                self.makes(spot, &choice.body, depth) || self.makes(spot, &choice.orelse, depth)
            }
            Expr::Named(named) => self.makes(spot, &named.value, depth),
            Expr::Call(call) if last_name(&call.func) != Some("getattr") => {
                call.arguments.iter_source_order().any(|given| gives(given.value()))
            }
            Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. }) => {
                elts.iter().any(gives)
            }
            Expr::Dict(dict) => dict.items.iter().any(|item| item.key.is_some() && gives(&item.value)),
            Expr::Lambda(lambda) => {
                let parameters = lambda.parameters.iter().flat_map(|known| known.iter_non_variadic_params());
                let mut defaults = parameters.filter_map(|parameter| parameter.default());
                defaults.any(gives) || self.captures(spot, |names| names.visit_expr(&lambda.body))
            }
            Expr::Name(name) if depth < MAX_ALIASES => match self.bound.get(name.id.as_str()) {
                Some(Source::Value(value)) => self.makes(spot, value, depth + 1),
                Some(Source::Function(function)) => {
                    self.captures(spot, |names| names.visit_body(&function.body))
                }
                None => false,
            },
            _ => false,
        }
    }

    /// Whether an expression reads a place, or is a variable with its value.
    fn gives(&self, spot: &Spot<'_>, part: &Expr, depth: usize) -> bool {
        if *spot == Spot::of(part) {
            return true;
        }
        let Expr::Name(name) = part else { return false };
        match self.bound.get(name.id.as_str()) {
            Some(Source::Value(value)) if depth < MAX_ALIASES => self.gives(spot, value, depth + 1),
            _ => false,
        }
    }

    /// Whether a function uses a variable around it with the value of a place.
    fn captures(&self, spot: &Spot<'_>, walk: impl FnOnce(&mut Loaded<'_>)) -> bool {
        let is_captured = |name: &str| match self.bound.get(name) {
            Some(Source::Value(value)) => self.gives(spot, value, 1),
            _ => false,
        };
        let mut loaded = Loaded { is_captured: &is_captured, found: false };
        walk(&mut loaded);
        loaded.found
    }
}

/// Looks for a variable that is read.
struct Loaded<'a> {
    is_captured: &'a dyn Fn(&str) -> bool,
    found: bool,
}

impl<'e> Visitor<'e> for Loaded<'_> {
    fn visit_expr(&mut self, expr: &'e Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                self.found = self.found || (self.is_captured)(name.id.as_str());
            }
            _ => visitor::walk_expr(self, expr),
        }
    }
}
