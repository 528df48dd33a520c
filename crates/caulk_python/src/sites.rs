//! What a module says about a name: where it grows, where it is made, who calls what.

use crate::spot::Spot;
use crate::value::Value;

/// How a statement makes something grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrowKind {
    /// `append`, `appendleft`.
    Append,
    /// `extend`, `extendleft`.
    Extend,
    /// `insert`, `bisect.insort`.
    Insert,
    /// `add` of a set.
    Add,
    /// `update`, `|=`.
    Update,
    /// `setdefault`.
    SetDefault,
    /// `d[k] = v`.
    Subscript,
    /// `x[a:b] = v`.
    SliceAssign,
    /// `+=` and the other augmented operators, `add_`.
    AugAdd,
    /// `put`, `put_nowait`.
    Put,
    /// `heapq.heappush`.
    Heap,
    /// A hook, handler or callback is registered.
    Register,
    /// `write` to a buffer.
    Write,
    /// Bound to a value made from itself: `x = x + y`, `x = torch.cat([x, y])`, `h = rnn(x, h)`.
    Rebind,
    /// Bound to another value.
    Assign,
}

impl GrowKind {
    /// False for [`GrowKind::Assign`], which replaces what was there.
    pub fn grows(self) -> bool {
        self != Self::Assign
    }
}

/// What a grown expression hangs on, as the statement writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// An attribute.
    Attribute,
    /// A name of the module.
    Global,
    /// A variable of a function.
    Local,
    /// A parameter: what grows is the caller's.
    Parameter,
    /// Anything else: the result of a call, a literal.
    Other,
}

/// A statement that grows or rebinds something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrowSite {
    /// The statement.
    pub spot: Spot,
    /// The grown expression as written: `self.all_st_ious`, `history["val"]`, `_WARP_CACHE`.
    pub container: String,
    /// How.
    pub kind: GrowKind,
    /// What the expression hangs on.
    pub holder: Holder,
    /// What is stored, where one expression says it.
    pub value: Option<Value>,
    /// Key of `d[k] = v` and `setdefault`, as written.
    pub key: Option<String>,
    /// What grows is an element of the named container (`self.rows[i].append(x)` for `rows`), not itself.
    pub element: bool,
    /// The statement writes another name for the container: an alias, a parameter.
    pub aliased: bool,
    /// Calls that hand the container to the function of [`Self::spot`], innermost first.
    pub via: Vec<Spot>,
    /// Names and constant keys in the container's expression: `history`, `val` of `history["val"]`.
    pub names: Vec<String>,
    /// The container is what an entry under a constant key is: `group["params"]`.
    pub keyed: bool,
    /// Conditions between function and statement, outermost first: tests of `if` and `while`, `not (..)` for
    /// `else`, `except X`, `case P`.
    pub conditions: Vec<String>,
    /// Bound to what it was and more: `+=`, `x = x + y`, `x = [*x, y]`.
    pub accumulates: bool,
    /// What is bound is a list, tuple, set or dict, as far as the source tells.
    pub collection: bool,
    /// Inside `no_grad` or `inference_mode`, as context or decorator.
    pub no_grad: bool,
    /// Index of the statement's operation in the module's index.
    pub(crate) op: usize,
}

impl GrowSite {
    /// Elements are added to what the name stands for, rather than a number or tensor to a sum.
    pub fn adds_elements(&self) -> bool {
        self.accumulates && self.collection
    }
}

/// Where a name is first bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// The statement.
    pub spot: Spot,
    /// The name as written: `self.queue`.
    pub target: String,
    /// What it is bound to, as written: `queue.Queue()`.
    pub value: String,
    /// The bound that the value itself sets, as written: `100` of `deque(maxlen=100)`.
    pub bound: Option<String>,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The statement.
    pub spot: Spot,
    /// The called expression as written: `loss.backward`.
    pub callee: String,
    /// Positional arguments as written.
    pub arguments: Vec<String>,
    /// Keyword arguments as written; `**kwargs` has an empty name.
    pub keywords: Vec<(String, String)>,
    /// The name or attribute that the whole result is bound to: `handle` in `handle = layer.register_hook(f)`.
    pub bound_to: Option<String>,
    /// Names and attributes that its arguments mention: `self`, `write` of `Thread(target=self.write)`.
    pub mentions: Vec<String>,
    /// Texts among its arguments, `{}` for what is put into them.
    pub texts: Vec<String>,
    /// A `with` statement or an exit stack gives back what it gives.
    pub managed: bool,
}

impl Call {
    /// The text of a keyword argument.
    pub fn keyword(&self, name: &str) -> Option<&str> {
        self.keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A function under a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decorated {
    /// The decorator's line; `function` is the decorated function.
    pub spot: Spot,
    /// The decorator without `@`: `lru_cache(maxsize=None)`.
    pub decorator: String,
    /// `maxsize` as written, where one is.
    pub maxsize: Option<String>,
    /// Parameters of the function, in order.
    pub parameters: Vec<String>,
    /// A method, with `self` among the keys.
    pub method: bool,
}

/// A loop around a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The loop's header.
    pub spot: Spot,
    /// Target of a `for`, as written; empty for `while`.
    pub target: String,
    /// What is iterated, or the test of a `while`, as written.
    pub iter: String,
}

/// The statement at a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The statement; for a loop, `with`, `if` or `def` its header.
    pub spot: Spot,
    /// What it grows first, if it grows something.
    pub grow: Option<GrowSite>,
    /// Names and attributes that it binds, as written.
    pub binds: Vec<String>,
}

/// What an edit changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TryKind {
    /// The value that is stored.
    Value,
    /// How much is kept.
    Bound,
    /// When it is emptied.
    Clear,
    /// When a resource is given back.
    Release,
    /// Where something is made: before a loop instead of in it.
    Place,
    /// The type of what is kept: an array instead of a list.
    Array,
    /// When garbage is collected.
    Collect,
    /// Whether it is kept at all.
    Drop,
}

/// An edit that may end a leak and may do harm; a run shows which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditTry {
    /// What it changes.
    pub kind: TryKind,
    /// The change in words.
    pub description: String,
    /// The change as text.
    pub edits: Vec<caulk_core::Edit>,
}

/// Whose name is meant where several functions or classes use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Owner {
    /// Anybody's.
    #[default]
    Any,
    /// The module's own.
    Module,
    /// An attribute, of whatever class.
    Attribute,
    /// A variable of this function, by qualified name; `<locals>` is ignored.
    Function(String),
    /// An attribute of instances of this class (or of the class); a module prefix is ignored.
    Class(String),
}
