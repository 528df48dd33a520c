//! What a condition says of how often it holds.

use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::{self as ast, Expr, Operator, Stmt};

use crate::flow::event::{Guards, LoopKind};
use crate::flow::syntax::{is_true, last_name};
use crate::library::roles;

/// `if __name__ == "__main__"`.
pub(super) fn is_main_guard(test: &Expr) -> bool {
    matches!(test, Expr::Compare(compare) if matches!(&*compare.left, Expr::Name(name) if name.id.as_str() == "__name__"))
}

/// The guards of a branch by its last statement.
pub(super) fn end_of(branch: &[Stmt]) -> Guards {
    if matches!(branch.last(), Some(Stmt::Raise(_))) { Guards::RAISES } else { Guards::default() }
}

/// What a condition says of how often it holds.
pub(crate) fn guard(test: &Expr) -> Guards {
    let condition = Guards::CONDITION;
    match test {
        _ if is_main_guard(test) => Guards::default(),
        Expr::BoolOp(both) => both.values.iter().fold(condition, |guards, value| guards.with(guard(value))),
        Expr::UnaryOp(unary) if asks_for_attribute(&unary.operand) => condition.with(Guards::ONCE),
        Expr::UnaryOp(unary) => guard(&unary.operand).with(condition),
        Expr::Compare(compare) => {
            let sides = || std::iter::once(&*compare.left).chain(&compare.comparators);
            let mut guards = condition;
            if limits(compare) {
                guards = guards.with(Guards::LENGTH);
            }
            if sides().any(|side| matches!(side, Expr::BinOp(binary) if binary.op == Operator::Mod)) {
                guards = guards.with(Guards::MODULO);
            }
            for (op, right) in compare.ops.iter().zip(&compare.comparators) {
                match op {
                    // `if step in shown`: as often as that has numbers.
                    ast::CmpOp::In if counts(&compare.left) => guards = guards.with(Guards::CHOSEN),
                    // `if rank in (-1, 0)` asks for no key.
                    ast::CmpOp::NotIn | ast::CmpOp::In if right.is_list_expr() || right.is_tuple_expr() => {}
                    ast::CmpOp::NotIn | ast::CmpOp::In => guards = guards.with(Guards::MISSING),
                    // A variable may be asked for again and again, as what a cache gave.
                    ast::CmpOp::Is if right.is_none_literal_expr() => {
                        let kept = !compare.left.is_name_expr();
                        guards = guards.with(if kept { Guards::ONCE } else { Guards::MISSING });
                    }
                    ast::CmpOp::Eq
                        if matches!(right, Expr::NumberLiteral(_))
                            && !guards.has(Guards::MODULO)
                            && counts(&compare.left) =>
                    {
                        guards = guards.with(Guards::ONCE);
                    }
                    _ => {}
                }
            }
            guards
        }
        Expr::Name(_) | Expr::Attribute(_) => {
            let name = last_name(test).unwrap_or("").to_ascii_lowercase();
            if name.contains("sanity") {
                condition.with(Guards::ONCE)
            } else if ["debug", "verbose", "log", "trace", "profile"].iter().any(|word| name.contains(word)) {
                condition.with(Guards::SWITCH)
            } else if ["ret", "ok", "success", "grabbed", "has_frame", "got_frame"].contains(&name.as_str()) {
                Guards::SUCCESS
            } else {
                condition
            }
        }
        _ => condition,
    }
}

/// The variable that a condition compares with the number of one turn: `i == 0`, `i == len(loader) - 1`, `not i`.
pub(super) fn asked_turn(test: &Expr) -> Option<&ast::ExprName> {
    match test {
        Expr::BoolOp(both) if both.op == ast::BoolOp::And => both.values.iter().find_map(asked_turn),
        Expr::UnaryOp(not) if not.op == ast::UnaryOp::Not => not.operand.as_name_expr(),
        Expr::Compare(compare) => match (&*compare.ops, &*compare.comparators) {
            ([ast::CmpOp::Eq], [Expr::NumberLiteral(_) | Expr::BinOp(_)]) => compare.left.as_name_expr(),
            _ => None,
        },
        _ => None,
    }
}

