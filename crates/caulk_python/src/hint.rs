//! The type of an expression by its own text.
//!
//! Not type inference: answers only where text is evidence, `Unknown` elsewhere.

use ruff_python_ast::{Expr, Operator};

use crate::display::is_collection;
use crate::path::{Path, Root, Step, path_of};

/// The type of an expression by its own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    /// A number.
    Scalar,
    /// No tensor and no number: text, arrays, functions, objects of libraries.
    Object,
    /// A tuple, list, dict or set.
    Display,
    /// An element of this.
    Element(Box<Hint>),
    /// A tensor without graph.
    Detached,
    /// A tensor.
    Tensor,
    /// What this variable holds.
    Of(Path),
    /// The result of calling this.
    Called(Path),
    /// Arithmetic with both.
    Arithmetic(Box<(Hint, Hint)>),
    /// One or the other.
    Either(Box<(Hint, Hint)>),
    /// Not said.
    Unknown,
}

/// Functions and methods that give numbers.
const SCALARS: &[&str] = &[
    "float",
    "int",
    "len",
    "round",
    "bool",
    "ord",
    "hash",
    "id",
    "item",
    "numel",
    "dim",
    "time",
    "perf_counter",
    "monotonic",
    "size",
    "qsize",
    "index",
    "count",
    "get_lr",
    "nelement",
    "random",
    "randrange",
    "uniform",
    "gauss",
];
/// Functions and methods that give text or containers of anything but tensors.
const OBJECTS: &[&str] = &[
    "str",
    "repr",
    "format",
    "join",
    "strip",
    "split",
    "tolist",
    "numpy",
    "asarray",
    "copy_to_host",
    "basename",
    "keys",
    "dumps",
    "to_dict",
    "isoformat",
    "encode",
    "decode",
    "read",
    "range",
    "sorted",
    "Path",
];
/// Methods that give collections, of tensors as it may be.
const COLLECTIONS: &[&str] = &["copy", "items", "values", "state_dict", "parameters", "named_parameters"];
/// Functions and methods of torch that give tuples or lists of tensors.
const TUPLES: &[&str] = &[
    "split",
    "chunk",
    "unbind",
    "tensor_split",
    "meshgrid",
    "broadcast_tensors",
    "topk",
    "sort",
    "svd",
    "qr",
    "eigh",
    "slogdet",
    "grad",
];
/// Types of collections other than those that a display makes.
const COLLECTION_TYPES: &[&str] = &["deque", "defaultdict", "OrderedDict", "Counter"];
/// Methods that give the same tensor in another form.
const SAME: &[&str] = &[
    "requires_grad_",
    "cpu",
    "cuda",
    "to",
    "clone",
    "float",
    "double",
    "half",
    "bfloat16",
    "squeeze",
    "unsqueeze",
    "view",
    "reshape",
    "flatten",
    "contiguous",
    "permute",
    "transpose",
    "expand",
    "t",
];
/// Methods of tensors that give tensors.
const TENSORS: &[&str] = &[
    "mean",
    "sum",
    "abs",
    "pow",
    "sqrt",
    "exp",
    "log",
    "softmax",
    "log_softmax",
    "sigmoid",
    "tanh",
    "relu",
    "norm",
    "argmax",
    "logsumexp",
    "clamp",
    "var",
    "std",
    "matmul",
    "mm",
    "bmm",
    "log_prob",
    "square",
    "prod",
    "cumsum",
];

pub(crate) fn hint_of(expr: &Expr) -> Hint {
    hint(expr, 0)
}

/// Of what gets one element of an expression's value: by a subscript, by unpacking.
pub(crate) fn hint_of_part(expr: &Expr) -> Hint {
    part(expr, 0)
}

fn part(expr: &Expr, depth: usize) -> Hint {
    match (hint(expr, depth), expr) {
        (Hint::Display, Expr::Call(call)) => {
            let gives_tensors = path_of(&call.func).last_name().is_some_and(|name| TUPLES.contains(&name));
            if gives_tensors { Hint::Tensor } else { Hint::Unknown }
        }
        (whole, _) => Hint::Element(Box::new(whole)),
    }
}

