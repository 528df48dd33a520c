//! The interpreter: its state, and how functions are called.

mod attributes;
mod binding;
mod calls;
mod constructors;
mod container_methods;
mod containers;
mod definitions;
mod expressions;
mod frame;
pub(crate) mod guards;
mod imports;
mod invoke;
mod loops;
mod narrowing;
mod outside;
pub(crate) mod rebinding;
mod results;
mod roots;
mod statements;
mod video;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::event::{Activation, ActivationId, Loop, LoopId, LoopKind, Place, Root, What};
use crate::flow::heap::{Heap, Maker, ObjectId, Shape};
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::{Body, ClassId, FunctionId, Scopes};
use crate::flow::symbols::{Symbol, Symbols};
use crate::flow::value::{Kinds, OriginId, PlaceId, Value, ValueId, Values};
use crate::library::{Entry, Library};
use crate::project::{Location, Project};

/// Different combinations of values that one function is followed with.
const MAX_ACTIVATIONS: usize = 8;
/// The same of one that is given functions.
const MAX_HANDED: usize = 64;
/// The same in rounds that only learn what objects may hold.
const MAX_LEARNING: usize = 4;
/// Calls inside one another that are followed.
const MAX_DEPTH: usize = 24;
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
    /// Calls that made generators, by what iterates over these.
    generators: FxHashMap<ObjectId, ActivationId>,
    /// Loops that go through all frames of a video.
    frame_loops: FxHashSet<LoopId>,
    /// Functions that were handed to somebody who may call them.
    pub(crate) handed: FxHashSet<ObjectId>,
    /// What hooks are called with, and which function registered them.
    hooks: FxHashMap<ObjectId, (FunctionId, Vec<Value>)>,
    /// Functions that apply models, and whether any of them records graphs then.
    applies: FxHashMap<FunctionId, bool>,
    /// Attributes of objects nobody knows that are emptied or bound anew.
    pub(crate) emptied: FxHashSet<Symbol>,
    depth: usize,
    /// Another round comes.
    learning: bool,
    steps: u64,
    budget: u64,
    pub(crate) exhausted: bool,
    names: Names,
    /// Names of the first slots of tuples.
    positions: Vec<Symbol>,
}

/// Symbols that the interpreter asks for all the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    init: Symbol,
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
}

