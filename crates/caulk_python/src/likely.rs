//! Whether an expression holds a tensor, as far as one file tells: by what it calls, by what its variables were
//! bound to, by how they are used.
//!
//! Not type inference: answers only where text is evidence, `Unknown` elsewhere.

use crate::hint::Hint;
use crate::index::{Assignment, Base, Index, Nature, Place};
use crate::path::{Path, Step};
use crate::resolve::{MAX_DEPTH, Resolver};

/// Modules of torch that give tuples.
const TUPLE_MODULES: &[&str] = &["LSTM", "LSTMCell", "GRU", "RNN", "MultiheadAttention"];

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
