//! What one walk over a file leaves: scopes, statements, blocks, assignments, calls and operations on containers.
//! Owned values, referring to one another by position.

use std::collections::{HashMap, HashSet};

use ruff_text_size::{TextRange, TextSize};

use crate::hint::Hint;
use crate::path::Path;
use crate::sites::GrowKind;
use crate::value::{Shape, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Module,
    Class,
    Function,
    Lambda,
    Comprehension,
}

/// A namespace of Python.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) kind: ScopeKind,
    /// Qualified name without `<locals>`; empty for the module, lambdas and comprehensions.
    pub(crate) name: String,
    pub(crate) parent: Option<usize>,
    /// From the first decorator to the last line.
    pub(crate) range: TextRange,
    pub(crate) parameters: Vec<Parameter>,
    /// Class of whose body this function is a part.
    pub(crate) class: Option<usize>,
    pub(crate) is_static: bool,
    pub(crate) is_property: bool,
    pub(crate) no_grad: bool,
    pub(crate) decorators: Vec<Decorator>,
    pub(crate) bound: HashSet<String>,
    pub(crate) globals: HashSet<String>,
    pub(crate) nonlocals: HashSet<String>,
    /// What it returns, where that is a path.
    pub(crate) returns: Vec<(Path, Place)>,
    /// Its body's first statement.
    pub(crate) first: Option<usize>,
    /// The `return` or `raise` that its body ends with.
    pub(crate) tail: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// Last name of its annotation.
    pub(crate) annotation: Option<String>,
    pub(crate) default: Option<Hint>,
    /// Where the default is written.
    pub(crate) default_range: Option<TextRange>,
    /// Cannot be given by position.
    pub(crate) keyword_only: bool,
}

#[derive(Debug)]
pub(crate) struct Decorator {
    pub(crate) path: Path,
    pub(crate) range: TextRange,
    pub(crate) keywords: Vec<(String, String)>,
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Class {
    /// Qualified name.
    pub(crate) name: String,
    /// Last names of its bases.
    pub(crate) bases: Vec<String>,
    pub(crate) scope: usize,
}

/// Where something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) scope: usize,
    pub(crate) block: usize,
    pub(crate) statement: usize,
    pub(crate) offset: TextSize,
}

/// A simple statement, or the header of a compound one.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) range: TextRange,
    pub(crate) scope: usize,
    /// A header: other statements hang on it.
    pub(crate) header: bool,
}

/// A suite: statements that run one after another.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) parent: Option<usize>,
    pub(crate) condition: Option<String>,
    pub(crate) repeats: Option<usize>,
    pub(crate) no_grad: bool,
}

#[derive(Debug)]
pub(crate) struct LoopRecord {
    pub(crate) statement: usize,
    /// With its body.
    pub(crate) range: TextRange,
    pub(crate) target: String,
    pub(crate) iter: String,
}

/// A name or attribute is bound.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) place: Place,
    pub(crate) target: Path,
    pub(crate) target_range: TextRange,
    /// What it is bound to, where that is the thing at a path.
    pub(crate) source: Option<Path>,
    /// What it is called for: the constructor in `x = Constructor(..)`.
    pub(crate) callee: Option<Path>,
    /// Paths that the value reads; of the whole right side where that is unpacked.
    pub(crate) reads: Vec<Path>,
    pub(crate) value: Option<TextRange>,
    pub(crate) hint: Hint,
    pub(crate) nature: Nature,
    /// The bound that the value sets, as written.
    pub(crate) capacity: Option<String>,
}

/// What a bound value is in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// `[]`, `{}`, `list()`, `None`, `0`: nothing in it.
    Empty,
    /// A part of what was there: `x[-n:]`, `[v for v in x if ..]`.
    Part,
    /// Made from what was there.
    Itself {
        arithmetic: bool,
    },
    /// An import, `def`, `class`: no data.
    Definition,
    /// The exception of an `except X as name`.
    Caught,
    Other,
}

/// What happens to the thing at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Grow(GrowKind),
    /// Read by key.
    Lookup,
    /// Elements leave.
    Remove,
    /// All but a part leaves.
    Trim,
    Clear,
    /// Bound to something empty.
    Reset,
    /// Its length is compared.
    LengthTest,
    /// A slice of it is read.
    Slice,
}

#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) place: Place,
    pub(crate) path: Path,
    /// The container as written.
    pub(crate) container: TextRange,
    pub(crate) action: Action,
    pub(crate) value: Option<Value>,
    pub(crate) key: Option<Key>,
    /// For rebinding: arithmetic with itself.
    pub(crate) arithmetic: bool,
    /// The variable or attribute gets another object; what it was stays as it is.
    pub(crate) anew: bool,
    /// The method that is called for it.
    pub(crate) method: Option<String>,
}

impl Op {
    /// Is a name bound to what it was and more?
    pub(crate) fn accumulates(&self) -> bool {
        let itself = |value: &Value| value.shape == Shape::Spread && value.reads == [self.path.clone()];
        let members = self.value.as_ref().map(|value| &value.shape);
        self.arithmetic || matches!(members, Some(Shape::Members(members)) if members.iter().any(itself))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) reads: Vec<Path>,
}

