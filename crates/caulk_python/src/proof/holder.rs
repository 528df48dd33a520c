//! The variable in which a statement stores.

use ruff_python_ast::{Expr, Stmt};

/// The variable in which a statement stores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder<'a> {
    pub(super) name: &'a str,
    /// Not in its own object, but in one that this holds: `losses["val"].append(x)`.
    pub(super) inside: bool,
}

impl<'a> Holder<'a> {
    pub(super) fn of(expr: &'a Expr) -> Option<Self> {
        match expr {
            Expr::Name(name) => Some(Self { name: name.id.as_str(), inside: false }),
            Expr::Subscript(part) => Some(Self { inside: true, ..Self::of(&part.value)? }),
            _ => None,
        }
    }
}

/// `losses` of `losses.append(x)`, of `losses["val"].append(x)`, of `losses += x`.
pub(super) fn holder(stmt: &Stmt) -> Option<Holder<'_>> {
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
