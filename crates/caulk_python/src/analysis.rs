//! What a project does with memory over time: what grows, how often, for how long, and what goes in.
//!
//! Rules ask here. Everything is a fact about a place in source, with the cases in which it was met: the same line may
//! be reached from several callers with several values.

mod call;
mod contents;
mod graphs;
mod memo;
mod silence;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use caulk_core::Problem;

pub use call::CallFact;
pub use contents::Contents;
pub use graphs::ApplicationFact;
pub use memo::{MemoCall, MemoFact};

use crate::flow::event::{Activation, Event, Growth, Loop, LoopKind, Place, Release, Root, What};
use crate::flow::heap::{Object, Shape};
use crate::flow::ids::{ActivationId, ClassId, FunctionId, LoopId, ObjectId, PlaceId};
use crate::flow::lifetime::{Chain, Duration, Lifetimes, Released};
use crate::flow::run::{ClassFact, FunctionFact, Run};
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Value};
use crate::indexed::Indexed;
use crate::library::Keeper;
use crate::project::{FileId, Location, Project};

/// A whole project, looked at together. It is run when the first question needs that: what stands at a line does not.
#[derive(Debug)]
pub struct Analysis {
    project: Project,
    ran: OnceLock<Ran>,
    growths: OnceLock<Vec<GrowthFact>>,
    /// The lines of each file, once somebody has asked for them.
    indexed: Vec<OnceLock<Indexed>>,
}

/// What a run leaves.
#[derive(Debug)]
struct Ran {
    run: Run,
    lifetimes: Lifetimes,
    /// Calls of libraries' functions: few among all events, and asked for by every rule.
    noted: Vec<(ActivationId, u32)>,
    problems: Vec<Problem>,
}

impl Ran {
    fn new(project: &Project) -> Self {
        let run = Run::new(project);
        let lifetimes = Lifetimes::new(&run);
        let mut problems = project.problems().to_vec();
        if run.exhausted {
            // Of no file: the files together are too much.
            problems.push(Problem::of_file("", ENTANGLED));
        }
        if run.crowded {
            problems.push(Problem::of_file("", CROWDED));
        }
        let noted = noted(&run);
        Self { run, lifetimes, noted, problems }
    }
}

const ENTANGLED: &str =
    "this project is too entangled: not all calls were followed, patterns across functions may be missed";
const CROWDED: &str =
    "a value depends on more changing variables than are followed: sums that keep their graph may be missed";
/// Ways in which one thing happens that are told apart.
const MAX_CASES: usize = 48;
/// Containers inside one another that are asked for what holds them.
const MAX_HELD: usize = 16;

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
    /// An attribute of a function: `step.history = []`.
    FunctionAttribute(FunctionId, Symbol),
    /// A variable that inner functions share.
    Closure(FunctionId, Symbol),
    /// A variable of a function.
    Local,
}

impl Analysis {
    /// Of all files of a project together.
    pub fn new(project: Project) -> Self {
        let indexed = project.ids().map(|_| OnceLock::new()).collect();
        Self { project, ran: OnceLock::new(), growths: OnceLock::new(), indexed }
    }

    fn ran(&self) -> &Ran {
        self.ran.get_or_init(|| Ran::new(&self.project))
    }

    /// The index of a file.
    pub(crate) fn indexed(&self, file: FileId) -> &Indexed {
        self.indexed[file.0 as usize].get_or_init(|| Indexed::new(self.project.file(file)))
    }

    /// The files.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Files that could not be read whole, or took more than their budget.
    pub fn problems(&self) -> &[Problem] {
        &self.ran().problems
    }

    /// A function.
    pub fn function(&self, id: FunctionId) -> &FunctionFact {
        self.ran().run.function(id)
    }

    /// The smallest function around a place.
    pub fn function_around(&self, at: Location) -> Option<&FunctionFact> {
        self.ran().run.functions.iter().filter(|function| at.is_in(function.at)).min_by_key(|function| {
            let range: ruff_text_size::TextRange = function.at.range.into();
            range.len()
        })
    }

    /// A class.
    pub fn class(&self, id: ClassId) -> &ClassFact {
        self.ran().run.class(id)
    }