fn hint(expr: &Expr, depth: usize) -> Hint {
    if depth > 24 {
        return Hint::Unknown;
    }
    let next = |expr: &Expr| hint(expr, depth + 1);
    match expr {
        Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) | Expr::Compare(_) => Hint::Scalar,
        Expr::StringLiteral(_)
        | Expr::BytesLiteral(_)
        | Expr::FString(_)
        | Expr::TString(_)
        | Expr::NoneLiteral(_)
        | Expr::EllipsisLiteral(_)
        | Expr::Lambda(_) => Hint::Object,
        Expr::Generator(_) => Hint::Display,
        Expr::Name(_) => Hint::Of(path_of(expr)),
        Expr::Attribute(attribute) => match attribute.attr.as_str() {
            "data" | "shape" | "dtype" | "device" => Hint::Detached,
            "T" | "mT" => next(&attribute.value),
            _ => Hint::Of(path_of(expr)),
        },
        Expr::Subscript(subscript) if subscript.slice.is_slice_expr() => next(&subscript.value),
        Expr::Subscript(subscript) => part(&subscript.value, depth + 1),
        _ if is_collection(expr) => Hint::Display,
        Expr::BinOp(binary) if binary.op == Operator::Mod && binary.left.is_string_literal_expr() => {
            Hint::Object
        }
        Expr::BinOp(binary) => Hint::Arithmetic(Box::new((next(&binary.left), next(&binary.right)))),
        Expr::UnaryOp(unary) => next(&unary.operand),
        Expr::If(choice) => Hint::Either(Box::new((next(&choice.body), next(&choice.orelse)))),
        Expr::Named(named) => next(&named.value),
        Expr::Call(call) => {
            let path = path_of(&call.func);
            let receiver = match &*call.func {
                Expr::Attribute(attribute) => Some(&*attribute.value),
                _ => None,
            };
            called(path, receiver.map(next))
        }
        _ => Hint::Unknown,
    }
}

fn called(path: Path, receiver: Option<Hint>) -> Hint {
    let name = path.last_name().unwrap_or("");
    // `torch.cat(x)` itself, not a method of its result.
    let plain = !path.steps.contains(&Step::Call);
    let library =
        plain && matches!(&path.root, Root::Name(root) if matches!(root.as_str(), "torch" | "F" | "nn"));
    if library && path.steps.len() >= usize::from(path.root == Root::Name("torch".to_owned())) {
        return match name.chars().next() {
            // `torch.optim.Adam(..)`, `nn.Linear(..)`, `torch.cuda.Event(..)`.
            Some(first) if first.is_uppercase() && !name.ends_with("Tensor") && name != "Parameter" => {
                Hint::Object
            }
            _ if SCALARS.contains(&name) => Hint::Scalar,
            _ if TUPLES.contains(&name) => Hint::Display,
            _ => Hint::Tensor,
        };
    }
    if matches!(&path.root, Root::Name(root) if matches!(root.as_str(), "np" | "numpy" | "math" | "os" | "time"))
    {
        return if path.root == Root::Name("math".to_owned()) { Hint::Scalar } else { Hint::Object };
    }
    match receiver {
        Some(_) if name == "detach" => Hint::Detached,
        Some(receiver) if SAME.contains(&name) => match receiver {
            Hint::Unknown | Hint::Called(_) => Hint::Tensor,
            known => known,
        },
        _ if SCALARS.contains(&name) => Hint::Scalar,
        _ if OBJECTS.contains(&name) => Hint::Object,
        Some(_) if COLLECTIONS.contains(&name) || TUPLES.contains(&name) => Hint::Display,
        _ if COLLECTION_TYPES.contains(&name) => Hint::Display,
        Some(receiver) if TENSORS.contains(&name) => match receiver {
            Hint::Detached | Hint::Scalar | Hint::Object | Hint::Display => receiver,
            _ => Hint::Tensor,
        },
        _ => Hint::Called(path),
    }
}
