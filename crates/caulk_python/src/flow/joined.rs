//! Expressions that put what a target holds together with something else.

use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::{self as ast, Expr, Operator};

use crate::flow::syntax::last_name;
use crate::library::joins;

/// The part of an assignment's right side that joins what its target holds with something else.
pub(crate) fn joined<'e>(target: &Expr, value: &'e Expr) -> Option<&'e Expr> {
    match value {
        Expr::If(choice) => joined(target, &choice.body).or_else(|| joined(target, &choice.orelse)),
        Expr::Named(named) => joined(target, &named.value),
        other => {
            let whole = whole(other);
            parts(whole).iter().any(|part| is_same(target, part)).then_some(whole)
        }
    }
}

/// Whether an expression gives all that a target holds.
pub(crate) fn is_same(target: &Expr, part: &Expr) -> bool {
    ComparableExpr::from(whole(part)) == ComparableExpr::from(target)
}

/// `x` of `x.detach().cpu()`.
pub(crate) fn whole(expr: &Expr) -> &Expr {
    match expr {
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(method) if joins::WHOLE.contains(&method.attr.as_str()) => whole(&method.value),
            _ => expr,
        },
        _ => expr,
    }
}

/// What an expression puts together, whole; nothing where it puts nothing together.
pub(crate) fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::BinOp(binary) if adds(binary) => {
            let mut found = Vec::new();
            operands(binary, &mut found);
            found
        }
        Expr::List(ast::ExprList { elts, .. })
        | Expr::Tuple(ast::ExprTuple { elts, .. })
        | Expr::Set(ast::ExprSet { elts, .. }) => {
            elts.iter().filter_map(Expr::as_starred_expr).map(|starred| &*starred.value).collect()
        }
        Expr::Dict(dict) => {
            dict.items.iter().filter(|item| item.key.is_none()).map(|item| &item.value).collect()
        }
        Expr::Call(call) if last_name(&call.func).is_some_and(joins::may_join) => {
            let receiver = call.func.as_attribute_expr().map(|method| &*method.value);
            receiver.into_iter().chain(call.arguments.args.iter().flat_map(listed)).collect()
        }
        _ => Vec::new(),
    }
}

fn adds(binary: &ast::ExprBinOp) -> bool {
    matches!(binary.op, Operator::Add | Operator::BitOr)
}

/// Everything that is added up, each once: sums may have very many terms.
fn operands<'e>(binary: &'e ast::ExprBinOp, found: &mut Vec<&'e Expr>) {
    for side in [&*binary.left, &*binary.right] {
        match side {
            Expr::BinOp(inner) if adds(inner) => operands(inner, found),
            _ => found.push(side),
        }
    }
}

/// Elements of a list that is written out, else the expression itself.
fn listed(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. }) => {
            elts.iter().collect()
        }
        other => vec![other],
    }
}
