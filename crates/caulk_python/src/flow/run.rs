//! What is left of a run of the interpreter: values that no longer refer to the syntax trees.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::event::{Activation, Loop, Place};
use crate::flow::heap::{Heap, Shape};
use crate::flow::ids::{ClassId, FunctionId, ObjectId};
use crate::flow::machine::Machine;
use crate::flow::symbols::{Symbol, Symbols};
use crate::flow::value::{Value, Values};
use crate::project::{FileId, Location, Project};

/// A function of the project.
#[derive(Debug, Clone)]
pub struct FunctionFact {
    /// Qualified name, `<module>` for a module's body.
    pub name: String,
    /// Where it is defined.
    pub at: Location,
    /// The class whose body defines it.
    pub class: Option<ClassId>,
    /// It is a test.
    pub test: bool,
    /// Variables of functions around it that it uses.
    pub free: Vec<Symbol>,
    /// Its own parameters and variables.
    pub own: Vec<Symbol>,
    /// It remembers its results.
    pub memo: Option<Memo>,
}

/// A decorator that remembers a function's results.
#[derive(Debug, Clone, Copy)]
pub struct Memo {
    /// The decorator.
    pub decorator: Location,
    /// Nothing is ever dropped.
    pub unbounded: bool,
}

/// A class of the project.
#[derive(Debug, Clone)]
pub struct ClassFact {
    /// Qualified name.
    pub name: String,
    /// Its file.
    pub file: FileId,
    /// Canonical names of the library classes it is derived from, directly or not.
    pub libraries: Vec<String>,
    /// Classes of the project it is derived from.
    pub bases: Vec<ClassId>,
    /// Its own methods.
    pub methods: FxHashMap<Symbol, FunctionId>,
}

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub symbols: Symbols,
    pub heap: Heap,
    pub values: Values,
    pub places: Vec<Place>,
    pub origins: Vec<Location>,
    pub loops: Vec<Loop>,
    pub activations: Vec<Activation>,
    pub functions: Vec<FunctionFact>,
    pub classes: Vec<ClassFact>,
    /// What holds an object under a name.
    pub holders: FxHashMap<ObjectId, Vec<(ObjectId, Symbol)>>,
    /// Objects that are models.
    pub modules: Vec<ObjectId>,
    /// Attributes of objects nobody knows that are emptied or bound anew.
    pub(crate) emptied: FxHashSet<Symbol>,
    /// What contains an object as an element.
    pub containers: FxHashMap<ObjectId, Vec<ObjectId>>,
    /// The budget did not last: calls were not followed any more.
    pub exhausted: bool,
    /// A value with a graph depends on more places than are followed.
    pub crowded: bool,
}

impl Run {
    /// Runs a project.
    pub(crate) fn new(project: &Project) -> Self {
        let machine = Machine::run(project);
        let functions = (0..machine.scopes.functions.len() as u32)
            .map(FunctionId)
            .map(|id| {
                let function = machine.scopes.function(id);
                FunctionFact {
                    name: function.qualified.clone(),
                    at: function.location,
                    class: function.class,
                    test: machine.is_test(id),
                    free: function.free.keys().copied().collect(),
                    own: function.slots.keys().copied().collect(),
                    memo: machine.memo_of(id),
                }
            })
            .collect();
        let classes = (0..machine.scopes.classes.len() as u32)
            .map(ClassId)
            .map(|id| {
                let class = machine.scopes.class(id);
                ClassFact {
                    name: class.qualified.clone(),
                    file: class.file,
                    libraries: machine.library_bases(id),
                    bases: machine.bases_of(id),
                    methods: class.methods.clone(),
                }
            })
            .collect();
        let modules = machine.models();
        let (holders, containers) = holders(&machine.heap, machine.kept_name());
        Self {
            symbols: machine.symbols,
            heap: machine.heap.complete(),
            values: machine.values.complete(),
            places: machine.places,
            origins: machine.origins,
            loops: machine.loops,
            activations: machine.activations,
            functions,
            classes,
            holders,
            modules,
            emptied: machine.emptied,
            containers,
            exhausted: machine.exhausted,
            crowded: machine.crowded,
        }
    }

    /// A function of the project.
    pub(crate) fn function(&self, id: FunctionId) -> &FunctionFact {
        &self.functions[id.0 as usize]
    }

    /// A class of the project.
    pub(crate) fn class(&self, id: ClassId) -> &ClassFact {
        &self.classes[id.0 as usize]
    }
}

type Holders = FxHashMap<ObjectId, Vec<(ObjectId, Symbol)>>;

/// Turns "holds" around.
fn holders(heap: &Heap, kept: Symbol) -> (Holders, FxHashMap<ObjectId, Vec<ObjectId>>) {
    let mut named = Holders::default();
    let mut elements: FxHashMap<ObjectId, Vec<ObjectId>> = FxHashMap::default();
    for owner in heap.ids() {
        let object = heap.get(owner);
        let is_container =
            object.shape.is_container() || matches!(object.shape, Shape::Tuple | Shape::Iterator);
        let mut fields: Vec<(&Symbol, &Value)> = object.fields.iter().collect();
        fields.sort_unstable_by_key(|(name, _)| **name);
        for (name, value) in fields {
            for inner in value.objects.iter() {
                named.entry(inner).or_default().push((owner, *name));
                // It is a part of an object of a library, which has another holder.
                if *name == kept {
                    elements.entry(inner).or_default().push(owner);
                }
            }
        }
        if is_container {
            for inner in object.elements.objects.iter() {
                elements.entry(inner).or_default().push(owner);
            }
        }
    }
    (named, elements)
}