/// The guards of the conditions beside one which asks for a turn.
pub(super) fn beside_turn(test: &Expr) -> Guards {
    match test {
        Expr::BoolOp(both) => {
            let others = both.values.iter().filter(|part| asked_turn(part).is_none());
            others.fold(Guards::CONDITION, |guards, part| guards.with(guard(part)))
        }
        _ => Guards::CONDITION,
    }
}

/// Epochs or steps, by the name.
fn counts(expr: &Expr) -> bool {
    last_name(expr).is_some_and(|name| roles::is_epoch(name) || roles::is_step(name))
}

/// Whether a condition holds only until a flag is raised, and what runs under it raises the flag: `if not self.ready:` over
/// `self.ready = True`, and `if getattr(model, "_hooked", False): return` where anything sets that attribute. An empty
/// container that is filled is such a flag, too: `if table == {}:` over `table[key] = value`.
pub(super) fn is_latched(test: &Expr, holds: bool, body: &[Stmt], raised: &impl Fn(&str) -> bool) -> bool {
    match test {
        Expr::UnaryOp(not) if not.op == ast::UnaryOp::Not => is_latched(&not.operand, !holds, body, raised),
        Expr::BoolOp(both) if (both.op == ast::BoolOp::And) == holds => {
            both.values.iter().any(|part| is_latched(part, holds, body, raised))
        }
        Expr::Attribute(_) => !holds && (raises(body, test) || fills(body, test)),
        Expr::Name(_) => !holds && fills(body, test),
        Expr::Compare(compare) => holds && asked_empty(compare).is_some_and(|asked| fills(body, asked)),
        Expr::Call(call) if last_name(&call.func) == Some("getattr") => match &*call.arguments.args {
            [_, Expr::StringLiteral(name), Expr::BooleanLiteral(default)] => {
                !holds && !default.value && raised(name.value.to_str())
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether an expression makes something, which counts as true: `if not self.figure:` over `self.figure = plt.figure()`.
fn makes(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) => true,
        Expr::List(list) => !list.elts.is_empty(),
        Expr::Dict(dict) => !dict.items.is_empty(),
        Expr::StringLiteral(text) => !text.value.is_empty(),
        _ => false,
    }
}

/// Whether statements raise a flag, whatever else happens in them.
fn raises(body: &[Stmt], flag: &Expr) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Assign(assign) => {
            let same = |target: &Expr| ComparableExpr::from(target) == ComparableExpr::from(flag);
            (is_true(&assign.value) || makes(&assign.value)) && assign.targets.iter().any(same)
        }
        Stmt::With(with) => raises(&with.body, flag),
        Stmt::Try(guarded) => raises(&guarded.body, flag) || raises(&guarded.finalbody, flag),
        _ => false,
    })
}

/// The container that a comparison asks whether it is empty: `table == {}`, `len(table) == 0`.
fn asked_empty(compare: &ast::ExprCompare) -> Option<&Expr> {
    let ([ast::CmpOp::Eq], [right]) = (&*compare.ops, &*compare.comparators) else { return None };
    match (&*compare.left, right) {
        (
            Expr::Call(call),
            Expr::NumberLiteral(ast::ExprNumberLiteral { value: ast::Number::Int(int), .. }),
        ) if *int == 0u8 && last_name(&call.func) == Some("len") => call.arguments.args.first(),
        (left, Expr::Dict(dict)) if dict.items.is_empty() => Some(left),
        (left, Expr::List(list)) if list.elts.is_empty() => Some(left),
        _ => None,
    }
}

/// Whether a call puts something into a container, or into an entry of it.
fn puts_into(expr: &Expr, container: &Expr) -> bool {
    const METHODS: &[&str] = &["add", "append", "appendleft", "extend", "insert", "setdefault", "update"];
    let same = |expr: &Expr| ComparableExpr::from(expr) == ComparableExpr::from(container);
    let Expr::Call(call) = expr else { return false };
    let Expr::Attribute(method) = &*call.func else { return false };
    let entry = matches!(&*method.value, Expr::Subscript(entry) if same(&entry.value));
    METHODS.contains(&method.attr.as_str()) && (same(&method.value) || entry)
        || puts_into(&method.value, container)
}

