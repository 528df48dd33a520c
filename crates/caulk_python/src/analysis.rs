//! What a project does with memory over time: what grows, how often, for how long, and what goes in.
//!
//! Rules ask here. Everything is a fact about a place in source, with the cases in which it was met: the same line may
//! be reached from several callers with several values.

mod call;
mod graphs;
mod silence;

pub use graphs::ApplicationFact;

use std::collections::BTreeMap;

use crate::flow::event::{
    Activation, ActivationId, Event, Growth, Loop, LoopId, LoopKind, Place, Root, What,
};
use crate::flow::heap::{Object, ObjectId, Shape};
use crate::flow::lifetime::{Chain, Duration, Lifetimes};
use crate::flow::run::{ClassFact, FunctionFact, Run};
use crate::flow::scopes::{ClassId, FunctionId};
use crate::flow::symbols::Symbol;
use crate::flow::value::{Few, Kinds, OriginId, PlaceId, Traits, Value};
use crate::project::{Location, Project};

pub use call::CallFact;

/// The result of looking at a whole project.
#[derive(Debug)]
pub struct Analysis {
    project: Project,
    problems: Vec<String>,
    run: Run,
    lifetimes: Lifetimes,
}

/// Ways in which one thing happens that are told apart.
const MAX_CASES: usize = 48;

/// One way in which a container grows at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrowthCase {
    /// The container.
    pub object: ObjectId,
    /// What goes in.
    pub value: Value,
    /// Under which key.
    pub key: Value,
    /// For how long.
    pub duration: Duration,
    /// Graphs are recorded there.
    pub recording: bool,
}

/// A place at which a container grows.
#[derive(Debug, Clone)]
pub struct GrowthFact {
    /// The container's expression.
    pub container: Location,
    /// The statement.
    pub statement: Location,
    /// The expression that is stored, where there is one.
    pub stored: Option<Location>,
    /// The function around it.
    pub function: FunctionId,
    /// By what it grows.
    pub how: Growth,
    /// Every way in which that happens.
    pub cases: Vec<GrowthCase>,
}

/// One way in which a place is bound to something made from what it held.
#[derive(Debug, Clone)]
pub struct CarryCase {
    /// The new value.
    pub value: Value,
    /// A model or a solver's step made it from the old one; else something is added to that.
    pub fed: bool,
    /// For how long it goes on.
    pub duration: Duration,
}

/// A place in source at which a variable, attribute or entry takes its own graph along.
#[derive(Debug, Clone)]
pub struct CarryFact {
    /// What is bound.
    pub target: Location,
    /// The statement.
    pub statement: Location,
    /// The function around it.
    pub function: FunctionId,
    /// What is carried.
    pub place: PlaceId,
    /// `+=` and the like.
    pub augmented: bool,
    /// Every way in which that happens.
    pub cases: Vec<CarryCase>,
}

/// An attribute, global or shared variable that is bound.
#[derive(Debug, Clone)]
pub struct BindFact {
    /// What is bound.
    pub target: Location,
    /// The statement.
    pub statement: Location,
    /// The function around it.
    pub function: FunctionId,
    /// Whose attribute or global it is.
    pub place: Place,
    /// What it is bound to.
    pub value: Value,
    /// The loops around it, with those of callers.
    pub around: Chain,
    /// Why it is run at all.
    pub root: Root,
}

/// What holds a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// An attribute of an instance.
    Attribute(ClassId, Symbol),
    /// An attribute of a class itself.
    ClassAttribute(ClassId, Symbol),
    /// A global of a module.
    Global(Symbol),
    /// A default of a parameter.
    Default(FunctionId, Symbol),
    /// A variable that inner functions share.
    Closure(FunctionId, Symbol),
    /// A variable of a function.
    Local,
}

/// What a value keeps alive, as far as it is known: itself and what is reached from it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Contents {
    /// All kinds of what is in it.
    pub kinds: Kinds,
    /// All traits of what is in it.
    pub traits: Traits,
    /// The tensor whose graph is kept.
    pub graph: Option<Value>,
    /// Loops through which a model or a solver's step made such a tensor from its own predecessor.
    pub iterated: Few<LoopId, 4>,
    /// Where the graphs of all tensors in it were made.
    pub origins: Few<OriginId, 8>,
    /// A view of something larger.
    pub view: Option<Value>,
    /// A tensor on an accelerator.
    pub on_device: Option<Value>,
    /// A function that keeps variables.
    pub function: Option<FunctionId>,
}

impl Contents {
    /// Nothing but numbers, text and `None`.
    pub fn is_plain(&self) -> bool {
        self.kinds.without(Kinds::NUMBER.with(Kinds::TEXT).with(Kinds::NONE).with(Kinds::OBJECT)).is_empty()
            && self.function.is_none()
    }
}

