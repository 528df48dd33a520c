//! The interpreter: its state, and its rounds over the project.

mod activate;
mod attributes;
mod before;
mod binding;
mod called;
mod calls;
mod collation;
mod constructors;
mod container_methods;
mod containers;
mod definitions;
mod entry;
mod expressions;
mod frame;
pub(crate) mod guards;
mod imports;
mod invoke;
mod kept;
mod loops;
mod metaclass;
mod narrowing;
mod order;
mod outside;
pub(crate) mod rebinding;
mod results;
mod roots;
mod slices;
mod statements;
mod video;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::event::{Activation, Loop, LoopKind, Place};
use crate::flow::heap::{Heap, Maker, Shape};
use crate::flow::ids::{ActivationId, ClassId, FunctionId, LoopId, ObjectId, OriginId, PlaceId, ValueId};
use crate::flow::scopes::Scopes;
use crate::flow::symbols::{Symbol, Symbols};
use crate::flow::value::{Value, Values};
use crate::library::{Entry, Library};
use crate::project::{Location, Project};

/// Rounds over the whole project until nothing is learnt any more; one less for large projects.
const MAX_ROUNDS: usize = 3;
/// From so many bytes of source on, a project is large.
const LARGE: usize = 2 << 20;
/// Expressions that are looked at for each byte of source, on average, before the analysis stops following calls.
const STEPS_PER_BYTE: u64 = 24;

/// What a call is remembered by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    function: FunctionId,
    maker: Maker,
    closure: Option<ObjectId>,
    recording: bool,
    given: Box<[ValueId]>,
}

/// A function as it is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callee {
    function: FunctionId,
    /// Variables of the functions around it.
    closure: Option<ObjectId>,
    maker: Maker,
    receiver: Option<ObjectId>,
    /// Graphs are recorded.
    recording: bool,
}

/// How a function that puts a batch together is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collation {
    /// A list of samples.
    samples: Value,
    /// Workers call it.
    in_workers: bool,
}

/// A function that is registered as a hook of a module.
#[derive(Debug, Clone)]
pub(crate) struct Hooked {
    /// Who registers it.
    by: FunctionId,
    /// What it is called with.
    arguments: Vec<Value>,
    /// Nobody keeps the handle that removes it.
    dropped: bool,
}

/// Whether graphs are recorded where a function applies models.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Applies {
    /// They are, at some call.
    recording: bool,
    /// They are not, at some call.
    without: bool,
}

/// The state of the interpreter; what is left at the end is the analysis.
pub(crate) struct Machine<'p> {
    pub(crate) project: &'p Project,
    pub(crate) scopes: Scopes<'p>,
    pub(crate) symbols: Symbols,
    pub(crate) library: Library,
    pub(crate) heap: Heap,
    pub(crate) values: Values,
    pub(crate) places: Vec<Place>,
    place_ids: FxHashMap<Place, PlaceId>,
    pub(crate) origins: Vec<Location>,
    origin_ids: FxHashMap<Location, OriginId>,
    pub(crate) loops: Vec<Loop>,
    loop_ids: FxHashMap<Location, LoopId>,
    pub(crate) activations: Vec<Activation>,
    memo: FxHashMap<Key, ActivationId>,
    per_function: FxHashMap<FunctionId, Vec<ActivationId>>,
    members: FxHashMap<(Symbol, Symbol), ObjectId>,
    entries: FxHashMap<Symbol, Option<Entry>>,
    /// What classes are derived from.
    pub(crate) bases: FxHashMap<ClassId, Vec<Value>>,
    /// The metaclasses of the project that classes name.
    metaclasses: FxHashMap<ClassId, ClassId>,
    /// Calls that made generators, by what iterates over these.
    generators: FxHashMap<ObjectId, ActivationId>,
    /// Loops that go through all frames of a video.
    frame_loops: FxHashSet<LoopId>,
    /// Functions that were handed to somebody who may call them.
    pub(crate) handed: FxHashSet<ObjectId>,
    /// What puts the samples of a batch together: what a sample is, and whether workers do it.
    collates: FxHashMap<ObjectId, Collation>,
    /// Functions that are registered as hooks of modules.
    hooks: FxHashMap<ObjectId, Hooked>,
    /// Functions that apply models, and how.
    applies: FxHashMap<FunctionId, Applies>,
    /// Objects that keep another one made at the same line, with the places that hold them.
    linked: FxHashMap<ObjectId, FxHashSet<ObjectId>>,
    /// Attributes of objects nobody knows that are emptied or bound anew.
    pub(crate) emptied: FxHashSet<Symbol>,
    depth: usize,
    /// Another round comes.
    learning: bool,
    steps: u64,
    budget: u64,
    pub(crate) exhausted: bool,
    /// A value with a graph depends on more places than are followed.
    pub(crate) crowded: bool,
    names: Names,
    /// Names of the first slots of tuples.
    positions: Vec<Symbol>,
}

/// Symbols that the interpreter asks for all the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    init: Symbol,
    /// What a dataclass calls when its fields are set.
    post_init: Symbol,
    call: Symbol,
    forward: Symbol,
    enter: Symbol,
    exit: Symbol,
    getitem: Symbol,
    setitem: Symbol,
    iter: Symbol,
    next: Symbol,
    any: Symbol,
    /// What a decorator puts around a function.
    around: Symbol,
    /// What an object of a library keeps.
    kept: Symbol,
    /// The objects of a class that has a metaclass.
    made: Symbol,
}

