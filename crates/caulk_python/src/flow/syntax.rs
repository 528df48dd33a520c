//! What an expression is called, and whether it is plain.

use ruff_python_ast::Expr;

/// The last name of an expression: `c` of `a.b.c`, of `a.c()` and of `c`.
pub(crate) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        Expr::Subscript(subscript) => last_name(&subscript.value),
        Expr::Await(awaited) => last_name(&awaited.value),
        _ => None,
    }
}

/// The name under which something is held: `x` of `x`, `self.x` and `x[0]`.
pub(crate) fn name_of(target: &Expr) -> Option<&str> {
    match target {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) => last_name(target),
        _ => None,
    }
}

/// `True`.
pub(crate) fn is_true(expr: &Expr) -> bool {
    matches!(expr, Expr::BooleanLiteral(literal) if literal.value)
}
