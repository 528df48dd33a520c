//! What a condition says of the kind of a variable, where it holds and where it does not.

use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::{self as ast, Expr};

use crate::flow::machine::Machine;
use crate::flow::machine::frame::Frame;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Value};

impl Machine<'_> {
    /// Takes what a condition rules out off a variable of the function.
    ///
    /// Gives what the variables were before, for [`Frame::widen`].
    pub(super) fn narrow(&mut self, f: &mut Frame, test: &Expr, holds: bool) -> Vec<(u32, Value)> {
        match test {
            Expr::UnaryOp(not) if not.op == ast::UnaryOp::Not => self.narrow(f, &not.operand, !holds),
            Expr::BoolOp(both) if (both.op == ast::BoolOp::And) == holds => {
                both.values.iter().flat_map(|part| self.narrow(f, part, holds)).collect()
            }
            Expr::Call(call) => {
                let Some((name, kind)) = asked(call) else { return Vec::new() };
                let Some(symbol) = self.symbols.find(name) else { return Vec::new() };
                let Some(&slot) = self.scopes.function(f.function).slots.get(&symbol) else {
                    return Vec::new();
                };
                let value = &mut f.slots[slot as usize];
                let narrowed = if holds { only(value, kind) } else { without(value, kind) };
                vec![(slot, std::mem::replace(value, narrowed))]
            }
            _ => Vec::new(),
        }
    }
}

/// A value that a condition rules out to be of a kind: `x["mse"].item() if hasattr(x["mse"], "item") else x["mse"]`.
pub(super) fn without_asked(test: &Expr, other: &Expr, value: Value) -> Value {
    let Expr::Call(call) = test else { return value };
    let Some((asked, kind)) = asked_of(call) else { return value };
    if ComparableExpr::from(asked) == ComparableExpr::from(other) { without(&value, kind) } else { value }
}

/// The variable whose kind a call asks for: `isinstance(x, torch.Tensor)`, `torch.is_tensor(x)`, `hasattr(x, "item")`.
fn asked(call: &ast::ExprCall) -> Option<(&str, Kinds)> {
    let (asked, kind) = asked_of(call)?;
    Some((asked.as_name_expr()?.id.as_str(), kind))
}

/// The expression whose kind a call asks for.
fn asked_of(call: &ast::ExprCall) -> Option<(&Expr, Kinds)> {
    let [asked, rest @ ..] = &*call.arguments.args else { return None };
    let kind = match (last_name(&call.func)?, rest) {
        ("is_tensor", []) => Kinds::TENSOR,
        ("isinstance", [Expr::Tuple(classes)]) => {
            let kinds: Option<Vec<Kinds>> = classes.iter().map(class).collect();
            kinds?.into_iter().fold(Kinds::NONE_OF_ALL, Kinds::with)
        }
        ("isinstance", [one]) => class(one)?,
        ("hasattr", [Expr::StringLiteral(method)]) => match method.value.to_str() {
            "detach" | "backward" | "requires_grad" | "grad_fn" => Kinds::TENSOR,
            "item" | "cpu" | "numpy" | "tolist" => Kinds::TENSOR.with(Kinds::ARRAY),
            _ => return None,
        },
        _ => return None,
    };
    Some((asked, kind))
}

fn class(expr: &Expr) -> Option<Kinds> {
    Some(match last_name(expr)? {
        "Tensor" => Kinds::TENSOR,
        "ndarray" => Kinds::ARRAY,
        "int" | "float" | "bool" | "Number" => Kinds::NUMBER,
        "str" => Kinds::TEXT,
        _ => return None,
    })
}

fn only(value: &Value, kind: Kinds) -> Value {
    if kind.has(Kinds::TENSOR) { *value } else { Value { kinds: kind, ..without(value, Kinds::TENSOR) } }
}

fn without(value: &Value, kind: Kinds) -> Value {
    let left = value.kinds.without(kind);
    let value = if kind.has(Kinds::TENSOR) { value.detached() } else { *value };
    if left.is_empty() { Value::UNKNOWN } else { Value { kinds: left, ..value } }
}
