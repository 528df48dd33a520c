//! Expressions that are collections by how they are written.

use ruff_python_ast::{Expr, Operator};

use crate::path::path_of;

/// Summands among which a display is looked for.
const MAX_SUMMANDS: usize = 24;

/// Is it a list, tuple, set or dict by how it is written: a display, a copy, a sum with one of them?
pub(crate) fn is_collection(expr: &Expr) -> bool {
    let (mut left, mut levels) = (expr, 0..MAX_SUMMANDS);
    // Of a sum what is written first is innermost.
    while let (Expr::BinOp(binary), Some(_)) = (left, levels.next()) {
        if !matches!(binary.op, Operator::Add | Operator::BitOr | Operator::Mult) {
            return false;
        }
        let repeated = match &*binary.right {
            Expr::BinOp(product) if product.op == Operator::Mult => &product.left,
            _ => &binary.right,
        };
        if is_display(&binary.right) || is_display(repeated) {
            return true;
        }
        left = &binary.left;
    }
    is_display(left)
}

/// A display, a comprehension, or a copy of a collection.
pub(crate) fn is_display(expr: &Expr) -> bool {
    match expr {
        Expr::Call(call) => path_of(&call.func).plain().is_some_and(|name| COLLECTIONS.contains(&name)),
        Expr::Tuple(_)
        | Expr::List(_)
        | Expr::Set(_)
        | Expr::Dict(_)
        | Expr::ListComp(_)
        | Expr::SetComp(_)
        | Expr::DictComp(_) => true,
        _ => false,
    }
}

/// What makes a collection of the elements of another.
pub(crate) const COLLECTIONS: [&str; 5] = ["dict", "frozenset", "list", "set", "tuple"];