impl<'p> Machine<'p> {
    /// Runs the whole project.
    pub(crate) fn run(project: &'p Project) -> Self {
        let mut symbols = Symbols::default();
        let scopes = Scopes::new(project, &mut symbols);
        let names = Names {
            init: symbols.intern("__init__"),
            post_init: symbols.intern("__post_init__"),
            call: symbols.intern("__call__"),
            forward: symbols.intern("forward"),
            enter: symbols.intern("__enter__"),
            exit: symbols.intern("__exit__"),
            getitem: symbols.intern("__getitem__"),
            setitem: symbols.intern("__setitem__"),
            iter: symbols.intern("__iter__"),
            next: symbols.intern("__next__"),
            any: symbols.intern("[]"),
            around: symbols.intern("<around>"),
            kept: symbols.intern("<kept>"),
            made: symbols.intern("<made>"),
        };
        let bytes: usize = project.ids().map(|id| project.file(id).source.text().len()).sum();
        let mut machine = Self {
            project,
            scopes,
            symbols,
            library: Library::new(),
            heap: Heap::default(),
            values: Values::default(),
            places: Vec::new(),
            place_ids: FxHashMap::default(),
            origins: Vec::new(),
            origin_ids: FxHashMap::default(),
            loops: Vec::new(),
            loop_ids: FxHashMap::default(),
            activations: Vec::new(),
            memo: FxHashMap::default(),
            per_function: FxHashMap::default(),
            members: FxHashMap::default(),
            entries: FxHashMap::default(),
            bases: FxHashMap::default(),
            metaclasses: FxHashMap::default(),
            generators: FxHashMap::default(),
            frame_loops: FxHashSet::default(),
            handed: FxHashSet::default(),
            collates: FxHashMap::default(),
            hooks: FxHashMap::default(),
            applies: FxHashMap::default(),
            linked: FxHashMap::default(),
            emptied: FxHashSet::default(),
            depth: 0,
            learning: true,
            steps: 0,
            budget: STEPS_PER_BYTE * bytes as u64 + 1_000_000,
            exhausted: false,
            crowded: false,
            names,
            positions: Vec::new(),
        };
        for _ in 0..LoopId::SYNTHETIC {
            let kind = LoopKind::Steps;
            machine.loops.push(Loop {
                at: None,
                header: None,
                kind,
                counted: false,
                at_most: None,
                function: None,
            });
        }
        machine.loops[LoopId::EPOCHS.0 as usize].kind = LoopKind::Epochs;
        machine.loops[LoopId::VALIDATION.0 as usize].kind = LoopKind::Batches;
        machine.loops[LoopId::SAMPLES.0 as usize].kind = LoopKind::Items;
        let rounds = MAX_ROUNDS - usize::from(bytes > LARGE);
        for round in 1..=rounds {
            machine.learning = round == 1;
            machine.round();
            if !machine.heap.changed && !machine.learning {
                break;
            }
        }
        machine
    }

    /// Runs everything once, with what the heap has learnt before.
    fn round(&mut self) {
        self.heap.changed = false;
        self.activations.clear();
        self.memo.clear();
        self.generators.clear();
        self.per_function.clear();
        self.steps = 0;
        self.run_roots();
    }

    pub(crate) fn place(&mut self, place: Place) -> PlaceId {
        if let Some(&known) = self.place_ids.get(&place) {
            return known;
        }
        let id = PlaceId(self.places.len() as u32);
        self.places.push(place);
        self.place_ids.insert(place, id);
        id
    }

    fn origin(&mut self, at: Location) -> OriginId {
        if let Some(&known) = self.origin_ids.get(&at) {
            return known;
        }
        let id = OriginId(self.origins.len() as u32);
        self.origins.push(at);
        self.origin_ids.insert(at, id);
        id
    }

    /// The object that stands for a module of the project.
    pub(crate) fn module_object(&mut self, file: crate::project::FileId) -> ObjectId {
        self.heap.unique(Shape::Module(file))
    }

    /// The object that stands for a class.
    pub(crate) fn class_object(&mut self, class: ClassId) -> ObjectId {
        self.heap.unique(Shape::Class(class))
    }

    /// An object of a class that nobody in particular made.
    pub(crate) fn anybody(&mut self, class: ClassId) -> ObjectId {
        self.heap.unique(Shape::Instance(class))
    }

    /// Something of a library.
    pub(crate) fn external(&mut self, name: &str) -> ObjectId {
        let symbol = self.symbols.intern(&crate::library::canonical(name));
        self.heap.unique(Shape::External(symbol))
    }

    /// A member of something of a library.
    fn external_member(&mut self, of: Symbol, member: Symbol) -> ObjectId {
        if let Some(&known) = self.members.get(&(of, member)) {
            return known;
        }
        let dotted = format!("{}.{}", self.symbols.name(of), self.symbols.name(member));
        let object = self.external(&dotted);
        self.members.insert((of, member), object);
        object
    }

    /// What is known of a library's name.
    fn entry(&mut self, name: Symbol) -> Option<Entry> {
        if let Some(&known) = self.entries.get(&name) {
            return known;
        }
        let entry = self.library.entry(self.symbols.name(name));
        self.entries.insert(name, entry);
        entry
    }
}
