//! Functions and classes of a project, and which function's variable a name means.

mod collector;
mod differentiated;
mod links;
mod wholes;

use ruff_python_ast::{Expr, ExprLambda, ModModule, Parameters, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::ids::{ClassId, FunctionId};
use crate::flow::symbols::Symbol;
use crate::project::{FileId, Location};

/// What is run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'p> {
    Module(&'p ModModule),
    Function(&'p StmtFunctionDef),
    Lambda(&'p ExprLambda),
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function<'p> {
    pub file: FileId,
    pub body: Body<'p>,
    pub name: Symbol,
    /// With the classes and functions around it; `<module>` for a module.
    pub qualified: String,
    /// The function around it.
    pub parent: Option<FunctionId>,
    /// The class whose body defines it.
    pub class: Option<ClassId>,
    /// Its variables and their slots.
    pub slots: FxHashMap<Symbol, u32>,
    /// Variables that inner functions use.
    pub shared: FxHashSet<Symbol>,
    /// Variables that inner functions bind, or functions of the module by `global`.
    pub rebound: FxHashSet<Symbol>,
    /// Names of functions around it whose variables it uses.
    pub free: FxHashMap<Symbol, FunctionId>,
    pub globals: FxHashSet<Symbol>,
    /// Variables that `backward()` is called on, directly or through a scaler or trainer.
    pub differentiated: FxHashSet<Symbol>,
    /// Variables that these are made of.
    pub carriers: FxHashSet<Symbol>,
    /// Variables that it returns, alone or as the loss of a dict, and those that these are made of.
    pub returned: FxHashSet<Symbol>,
    /// Variables that are used as models: `x.parameters()`, `x.train()`.
    pub models: FxHashSet<Symbol>,
    pub yields: bool,
    pub location: Location,
}

impl<'p> Function<'p> {
    pub(crate) fn parameters(&self) -> Option<&'p Parameters> {
        match self.body {
            Body::Module(_) => None,
            Body::Function(function) => Some(&function.parameters),
            Body::Lambda(lambda) => lambda.parameters.as_deref(),
        }
    }

    pub(crate) fn definition(&self) -> Option<&'p StmtFunctionDef> {
        match self.body {
            Body::Function(function) => Some(function),
            _ => None,
        }
    }
}

/// A class.
#[derive(Debug)]
pub(crate) struct Class<'p> {
    pub file: FileId,
    pub definition: &'p StmtClassDef,
    pub qualified: String,
    pub methods: FxHashMap<Symbol, FunctionId>,
}

/// Everything that is defined.
#[derive(Debug, Default)]
pub(crate) struct Scopes<'p> {
    pub functions: Vec<Function<'p>>,
    pub classes: Vec<Class<'p>>,
    pub modules: Vec<FunctionId>,
    /// Names of everything that is called somewhere.
    pub called: FxHashSet<Symbol>,
    /// Names of what is made longer by binding it anew somewhere.
    pub lengthened: FxHashSet<Symbol>,
    /// Right sides of assignments, and calls of `setattr`, that may bind an object which keeps the old value.
    pub links: FxHashSet<Location>,
    /// What joins the old value of a target with something else, by the target, where that goes through variables.
    pub joins: FxHashMap<Location, &'p Expr>,
    /// Names of attributes that are set to `True` somewhere.
    pub raised: FxHashSet<Symbol>,
    /// Names of attributes that are bound outside of a constructor, or in a loop: only these may be made from what they held.
    pub rebound_fields: FxHashSet<Symbol>,
    /// Names of properties that can be bound.
    pub setters: FxHashSet<Symbol>,
    /// Methods by their names, where only one class has one of that name.
    only_methods: FxHashMap<Symbol, Option<(ClassId, FunctionId)>>,
    by_place: FxHashMap<Location, FunctionId>,
    class_by_place: FxHashMap<Location, ClassId>,
}

impl<'p> Scopes<'p> {
    pub(crate) fn function(&self, id: FunctionId) -> &Function<'p> {
        &self.functions[id.0 as usize]
    }

    pub(crate) fn class(&self, id: ClassId) -> &Class<'p> {
        &self.classes[id.0 as usize]
    }

    /// The method of a name that one class alone defines.
    pub(crate) fn only_method(&self, name: Symbol) -> Option<(ClassId, FunctionId)> {
        self.only_methods.get(&name).copied().flatten()
    }

    /// The function or lambda that is defined at a place.
    pub(crate) fn function_at(&self, file: FileId, range: TextRange) -> Option<FunctionId> {
        self.by_place.get(&Location { file, range: range.into() }).copied()
    }

    /// The class that is defined at a place.
    pub(crate) fn class_at(&self, file: FileId, range: TextRange) -> Option<ClassId> {
        self.class_by_place.get(&Location { file, range: range.into() }).copied()
    }
}

/// Location of a node.
pub(crate) fn located(file: FileId, node: &impl Ranged) -> Location {
    Location { file, range: node.range().into() }
}