/// Whether statements put something into a container.
fn fills(body: &[Stmt], container: &Expr) -> bool {
    let same = |expr: &Expr| ComparableExpr::from(expr) == ComparableExpr::from(container);
    let stored = |target: &Expr| matches!(target, Expr::Subscript(stored) if same(&stored.value));
    body.iter().any(|stmt| match stmt {
        Stmt::Assign(assign) => assign.targets.iter().any(stored),
        Stmt::AugAssign(assign) => same(&assign.target),
        Stmt::Expr(expr) => puts_into(&expr.value, container),
        Stmt::For(every) => fills(&every.body, container),
        Stmt::With(with) => fills(&with.body, container),
        Stmt::Try(guarded) => fills(&guarded.body, container),
        Stmt::If(asked) => {
            fills(&asked.body, container)
                || asked.elif_else_clauses.iter().any(|clause| fills(&clause.body, container))
        }
        _ => false,
    })
}

/// Whether a comparison is of a length, or of anything with a limit. `len(x) > 0` limits nothing.
fn limits(compare: &ast::ExprCompare) -> bool {
    const LIMITS: &[&str] = &["max", "limit", "capacity", "maxlen", "maxsize", "budget", "keep"];
    let sides = || std::iter::once(&*compare.left).chain(&compare.comparators);
    let empty = |side: &Expr| matches!(side, Expr::NumberLiteral(ast::ExprNumberLiteral { value: ast::Number::Int(int), .. }) if *int == 0u8);
    let limit = |side: &Expr| {
        matches!(side, Expr::Name(_) | Expr::Attribute(_))
            && last_name(side)
                .is_some_and(|name| name.to_ascii_lowercase().split('_').any(|word| LIMITS.contains(&word)))
    };
    sides().any(limit) || sides().any(is_length) && !sides().any(empty)
}

/// How much is in a container or tensor.
fn is_length(expr: &Expr) -> bool {
    const LENGTHS: &[&str] = &["len", "qsize", "__len__", "size", "numel"];
    match expr {
        Expr::Call(call) => last_name(&call.func).is_some_and(|name| LENGTHS.contains(&name)),
        Expr::Subscript(subscript) => last_name(&subscript.value) == Some("shape"),
        _ => false,
    }
}

/// What the `else` of a condition says. What runs once `len(x) < most` no longer holds is limited by nothing.
pub(super) fn negated(test: &Expr) -> Guards {
    if asks_for_attribute(test) {
        return Guards::CONDITION.with(Guards::ONCE);
    }
    let limited = guard(test).has(Guards::LENGTH) && !is_upper_limit(test);
    if limited { Guards::CONDITION.with(Guards::LENGTH) } else { Guards::CONDITION }
}

/// `hasattr(x, "rows")`: the branch without the attribute makes it.
fn asks_for_attribute(test: &Expr) -> bool {
    matches!(test, Expr::Call(call) if last_name(&call.func) == Some("hasattr"))
}

/// `len(x) < most`, `most > len(x)`.
fn is_upper_limit(test: &Expr) -> bool {
    let Expr::Compare(compare) = test else { return false };
    let ([op], [right]) = (&*compare.ops, &*compare.comparators) else { return false };
    match op {
        ast::CmpOp::Lt | ast::CmpOp::LtE => is_length(&compare.left),
        ast::CmpOp::Gt | ast::CmpOp::GtE => is_length(right),
        _ => false,
    }
}

/// Kinds of loops that are told by their headers alone.
pub(crate) fn while_kind(test: &Expr) -> LoopKind {
    match test {
        Expr::BooleanLiteral(literal) if literal.value => LoopKind::Forever,
        Expr::NumberLiteral(_) => LoopKind::Forever,
        Expr::Compare(compare) => {
            let names = std::iter::once(&*compare.left).chain(&compare.comparators).filter_map(last_name);
            let mut kind = LoopKind::While;
            for name in names {
                if roles::is_epoch(name) {
                    kind = LoopKind::Epochs;
                } else if roles::is_step(name) {
                    kind = LoopKind::Steps;
                }
            }
            kind
        }
        _ => LoopKind::While,
    }
}