    /// All classes.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &ClassFact)> {
        self.ran().run.classes.iter().enumerate().map(|(at, class)| (ClassId(at as u32), class))
    }

    /// A name.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.ran().run.symbols.name(symbol)
    }

    /// The symbol of a name, where the project has it.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.ran().run.symbols.find(name)
    }

    /// An object.
    pub fn object(&self, id: ObjectId) -> &Object {
        self.ran().run.heap.get(id)
    }

    /// A loop.
    pub fn a_loop(&self, id: LoopId) -> &Loop {
        &self.ran().run.loops[id.0 as usize]
    }

    /// Loops inside a place.
    pub fn loops_in(&self, place: Location) -> impl Iterator<Item = &Loop> {
        self.ran().run.loops.iter().filter(move |a_loop| a_loop.at.is_some_and(|at| at.is_in(place)))
    }

    /// Loops inside a place that are a training's.
    pub fn training_loops_in(&self, place: Location) -> impl Iterator<Item = &Loop> {
        let loops = self.ran().run.loops.iter().enumerate();
        let trains = loops.filter(|(at, _)| self.trains(LoopId(*at as u32))).map(|(_, a_loop)| a_loop);
        trains.filter(move |a_loop| a_loop.at.is_some_and(|at| at.is_in(place)))
    }

    /// A place.
    pub fn place(&self, id: PlaceId) -> Place {
        self.ran().run.places[id.index()]
    }

    /// Where a value's graph was made, else where it comes from.
    pub fn origin(&self, value: &Value) -> Option<Location> {
        value.origin.map(|origin| self.ran().run.origins[origin.0 as usize])
    }

    /// Whether a loop runs again and again: a training, batches, for ever.
    pub fn repeats(&self, id: LoopId) -> bool {
        self.ran().lifetimes.repeats(&self.ran().run, id)
    }

    /// Whether a loop is a training's: a backward pass or optimizer step is in it.
    pub fn trains(&self, id: LoopId) -> bool {
        self.ran().lifetimes.training.contains(&id)
    }

    /// Whether a loop turns once for every step or batch.
    pub fn is_step(&self, id: LoopId) -> bool {
        self.ran().lifetimes.steps.contains(&id)
            || matches!(self.a_loop(id).kind, LoopKind::Batches)
            || id == LoopId::SAMPLES
            || id == LoopId::CALLBACKS
    }

    fn events(&self) -> impl Iterator<Item = (ActivationId, &Activation, &Event)> {
        let activations = self.ran().run.activations.iter().enumerate();
        activations.flat_map(|(at, activation)| {
            activation.events.iter().map(move |event| (ActivationId(at as u32), activation, event))
        })
    }

    /// Every place at which a container grows.
    pub fn growths(&self) -> &[GrowthFact] {
        self.growths.get_or_init(|| self.find_growths())
    }

    /// Whether `None` goes into a queue or list, which readers that are run for this reason may take for the end: not by what
    /// only users call, unless they call the readers as well.
    pub fn puts_none(&self, readers: Root) -> bool {
        let called = |id: ActivationId| {
            let mut ways = self.ran().lifetimes.ways[id.0 as usize].iter();
            ways.any(|way| way.root == readers || way.root != Root::Uncalled)
        };
        self.events().any(|(id, _, event)| match event.what {
            What::Grow { value, how: Growth::Put | Growth::Append, .. } => {
                self.ran().run.values.get(value).kinds.has(Kinds::NONE) && called(id)
            }
            _ => false,
        })
    }

    fn find_growths(&self) -> Vec<GrowthFact> {
        let mut found: BTreeMap<(Location, Location), GrowthFact> = BTreeMap::new();
        for (id, activation, event) in self.events() {
            let What::Grow { object, how, value, key, stored } = event.what else { continue };
            if self.object(object).bounded || self.is_emptied_elsewhere(object) {
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
            let (value, key) = (*self.ran().run.values.get(value), *self.ran().run.values.get(key));
            let recording = event.recording;
            for duration in self.ran().lifetimes.of_container(&self.ran().run, id, event, object) {
                let left =
                    duration.root != Root::Module && self.is_left_to_users(object, activation.function);
                if duration.root == Root::Test || left || fact.cases.len() >= MAX_CASES {
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
            let state = *self.ran().run.values.get(value);
            // Of a tuple, the part that has a graph.
            let graph = if state.carries_graph() { Some(state) } else { self.contents(&state).graph };
            let Some(value) = graph else { continue };
            let fact = found.entry((event.at, place)).or_insert_with(|| CarryFact {
                target: event.at,
                statement: event.statement,
                function: activation.function,
                place,
                augmented,
                cases: Vec::new(),
            });
            for duration in self.ran().lifetimes.of_place(&self.ran().run, id, event, place) {
                let left = duration.root != Root::Module
                    && self.ran().lifetimes.is_reset_by_users(&self.ran().run, place, id);
                if duration.root != Root::Test && !left {
                    fact.cases.push(CarryCase { value, fed: state.is_fed_from(place), duration });
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
            let value = *self.ran().run.values.get(value);
            for way in &self.ran().lifetimes.ways[id.0 as usize] {
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

    /// The loops of a function.
    pub fn loops(&self, function: FunctionId) -> impl Iterator<Item = LoopId> {
        let loops = self
            .ran()
            .run
            .loops
            .iter()
            .enumerate()
            .filter(move |(_, known)| known.function == Some(function));
        loops.map(|(at, _)| LoopId(at as u32))
    }

    /// Every object.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        self.ran().run.heap.ids().map(|id| (id, self.object(id)))
    }

    /// Every time that a container gives back.
    pub fn releases(&self, object: ObjectId) -> Vec<Released> {
        match self.object(object).shape {
            Shape::Held(_) => self.ran().lifetimes.releases_of_held(&self.ran().run, object),
            _ => self.ran().lifetimes.releases.get(&object).cloned().unwrap_or_default(),
        }
    }

    /// Whether the project empties a container, or rebinds its attribute, at a time that cannot be compared with that
    /// of its growth.
    pub fn is_emptied_beside(&self, object: ObjectId, duration: &Duration) -> bool {
        let beside = |root| root != Root::Test && !are_comparable(root, duration.root);
        let emptied = self.releases(object).iter().any(|release| {
            let all = matches!(release.how, Release::Clear | Release::Rebind);
            all && !release.constructing && beside(release.root)
        });
        emptied || self.is_bound_anew(object, beside)
    }

    /// Whether what names a container is bound to another one outside of constructors, for a reason that counts.
    fn is_bound_anew(&self, object: ObjectId, counts: impl Fn(Root) -> bool) -> bool {
        let named = self.ran().run.holders.get(&object).map_or(&[][..], Vec::as_slice);
        let owned = |place: PlaceId| match self.place(place) {
            Place::Field(owner, name) => named.contains(&(owner, name)),
            Place::Variable(..) => false,
        };
        self.events().any(|(id, activation, event)| {
            let What::Bind { place, value } = event.what else { return false };
            // A module's body binds its globals once.
            let once = ["<module>", "__init__"]
                .iter()
                .any(|end| self.function(activation.function).name.ends_with(end));
            let new = self.ran().run.values.get(value).objects.contains(object);
            new && !once
                && owned(place)
                && self.ran().lifetimes.ways[id.0 as usize].iter().any(|way| counts(way.root))
                && !self.ran().lifetimes.is_set_up(&self.ran().run, id)
        })
    }

    /// Whether a place is bound to something else before loops begin, and not by a constructor.
    pub fn is_set_before(&self, place: PlaceId, duration: &Duration) -> bool {
        let outside = &duration.around[..duration.around.len() - duration.growing.len()];
        let resets = self.ran().lifetimes.resets.get(&place);
        resets.into_iter().flatten().any(|reset| {
            !reset.constructing && reset.root == duration.root && outside.starts_with(&reset.chain)
        })
    }

    /// Where something is given back.
    pub fn released_at(&self, release: &Released) -> Location {
        self.ran().run.activations[release.activation.0 as usize].events[release.event as usize].at
    }

    /// The loops around every place at which an object begins to live.
    pub fn births(&self, object: ObjectId) -> Vec<Chain> {
        self.ran().lifetimes.births_of(&self.ran().run, object)
    }

    /// Whether an object is made anew in every turn of a loop.
    pub fn made_in(&self, object: ObjectId, id: LoopId) -> bool {
        match self.ran().lifetimes.births.get(&object) {
            Some(births) => births.iter().any(|birth| birth.chain.contains(&id)),
            // Nobody in the project makes it: it is there from the start.
            None => !matches!(self.object(object).shape, Shape::Instance(_)),
        }
    }

    /// Whether models are made in a loop.
    pub fn makes_models(&self, id: LoopId) -> bool {
        self.ran().run.modules.iter().any(|object| self.made_in(*object, id))
            || self.calls_giving(Kinds::MODULE).iter().any(|call| {
                // `net.eval()` gives a model that is there.
                call.around.contains(&id) && !self.name(call.name).starts_with("torch.nn.Module.")
            })
    }

    /// Whether what a place means goes with a function: a variable, or an entry of what variables and arguments alone hold.
    pub fn goes_with_function(&self, place: PlaceId) -> bool {
        let Place::Field(object, _) = self.place(place) else { return true };
        let (mut seen, mut at) = (vec![object], 0);
        while let Some(&held) = seen.get(at) {
            at += 1;
            let shape = self.object(held).shape;
            if !shape.is_container() && !matches!(shape, Shape::Tuple | Shape::Iterator)
                || seen.len() > MAX_HELD
            {
                return false;
            }
            let named = self.ran().run.holders.get(&held).into_iter().flatten().map(|(owner, _)| *owner);
            let outer = self.ran().run.containers.get(&held).into_iter().flatten().copied();
            let new: Vec<_> = named.chain(outer).filter(|owner| !seen.contains(owner)).collect();
            seen.extend(new);
        }
        true
    }

    /// What a field of an owner is to people; nothing where the owner is a container.
    fn field_of(&self, owner: ObjectId, name: Symbol) -> Option<Holder> {
        Some(match self.object(owner).shape {
            Shape::Instance(class) => Holder::Attribute(class, name),
            Shape::Class(class) => Holder::ClassAttribute(class, name),
            Shape::Module(_) => Holder::Global(name),
            Shape::Function(function, _) if self.function(function).own.contains(&name) => {
                Holder::Default(function, name)
            }
            Shape::Function(function, _) => Holder::FunctionAttribute(function, name),
            Shape::Variables(function, _) => Holder::Closure(function, name),
            _ => return None,
        })
    }

    /// The method by which an object of a library gives back what it keeps in this list of its: `clear` of a graph.
    pub fn gives_back(&self, list: ObjectId) -> Option<&'static str> {
        let owners = self.ran().run.containers.get(&list)?;
        owners.iter().find_map(|owner| match self.object(*owner).shape {
            Shape::Foreign(class) => Some(Keeper::made_by(self.name(class))?.first_release()),
            _ => None,
        })
    }

    /// What holds an object: the longest-lived of all that do.
    pub fn holder(&self, object: ObjectId) -> Holder {
        if let Shape::Held(place) = self.object(object).shape {
            return self.holder_of(place);
        }
        if !self.ran().run.holders.contains_key(&object) && !self.ran().run.containers.contains_key(&object) {
            return Holder::Local;
        }
        let mut best = Holder::Local;
        let mut seen = vec![object];
        let mut open = vec![object];
        while let Some(at) = open.pop() {
            for (owner, name) in self.ran().run.holders.get(&at).into_iter().flatten() {
                let Some(holder) = self.field_of(*owner, *name) else { continue };
                if rank(&holder) > rank(&best) {
                    best = holder;
                }
            }
            for outer in self.ran().run.containers.get(&at).into_iter().flatten() {
                if !seen.contains(outer) && seen.len() < 16 {
                    seen.push(*outer);
                    open.push(*outer);
                }
            }
        }
        best
    }
}

/// Where libraries' functions are called.
fn noted(run: &Run) -> Vec<(ActivationId, u32)> {
    let mut noted = Vec::new();
    for (at, activation) in run.activations.iter().enumerate() {
        let calls = activation.events.iter().enumerate();
        let calls = calls.filter(|(_, event)| matches!(event.what, What::Library { .. }));
        noted.extend(calls.map(|(number, _)| (ActivationId(at as u32), number as u32)));
    }
    noted
}

/// Whether it is known which of two things happens first, or again before the other.
fn are_comparable(one: Root, other: Root) -> bool {
    match (one, other) {
        // A handler is called whenever somebody likes.
        (Root::Framework([LoopId::CALLBACKS, ..]), _) | (_, Root::Framework([LoopId::CALLBACKS, ..])) => {
            false
        }
        (Root::Framework(_), Root::Framework(_)) => true,
        (one, other) => one == other,
    }
}

/// How long a holder lives, compared with others.
fn rank(holder: &Holder) -> u8 {
    match holder {
        Holder::Local => 0,
        Holder::Closure(..) => 1,
        Holder::Attribute(..) => 2,
        Holder::ClassAttribute(..) => 3,
        Holder::Default(..) | Holder::FunctionAttribute(..) => 4,
        Holder::Global(_) => 5,
    }
}