#[derive(Debug)]
pub(crate) struct Argument {
    /// `None` for one given by position, empty for `**kwargs`.
    pub(crate) name: Option<String>,
    pub(crate) starred: bool,
    pub(crate) path: Path,
    pub(crate) value: Value,
    /// Paths of a tuple's or list's members.
    pub(crate) members: Vec<Path>,
}

#[derive(Debug)]
pub(crate) struct CallRecord {
    pub(crate) place: Place,
    pub(crate) callee: Path,
    pub(crate) callee_range: TextRange,
    pub(crate) range: TextRange,
    pub(crate) arguments: Vec<Argument>,
    /// Texts among the arguments.
    pub(crate) texts: Vec<String>,
}

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// A variable of the function (or lambda, comprehension) with this scope.
    Local(usize, String),
    Global(String),
    /// An attribute, with its class where that is in this file.
    Attribute(Option<usize>, String),
    Other,
}

/// Everything about one file.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) scopes: Vec<Scope>,
    pub(crate) classes: Vec<Class>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) loops: Vec<LoopRecord>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) ops: Vec<Op>,
    pub(crate) calls: Vec<CallRecord>,
    /// Variables and attributes that are read, other than as the function of a call.
    pub(crate) reads: Vec<(Path, Place)>,
    /// What `with` statements hold, as a whole.
    pub(crate) managed: Vec<TextRange>,
    /// Attributes named in `getattr(x, "name")`.
    pub(crate) named_reads: HashSet<String>,
    /// Imported names and where they come from, dotted.
    pub(crate) imports: HashMap<String, String>,
    /// Last statement of the imports at the top, if any; new imports go behind it.
    pub(crate) last_import: Option<usize>,
    /// The module's docstring.
    pub(crate) docstring: Option<TextRange>,
    /// Deepest nesting that was walked.
    pub(crate) depth: usize,
}

impl Index {
    /// The function around a scope: itself, or what holds the lambda or comprehension.
    pub(crate) fn function_scope(&self, mut scope: usize) -> Option<usize> {
        loop {
            match self.scopes[scope].kind {
                ScopeKind::Function => return Some(scope),
                _ => scope = self.scopes[scope].parent?,
            }
        }
    }

    /// Qualified name of the function around a scope.
    pub(crate) fn function_name(&self, scope: usize) -> String {
        self.function_scope(scope)
            .map_or_else(|| "<module>".to_owned(), |found| self.scopes[found].name.clone())
    }

    /// Blocks from the innermost outwards.
    pub(crate) fn blocks_from(&self, block: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(block), |&block| self.blocks[block].parent)
    }

    /// Whether `outer` is `inner` or around it.
    pub(crate) fn encloses(&self, outer: usize, inner: usize) -> bool {
        self.blocks_from(inner).any(|block| block == outer)
    }

    /// Loops around a block, innermost first.
    pub(crate) fn loops_around(&self, block: usize) -> impl Iterator<Item = usize> {
        self.blocks_from(block).filter_map(|block| self.blocks[block].repeats)
    }

    /// Under `no_grad`, as context or decorator of a function around it.
    pub(crate) fn without_grad(&self, place: Place) -> bool {
        self.blocks_from(place.block).any(|block| self.blocks[block].no_grad)
            || std::iter::successors(Some(place.scope), |&scope| self.scopes[scope].parent)
                .any(|scope| self.scopes[scope].no_grad)
    }

    /// Conditions on the way to a block, outermost first.
    pub(crate) fn conditions(&self, block: usize) -> Vec<String> {
        let mut found: Vec<String> =
            self.blocks_from(block).filter_map(|block| self.blocks[block].condition.clone()).collect();
        found.reverse();
        found
    }

    /// The scope in which a name lives.
    pub(crate) fn lookup(&self, name: &str, scope: usize) -> Base {
        let mut at = Some(scope);
        let mut nonlocal = false;
        while let Some(id) = at {
            let here = &self.scopes[id];
            if here.globals.contains(name) || here.kind == ScopeKind::Module {
                break;
            }
            let skipped = here.kind == ScopeKind::Class && id != scope;
            if here.nonlocals.contains(name) {
                nonlocal = true;
            } else if !skipped && here.bound.contains(name) && !(nonlocal && id == scope) {
                return match here.kind {
                    ScopeKind::Class => Base::Attribute(here.class, name.to_owned()),
                    _ => Base::Local(id, name.to_owned()),
                };
            }
            at = here.parent;
        }
        Base::Global(name.to_owned())
    }

    /// The class around a method or something nested in it.
    pub(crate) fn method_class(&self, scope: usize) -> Option<usize> {
        std::iter::successors(Some(scope), |&scope| self.scopes[scope].parent)
            .find_map(|scope| self.scopes[scope].class)
    }
}