impl Analysis {
    /// Looks at all files of a project together.
    pub fn new(project: Project) -> Self {
        let run = Run::new(&project);
        let lifetimes = Lifetimes::new(&run);
        let mut problems = project.problems().to_vec();
        if run.exhausted {
            problems.push(
                "this project is too entangled: not all calls were followed, patterns across functions may be missed"
                    .to_owned(),
            );
        }
        Self { project, problems, run, lifetimes }
    }

    /// The files.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Files that could not be read whole, or took more than their budget; for people.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// A function.
    pub fn function(&self, id: FunctionId) -> &FunctionFact {
        self.run.function(id)
    }

    /// The smallest function around a place.
    pub fn function_around(&self, at: Location) -> Option<&FunctionFact> {
        self.run.functions.iter().filter(|function| at.is_in(function.at)).min_by_key(|function| {
            let range: ruff_text_size::TextRange = function.at.range.into();
            range.len()
        })
    }

    /// A class.
    pub fn class(&self, id: ClassId) -> &ClassFact {
        self.run.class(id)
    }

    /// All classes.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &ClassFact)> {
        self.run.classes.iter().enumerate().map(|(at, class)| (ClassId(at as u32), class))
    }

    /// A name.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.run.symbols.name(symbol)
    }

    /// The symbol of a name, where the project has it.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.run.symbols.find(name)
    }

    /// An object.
    pub fn object(&self, id: ObjectId) -> &Object {
        self.run.heap.get(id)
    }

    /// A loop.
    pub fn a_loop(&self, id: LoopId) -> &Loop {
        &self.run.loops[id.0 as usize]
    }

    /// Loops inside a place.
    pub fn loops_in(&self, place: Location) -> impl Iterator<Item = &Loop> {
        self.run.loops.iter().filter(move |a_loop| a_loop.at.is_some_and(|at| at.is_in(place)))
    }

    /// A place.
    pub fn place(&self, id: PlaceId) -> Place {
        self.run.places[id.index()]
    }

    /// Where a value's graph was made, else where it comes from.
    pub fn origin(&self, value: &Value) -> Option<Location> {
        value.origin.map(|origin| self.run.origins[origin.0 as usize])
    }

    /// Whether a loop runs again and again: a training, batches, for ever.
    pub fn repeats(&self, id: LoopId) -> bool {
        self.lifetimes.repeats(&self.run, id)
    }

    /// Whether a loop is a training's: a backward pass or optimizer step is in it.
    pub fn trains(&self, id: LoopId) -> bool {
        self.lifetimes.training.contains(&id)
    }

    /// Whether a loop turns once for every step or batch.
    pub fn is_step(&self, id: LoopId) -> bool {
        self.lifetimes.steps.contains(&id)
            || matches!(self.a_loop(id).kind, LoopKind::Batches)
            || id == LoopId::SAMPLES
            || id == LoopId::CALLBACKS
    }

    fn events(&self) -> impl Iterator<Item = (ActivationId, &Activation, &Event)> {
        let activations = self.run.activations.iter().enumerate();
        activations.flat_map(|(at, activation)| {
            activation.events.iter().map(move |event| (ActivationId(at as u32), activation, event))
        })
    }

    /// Every place at which a container grows.
    pub fn growths(&self) -> Vec<GrowthFact> {
        let mut found: BTreeMap<(Location, Location), GrowthFact> = BTreeMap::new();
        for (id, activation, event) in self.events() {
            let What::Grow { object, how, value, key, stored } = event.what else { continue };
            if self.object(object).bounded {
                continue;
            }
            let fact = found.entry((event.statement, event.at)).or_insert_with(|| GrowthFact {
                container: event.at,
                statement: event.statement,
                stored,
                function: activation.function,
                how,
                cases: Vec::new(),
            });
            let (value, key) = (*self.run.values.get(value), *self.run.values.get(key));
            let recording = event.recording;
            for duration in self.lifetimes.of_container(&self.run, id, event, object) {
                if duration.root == Root::Test || fact.cases.len() >= MAX_CASES {
                    continue;
                }
                let case = GrowthCase { object, value, key, duration, recording };
                if !fact.cases.contains(&case) {
                    fact.cases.push(case);
                }
            }
        }
        found.into_values().filter(|fact| !fact.cases.is_empty()).collect()
    }

    /// Every place at which something takes its own graph along.
    pub fn carries(&self) -> Vec<CarryFact> {
        let mut found: BTreeMap<(Location, PlaceId), CarryFact> = BTreeMap::new();
        for (id, activation, event) in self.events() {
            let What::Carry { place, value, augmented } = event.what else { continue };
            let value = *self.run.values.get(value);
            if !value.carries_graph() {
                continue;
            }
            let fact = found.entry((event.at, place)).or_insert_with(|| CarryFact {
                target: event.at,
                statement: event.statement,
                function: activation.function,
                place,
                augmented,
                cases: Vec::new(),
            });
            for duration in self.lifetimes.of_place(&self.run, id, event, place) {
                if duration.root != Root::Test {
                    fact.cases.push(CarryCase { value, fed: value.is_fed_from(place), duration });
                }
            }
        }
        found.into_values().filter(|fact| !fact.cases.is_empty()).collect()
    }

    /// Every binding of an attribute, global or shared variable, once for every way there.
    pub fn binds(&self) -> Vec<BindFact> {
        let mut found = Vec::new();
        for (id, activation, event) in self.events() {
            let What::Bind { place, value } = event.what else { continue };
            let value = *self.run.values.get(value);
            for way in &self.lifetimes.ways[id.0 as usize] {
                let mut around = way.chain.clone();
                around.extend(activation.loops(event));
                found.push(BindFact {
                    target: event.at,
                    statement: event.statement,
                    function: activation.function,
                    place: self.place(place),
                    value,
                    around,
                    root: way.root,
                });
            }
        }
        found
    }

    /// What a value keeps alive: itself, what it contains, the variables of functions.
    pub fn contents(&self, value: &Value) -> Contents {
        let mut contents = Contents::default();
        let mut seen = Vec::new();
        self.collect(value, &mut contents, &mut seen, 0);
        contents
    }

    fn collect(&self, value: &Value, contents: &mut Contents, seen: &mut Vec<ObjectId>, depth: usize) {
        contents.kinds = contents.kinds.with(value.kinds);
        contents.traits = contents.traits.with(value.traits);
        if value.carries_graph() {
            contents.graph.get_or_insert(*value);
            for place in value.carried.iter().filter(|place| place.is_fed()) {
                if let Place::Variable(_, _, id) = self.place(place) {
                    contents.iterated.insert(id);
                }
            }
            if let Some(origin) = value.origin {
                contents.origins.insert(origin);
            }
        }
        if value.kinds.has(Kinds::TENSOR.with(Kinds::ARRAY)) {
            if value.traits.has(Traits::VIEW) {
                contents.view.get_or_insert(*value);
            }
            if value.traits.has(Traits::DEVICE) {
                contents.on_device.get_or_insert(*value);
            }
        }
        for id in value.objects.iter() {
            if seen.contains(&id) || seen.len() >= 32 || depth > 4 {
                continue;
            }
            seen.push(id);
            let object = self.object(id);
            match object.shape {
                // What a model or module holds is there anyway.
                Shape::Module(_)
                | Shape::Class(_)
                | Shape::External(_)
                | Shape::Foreign(_)
                | Shape::Super(..) => {}
                Shape::Instance(_) if value.kinds.has(Kinds::MODULE) => {}
                Shape::Function(function, closure) => {
                    contents.function = Some(function);
                    let defaults = object.fields.values();
                    defaults.for_each(|value| self.collect(value, contents, seen, depth + 1));
                    if let Some(closure) = closure {
                        self.collect(&Value::object(closure), contents, seen, depth + 1);
                    }
                }
                Shape::Method(function, receiver) => {
                    self.collect(&Value::object(function), contents, seen, depth + 1);
                    self.collect(&Value::object(receiver), contents, seen, depth + 1);
                }
                // What a list of an object collects is that list's own matter.
                Shape::Instance(_) => {
                    let grows = |value: &&Value| {
                        value.objects.iter().any(|inner| self.object(inner).shape.is_container())
                    };
                    for inner in object.fields.values().filter(|value| !grows(value)) {
                        self.collect(inner, contents, seen, depth + 1);
                    }
                }
                _ => {
                    for inner in object.fields.values().chain([&object.elements]) {
                        self.collect(inner, contents, seen, depth + 1);
                    }
                }
            }
        }
    }

    /// What holds an object: the longest-lived of all that do.
    pub fn holder(&self, object: ObjectId) -> Holder {
        let mut best = Holder::Local;
        let mut seen = vec![object];
        let mut open = vec![object];
        while let Some(at) = open.pop() {
            for (owner, name) in self.run.holders.get(&at).into_iter().flatten() {
                let holder = match self.object(*owner).shape {
                    Shape::Instance(class) => Holder::Attribute(class, *name),
                    Shape::Class(class) => Holder::ClassAttribute(class, *name),
                    Shape::Module(_) => Holder::Global(*name),
                    Shape::Function(function, _) => Holder::Default(function, *name),
                    Shape::Variables(function, _) => Holder::Closure(function, *name),
                    _ => continue,
                };
                if rank(&holder) > rank(&best) {
                    best = holder;
                }
            }
            for outer in self.run.containers.get(&at).into_iter().flatten() {
                if !seen.contains(outer) && seen.len() < 16 {
                    seen.push(*outer);
                    open.push(*outer);
                }
            }
        }
        best
    }
}

/// How long a holder lives, compared with others.
fn rank(holder: &Holder) -> u8 {
    match holder {
        Holder::Local => 0,
        Holder::Closure(..) => 1,
        Holder::Attribute(..) => 2,
        Holder::ClassAttribute(..) => 3,
        Holder::Default(..) => 4,
        Holder::Global(_) => 5,
    }
}