impl<'p> Machine<'p> {
    /// Runs the whole project.
    pub(crate) fn run(project: &'p Project) -> Self {
        let mut symbols = Symbols::default();
        let scopes = Scopes::new(project, &mut symbols);
        let names = Names {
            init: symbols.intern("__init__"),
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
            generators: FxHashMap::default(),
            frame_loops: FxHashSet::default(),
            handed: FxHashSet::default(),
            hooks: FxHashMap::default(),
            applies: FxHashMap::default(),
            emptied: FxHashSet::default(),
            depth: 0,
            learning: true,
            steps: 0,
            budget: STEPS_PER_BYTE * bytes as u64 + 1_000_000,
            exhausted: false,
            names,
            positions: Vec::new(),
        };
        for _ in 0..LoopId::SYNTHETIC {
            machine.loops.push(Loop { at: None, header: None, kind: LoopKind::Steps, function: None });
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

    /// Runs a function with the values of its parameters, or finds what came of it before.
    pub(crate) fn activate(
        &mut self,
        mut callee: Callee,
        given: Vec<Value>,
        root: Option<Root>,
    ) -> Option<ActivationId> {
        let Callee { function, closure, maker, receiver, recording } = callee;
        let recording = recording && !self.switches_recording_off(function);
        callee.recording = recording;
        let given: Vec<Value> = given.into_iter().map(Value::untold).collect();
        let numbers = given.iter().map(|value| self.values.intern(*value)).collect();
        let key = Key { function, maker, closure, recording, given: numbers };
        if let Some(&known) = self.memo.get(&key) {
            return Some(known);
        }
        let before = self.per_function.get(&function);
        // What is handed functions does what these do.
        let handed = self.handed_function(&given[usize::from(receiver.is_some()).min(given.len())..]);
        let most = match handed {
            _ if self.learning => MAX_LEARNING,
            Some(_) => MAX_HANDED,
            None => MAX_ACTIVATIONS,
        };
        if let Some(before) = before.filter(|before| before.len() >= most) {
            // What one more combination would teach, an earlier one of the same receiver most likely did.
            let same = before.iter().rev().find(|id| self.activations[id.0 as usize].receiver == receiver);
            return Some(*same.unwrap_or(&before[0]));
        }
        if self.depth >= MAX_DEPTH || self.steps > self.budget {
            self.exhausted |= self.steps > self.budget;
            return before.and_then(|before| before.last().copied());
        }
        let id = ActivationId(self.activations.len() as u32);
        self.activations.push(Activation {
            function,
            root,
            receiver,
            parameters: if self.is_decorated(function) { given.clone() } else { Vec::new() },
            events: Vec::new(),
            loops: Vec::new(),
            given: Vec::new(),
            result: Value::NOTHING,
        });
        self.memo.insert(key, id);
        self.per_function.entry(function).or_default().push(id);
        let mut frame = Frame::new(self, callee);
        frame.bind_parameters(self, &given);
        let applied = self.scopes.function(function).name == self.names.forward;
        if applied && matches!(root, Some(Root::Framework(_))) {
            self.lend(&mut frame, given.get(usize::from(receiver.is_some())..).unwrap_or_default());
        }
        self.depth += 1;
        stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, || self.run_body(&mut frame));
        self.depth -= 1;
        for event in frame.events.iter().filter(|event| matches!(event.what, What::Forward)) {
            *self.applies.entry(function).or_default() |= event.recording;
        }
        if self.scopes.function(function).yields {
            self.generators.extend(frame.result.objects.iter().map(|iterator| (iterator, id)));
        }
        self.prove_parameters(&frame, id);
        let activation = &mut self.activations[id.0 as usize];
        // They stay until the end; what is spare in them would, too.
        frame.events.shrink_to_fit();
        activation.events = frame.events;
        activation.loops = frame.event_loops;
        activation.given = frame.given;
        activation.result = activation.result.join(&frame.result);
        Some(id)
    }

    /// What users hand to a model that they apply is theirs: another object each time, for all that is known.
    fn lend(&self, frame: &mut Frame, given: &[Value]) {
        let lent = given.iter().filter(|value| !value.kinds.has(Kinds::MODULE));
        for object in lent.flat_map(|value| value.objects.iter()) {
            if matches!(self.heap.shape(object), Shape::Instance(_)) {
                frame.event(What::Birth(object), frame.statement);
            }
        }
    }

    /// What a decorated function treated as tensors was given as tensors.
    fn prove_parameters(&mut self, frame: &Frame, id: ActivationId) {
        let definition = self.scopes.function(frame.function);
        let names = definition.parameters().into_iter().flatten().map(|parameter| parameter.name().as_str());
        for (value, name) in self.activations[id.0 as usize].parameters.iter_mut().zip(names) {
            let slot = self.symbols.find(name).and_then(|name| definition.slots.get(&name));
            let at_end = slot.map(|slot| frame.slots[*slot as usize]);
            if at_end.is_some_and(|at_end| at_end == Value { kinds: Kinds::TENSOR, ..*value }) {
                value.kinds = Kinds::TENSOR;
            }
        }
    }

    fn run_body(&mut self, frame: &mut Frame) {
        let function = frame.function;
        match self.scopes.function(function).body {
            Body::Module(tree) => self.suite(frame, &tree.body),
            Body::Function(definition) => self.suite(frame, &definition.body),
            Body::Lambda(lambda) => {
                let value = self.eval(frame, &lambda.body);
                frame.result = frame.result.join(&value);
            }
        }
        if self.scopes.function(function).yields {
            let location = self.scopes.function(function).location;
            let iterator = self.heap.object(Shape::Iterator, Some(location), frame.maker);
            self.heap.add_element(iterator, frame.yielded);
            frame.result = Value::object(iterator);
        } else if frame.live {
            frame.result = frame.result.join(&Value::of(crate::flow::value::Kinds::NONE));
        }
    }

    /// Decorated with `no_grad` or `inference_mode`.
    fn switches_recording_off(&self, function: FunctionId) -> bool {
        let Some(definition) = self.scopes.function(function).definition() else { return false };
        definition.decorator_list.iter().any(|decorator| {
            let name = last_name(&decorator.expression);
            matches!(name, Some("no_grad" | "inference_mode" | "smart_inference_mode"))
        })
    }
}

/// The last name of an expression: `c` of `a.b.c`, of `a.c()` and of `c`.
pub(crate) fn last_name(expr: &ruff_python_ast::Expr) -> Option<&str> {
    use ruff_python_ast::Expr;
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        Expr::Subscript(subscript) => last_name(&subscript.value),
        Expr::Await(awaited) => last_name(&awaited.value),
        _ => None,
    }
}
