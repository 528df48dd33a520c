//! What else the module says about a container: what bounds it, how it is read, what goes in.

use crate::sites::Spot;

/// What limits a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoundKind {
    /// `deque(maxlen=..)`, `Queue(maxsize=..)`, a list of fixed length.
    Capacity,
    /// Elements are taken out: `pop`, `popleft`, `popitem`, `remove`, `discard`, `del x[..]`, `Queue.get`.
    Removed,
    /// Cut to a part of itself: `x = x[-n:]`, `del x[:n]`.
    Trimmed,
    /// `clear()`.
    Cleared,
    /// Bound to an empty value again outside of `__init__`, in the same function's loop or per call.
    Rebound,
    /// Its length is compared.
    LengthTest,
}

/// A statement that limits a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The statement.
    pub spot: Spot,
    /// How.
    pub kind: BoundKind,
    /// The function is called by name somewhere in this file, is called by Python or a framework, or is the one that
    /// grows the container. A `close()` that nobody calls limits nothing.
    pub called: bool,
}

/// The container as an argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fed {
    /// The statement.
    pub spot: Spot,
    /// The called expression as written: `self.policy`.
    pub callee: String,
    /// The object itself is called, as modules are; otherwise one of its methods.
    pub direct: bool,
}

/// Key of a subscript store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFact {
    /// As written.
    pub text: String,
    /// Variables in it; where a variable was bound to an expression of others just before, those too.
    pub names: Vec<String>,
}

/// A number meant as a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Where it is set.
    pub spot: Spot,
    /// As code writes it: `self.window`, `MAX_HISTORY`.
    pub expression: String,
    /// What it is set to, as written.
    pub value: String,
}

/// What the module says about one container or value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Read like a cache: `k in d`, `d.get(k)`, `d[k]`, `setdefault`.
    pub lookups: Vec<Spot>,
    /// What limits it.
    pub bounds: Vec<Bound>,
    /// Limits set for it (`*_window`, `max_*`, `maxlen`, `*_limit`, ...) and never read, the best match first.
    pub windows: Vec<Window>,
    /// Calls of non-library objects that it is an argument of.
    pub fed: Vec<Fed>,
    /// Where a value is made from its own predecessor: the container itself (`h = rnn(x, h)`,
    /// `self.hidden = hidden` after `_, hidden = net(x, self.hidden)`), or a local that is stored in it after a loop
    /// updated it from itself (`q = q - lr * grad`).
    pub loop_carried: Option<Spot>,
    /// Grown by arithmetic: `+=`, `x = x + y`.
    pub summed: bool,
    /// Every growth is under `no_grad` or `inference_mode`.
    pub under_no_grad: bool,
    /// The framework hook that grows it: a method `*_step` or `on_*_batch_end`.
    pub step_hook: Option<String>,
    /// Keys of subscript stores.
    pub keys: Vec<KeyFact>,
    /// Variables that are stored.
    pub stored: Vec<String>,
}

impl Facts {
    /// Something limits it: a capacity, or a release that somebody calls. A length test alone does not.
    pub fn bounded(&self) -> bool {
        self.bounds.iter().any(|bound| bound.called && bound.kind != BoundKind::LengthTest)
    }

    /// It is handed to an object that is called like a module.
    pub fn fed_to_module(&self) -> bool {
        self.fed.iter().any(|fed| fed.direct)
    }

    /// Read and stored by key, as caches are.
    pub fn cache_like(&self) -> bool {
        !self.lookups.is_empty() && !self.keys.is_empty()
    }
}
