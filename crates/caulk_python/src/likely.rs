//! Whether an expression holds a tensor, as far as one file tells: by what it calls, by what its variables were
//! bound to, by how they are used.
//!
//! Not type inference: answers only where text is evidence, `Unknown` elsewhere.

use ruff_python_ast::{Expr, Operator};

use crate::index::{Assignment, Base, Index, Nature, Place};
use crate::path::{Path, Root, Step, path_of};
use crate::resolve::{MAX_DEPTH, Resolver};
use crate::value::is_collection;

/// What an expression's own text says of its type.
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
/// Modules of torch that give tuples.
const TUPLE_MODULES: &[&str] = &["LSTM", "LSTMCell", "GRU", "RNN", "MultiheadAttention"];
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

/// Whether something holds a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likely {
    /// A number, text, an object.
    Plain,
    /// A tuple, list, dict or set, of whatever.
    Container,
    /// A tensor without graph.
    Detached,
    /// A tensor, perhaps with a graph.
    Tensor,
    /// Numbers at one time, tensors at another.
    Mixed,
    Unknown,
}

impl Likely {
    /// Of a value that is either.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            // A method of tensors would fail on a container.
            (Self::Container, Self::Unknown) | (Self::Unknown, Self::Container) => Self::Container,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Tensor, Self::Detached) | (Self::Detached, Self::Tensor) => Self::Tensor,
            _ => Self::Mixed,
        }
    }

    /// Of arithmetic with both.
    pub(crate) fn with(self, other: Self) -> Self {
        match (self, other) {
            // What is added to a container is one.
            (Self::Container, _) | (_, Self::Container) => Self::Container,
            (Self::Tensor, _) | (_, Self::Tensor) => Self::Tensor,
            (Self::Mixed, _) | (_, Self::Mixed) => Self::Mixed,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Detached, _) | (_, Self::Detached) => Self::Detached,
            _ => Self::Plain,
        }
    }
}

/// What a variable's name says where nothing else does.
pub(crate) fn by_name(path: &Path) -> Likely {
    let name = match path.steps.last() {
        Some(Step::Attr(name)) => name.as_str(),
        None => path.root_name().unwrap_or(""),
        Some(_) => "",
    };
    let name = name.trim_start_matches('_').to_ascii_lowercase();
    let words: Vec<&str> = name.split('_').collect();
    let last = words.last().copied().unwrap_or("");
    let tensor = |word: &str| {
        word.ends_with("loss")
            || matches!(
                word.trim_end_matches('s'),
                "logit"
                    | "output"
                    | "pred"
                    | "prediction"
                    | "hidden"
                    | "grad"
                    | "feature"
                    | "feat"
                    | "embedding"
                    | "recon"
                    | "tensor"
                    | "activation"
                    | "attention"
                    | "latent"
                    | "kl"
            )
    };
    let plain = |word: &str| {
        matches!(
            word,
            "epoch"
                | "step"
                | "index"
                | "idx"
                | "name"
                | "names"
                | "i"
                | "j"
                | "n"
                | "key"
                | "path"
                | "time"
                | "lr"
                | "label"
                | "tag"
                | "kind"
                | "id"
                | "count"
                | "fold"
        )
    };
    if tensor(last) {
        Likely::Tensor
    } else if plain(last) {
        Likely::Plain
    } else {
        Likely::Unknown
    }
}

impl Resolver {
    /// Whether what a hint describes holds a tensor.
    pub(crate) fn likely(&self, index: &Index, hint: &Hint, place: Place, depth: usize) -> Likely {
        if depth > MAX_DEPTH {
            return Likely::Unknown;
        }
        let next = |hint: &Hint| self.likely(index, hint, place, depth + 1);
        match hint {
            Hint::Scalar | Hint::Object => Likely::Plain,
            Hint::Display => Likely::Container,
            Hint::Detached => Likely::Detached,
            Hint::Tensor => Likely::Tensor,
            Hint::Unknown => Likely::Unknown,
            Hint::Element(of) => match &**of {
                // The state of an LSTM is a tuple itself.
                Hint::Called(path)
                    if self.tuple_module(index, path, place).is_some_and(|name| name != "LSTM") =>
                {
                    Likely::Tensor
                }
                of => next(of),
            },
            Hint::Arithmetic(pair) => {
                let operand = |hint: &Hint| match (hint, next(hint)) {
                    (Hint::Element(_), Likely::Container) => Likely::Unknown,
                    (_, known) => known,
                };
                operand(&pair.0).with(operand(&pair.1))
            }
            Hint::Either(pair) => next(&pair.0).or(next(&pair.1)),
            Hint::Called(path) => self.likely_result(index, path, place),
            Hint::Of(path) => self.likely_variable(index, path, place, depth),
        }
    }

