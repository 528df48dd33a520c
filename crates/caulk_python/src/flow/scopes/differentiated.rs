//! Which variables carry a graph because something that is made of them is differentiated.
//!
//! `loss.backward()` proves that `loss` carries a graph. What `loss` is bound to as a whole carries one, too: another
//! name for it, the parts that are summed up, the prediction that a function of the library takes first. A factor does
//! not: it may be a plain number.

use ruff_python_ast::{self as ast, Expr, Operator};

use crate::flow::syntax::last_name;

/// Names of variables: at least one carries a graph if the value of an expression does.
pub(super) fn carriers(expr: &Expr) -> Vec<&ast::ExprName> {
    let mut found = Vec::new();
    collect(expr, &mut found);
    found
}

fn collect<'e>(expr: &'e Expr, found: &mut Vec<&'e ast::ExprName>) {
    match expr {
        Expr::Name(name) => found.push(name),
        Expr::If(choice) => {
            collect(&choice.body, found);
            collect(&choice.orelse, found);
        }
        Expr::BinOp(binary) => match binary.op {
            Operator::Add | Operator::Sub => {
                collect(&binary.left, found);
                collect(&binary.right, found);
            }
            // `loss / steps`.
            Operator::Div => collect(&binary.left, found),
            _ => {}
        },
        Expr::UnaryOp(unary) => collect(&unary.operand, found),
        Expr::Subscript(part) => collect(&part.value, found),
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(method) if UNARY.contains(&method.attr.as_str()) => {
                match last_name(&method.value) {
                    Some("torch") => first_argument(call, found),
                    _ => collect(&method.value, found),
                }
            }
            // Functions of the library have no parameters: the graph comes in with an argument.
            Expr::Attribute(function) if is_functional(&function.value) => first_argument(call, found),
            Expr::Name(name) if name.id == "sum" => first_argument(call, found),
            _ => {}
        },
        _ => {}
    }
}

fn first_argument<'e>(call: &'e ast::ExprCall, found: &mut Vec<&'e ast::ExprName>) {
    match call.arguments.args.first() {
        Some(Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. })) => {
            for element in elts {
                collect(element, found);
            }
        }
        Some(first) => collect(first, found),
        None => {}
    }
}

/// Methods, and functions of `torch`, of one tensor: what they give carries a graph only if that one does.
const UNARY: &[&str] = &[
    "abs",
    "cat",
    "clamp",
    "exp",
    "flatten",
    "float",
    "log",
    "log_softmax",
    "logsumexp",
    "mean",
    "norm",
    "pow",
    "relu",
    "reshape",
    "sigmoid",
    "softmax",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "sum",
    "tanh",
    "unsqueeze",
    "view",
];

/// `F` and `torch.nn.functional`.
fn is_functional(module: &Expr) -> bool {
    matches!(last_name(module), Some("F" | "functional"))
}