    /// Is what is bound to a path a list, tuple, set or dict wherever that can be told?
    pub(crate) fn is_collection(&self, index: &Index, path: &Path, place: Place) -> bool {
        let bindings = self.bindings(index, path, place).into_iter();
        // What it was and more says nothing new, and `None` stands for what is not there yet.
        let tells = |assignment: &&Assignment| match assignment.nature {
            Nature::Itself { .. } | Nature::Part => false,
            Nature::Empty => assignment.hint != Hint::Object,
            _ => true,
        };
        let kinds = bindings
            .filter(tells)
            .map(|assignment| self.likely(index, &assignment.hint, assignment.place, 1));
        kinds.reduce(Likely::or) == Some(Likely::Container)
    }

    /// Calling an object that is no function of this file, nor imported, is what one does with modules.
    fn likely_result(&self, index: &Index, path: &Path, place: Place) -> Likely {
        let word = path.last_name().unwrap_or("").trim_start_matches('_').to_ascii_lowercase();
        let module =
            ["model", "net", "criterion", "loss_fn", "encoder", "decoder", "policy", "backbone", "head"]
                .iter()
                .any(|known| word.contains(known));
        if self.tuple_module(index, path, place).is_some() {
            return Likely::Container;
        }
        if module && self.function_of(index, path, place.scope).is_none() {
            Likely::Tensor
        } else {
            Likely::Unknown
        }
    }

    /// The class of a module of torch that gives tuples.
    fn tuple_module<'i>(&self, index: &'i Index, path: &Path, place: Place) -> Option<&'i str> {
        let bindings = self.bindings(index, path, place).into_iter();
        let mut made = bindings.filter_map(|assignment| assignment.callee.as_ref()?.last_name());
        made.find(|name| TUPLE_MODULES.contains(name))
    }

    fn likely_variable(&self, index: &Index, path: &Path, place: Place, depth: usize) -> Likely {
        if used_as_tensor(index, path, place.scope) {
            return Likely::Tensor;
        }
        let Some(name) = path.plain() else { return by_name(path) };
        if self.class_of(index, &path.root, &[], place.scope).is_some() {
            return Likely::Plain;
        }
        let base = index.lookup(name, place.scope);
        let mut bound: Option<Likely> = None;
        for assignment in self.reaching(index, &base, place) {
            let here = match assignment.nature {
                Nature::Caught | Nature::Definition => Likely::Plain,
                _ => self.likely(index, &assignment.hint, assignment.place, depth + 1),
            };
            bound = Some(bound.map_or(here, |before| before.or(here)));
        }
        if let Base::Local(owner, _) = base {
            for given in self.given_hints(index, owner, name) {
                let here = self.likely(index, given.0, given.1, depth + 1);
                bound = Some(bound.map_or(here, |before| before.or(here)));
            }
        }
        match bound {
            Some(Likely::Unknown) | None => by_name(path),
            Some(known) => known,
        }
    }
}

/// `x.backward()`, `x.item()`, `x.detach()`: only tensors have these.
fn used_as_tensor(index: &Index, path: &Path, scope: usize) -> bool {
    let function = index.function_scope(scope);
    index.calls.iter().any(|call| {
        let Some((Step::Attr(method), before)) = call.callee.steps.split_last() else { return false };
        matches!(method.as_str(), "backward" | "item" | "detach" | "requires_grad_")
            && call.callee.root == path.root
            && before == path.steps.as_slice()
            && index.function_scope(call.place.scope) == function
    })
}
