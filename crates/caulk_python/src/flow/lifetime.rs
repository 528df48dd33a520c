//! Puts the loops of callers in front of what happens in a function, and tells what that means for a container: in
//! which loops it grows without being emptied, and how often each of these turns.

mod emptied;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::event::{Event, Guards, LoopKind, Place, Release, Root, What};
use crate::flow::heap::Shape;
use crate::flow::ids::{ActivationId, FunctionId, LoopId, ObjectId, PlaceId};
use crate::flow::lifetime::emptied::EmptiedAgain;
use crate::flow::run::Run;
use crate::project::Location;

/// Calls that make a backward pass.
pub(crate) const BACKWARD: [&str; 4] = [
    "torch.Tensor.backward",
    "torch.autograd.backward",
    "lightning.fabric.Fabric.backward",
    "accelerate.Accelerator.backward",
];

/// Loops around something, from the program's start.
pub type Chain = Vec<LoopId>;

/// Ways to reach one activation that are told apart.
const MAX_WAYS: usize = 8;
/// Chains of loops around the making of one object that are told apart: of those not noted it would seem to come from outside.
const MAX_BIRTHS: usize = 256;
/// Releases of one object, and resets of one place, that are told apart.
const MAX_RELEASES: usize = 64;
/// Loops inside one another that are told apart.
const MAX_LOOPS: usize = 10;
/// Holders, and holders of these, that are asked for how long they live.
const MAX_OWNERS: usize = 64;
/// A loop that trains a constant number of times repeats from so many times on.
const MANY_TRAININGS: u32 = 10;
/// Containers inside one another whose owner is looked for.
const MAX_NESTED: usize = 4;
/// Calls inside one another that a constructor is looked for in.
const MAX_SETUP: usize = 4;

/// How an activation is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    pub chain: Chain,
    pub guards: Guards,
    /// So many of these loops, from the outermost, do not repeat it: a condition inside them holds once.
    pub once: usize,
    pub root: Root,
    /// Where it is called, for the story.
    pub from: Option<(ActivationId, u32)>,
}

impl Way {
    /// Conditions around an event inside the innermost loop: what is asked before a loop says nothing of its turns, unless an
    /// exception follows.
    pub(crate) fn guards_at(&self, loops: &[LoopId], event: &Event) -> Guards {
        let around = if loops.is_empty() { self.guards } else { self.guards.only(Guards::RAISES) };
        around.with(event.guards)
    }

    /// How many loops around an event do not repeat it: what is called once in a loop is not repeated by it.
    pub(crate) fn once_at(&self, event: &Event) -> usize {
        let inside = event.once.map_or(0, |loops| self.chain.len() + usize::from(loops));
        self.once.max(inside)
    }
}

/// The making of an object with the loops around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Born {
    pub chain: Chain,
    /// Made when it is first asked for, `if name not in self.meters: ..`, `if self.cache is None: ..`, or as a part of what
    /// somebody outside makes.
    pub lazily: bool,
}

/// A release with the loops around it.
#[derive(Debug, Clone)]
pub struct Released {
    /// The loops around it.
    pub chain: Chain,
    /// How much is given back.
    pub how: Release,
    /// Conditions around it.
    pub guards: Guards,
    /// Why it is run at all.
    pub root: Root,
    /// It is a part of making the object.
    pub(crate) constructing: bool,
    pub(crate) activation: ActivationId,
    pub(crate) event: u32,
}

/// Everything that is known of when things happen.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    pub ways: Vec<Vec<Way>>,
    pub births: FxHashMap<ObjectId, Vec<Born>>,
    /// Where objects begin to live.
    spans: FxHashMap<ObjectId, Vec<Chain>>,
    /// Where objects are made that functions empty which nobody in the project calls, with these functions.
    pub left_to_users: FxHashSet<(Location, FunctionId)>,
    emptied_again: EmptiedAgain,
    pub releases: FxHashMap<ObjectId, Vec<Released>>,
    pub resets: FxHashMap<PlaceId, Vec<Released>>,
    /// Loops in which a backward pass or an optimizer step happens.
    pub training: FxHashSet<LoopId>,
    /// ... and which are the innermost around it.
    pub steps: FxHashSet<LoopId>,
    /// Loops in which a model is applied.
    pub applied: FxHashSet<LoopId>,
}

/// How often something grows until it is emptied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duration {
    /// Loops in which it grows without being emptied, the outermost first; never empty.
    pub growing: Chain,
    /// All loops around the growth.
    pub around: Chain,
    /// Conditions around the growth.
    pub guards: Guards,
    /// Why it is run at all.
    pub root: Root,
    /// What limits it, if anything does: index into the container's releases.
    pub released_by: Option<usize>,
    /// The container is made by a call that is still under way: its loops are all that it sees.
    pub of_call: bool,
}

impl Lifetimes {
    pub(crate) fn new(run: &Run) -> Self {
        let mut lifetimes = Self { ways: ways(run), ..Self::default() };
        for loops in [LoopId::EPOCHS, LoopId::STEPS] {
            lifetimes.training.insert(loops);
        }
        lifetimes.steps.insert(LoopId::STEPS);
        lifetimes.applied.extend([LoopId::STEPS, LoopId::VALIDATION, LoopId::SAMPLES, LoopId::CALLBACKS]);
        for (at, activation) in run.activations.iter().enumerate() {
            for (number, event) in activation.events.iter().enumerate() {
                if matches!(
                    event.what,
                    What::Grow { .. } | What::Carry { .. } | What::Bind { .. } | What::Call(_)
                ) {
                    continue;
                }
                for way in 0..lifetimes.ways[at].len() {
                    let chain = extended(&lifetimes.ways[at][way].chain, activation.loops(event));
                    let known = &lifetimes.ways[at][way];
                    let guards = known.guards_at(activation.loops(event), event);
                    let way = Way { chain, guards, ..known.clone() };
                    lifetimes.note(run, event, way, ActivationId(at as u32), number as u32);
                }
            }
        }
        let outside = |release: &&Released| {
            let all = matches!(release.how, Release::Clear | Release::Rebind);
            // What only tests call is there for users.
            let test = run.function(function(run, release.activation)).test;
            let users = release.root == Root::Uncalled || release.root == Root::Test && !test;
            all && users && !release.constructing
        };
        for (id, releases) in &lifetimes.releases {
            let functions = releases.iter().filter(outside).map(|release| function(run, release.activation));
            let made = run.heap.get(*id).at;
            lifetimes
                .left_to_users
                .extend(made.into_iter().flat_map(|at| functions.clone().map(move |by| (at, by))));
        }
        let emptied = lifetimes.releases.iter().filter(|(id, releases)| {
            releases.iter().any(|release| lifetimes.empties_again(run, **id, release))
        });
        lifetimes.emptied_again = EmptiedAgain::of(run, emptied.map(|(id, _)| *id));
        lifetimes.spans = lifetimes.births.keys().map(|id| (*id, lifetimes.births_of(run, *id))).collect();
        lifetimes
    }

    fn note(&mut self, run: &Run, event: &Event, way: Way, activation: ActivationId, number: u32) {
        let constructing = self.constructs(run, activation, &way);
        let Way { chain, guards, root, .. } = way;
        let released =
            |how, chain| Released { chain, how, guards, root, constructing, activation, event: number };
        match event.what {
            What::Birth(object) => {
                let births = self.births.entry(object).or_default();
                let asked = guards.has(Guards::ONCE.with(Guards::MISSING));
                let outside = root == Root::Uncalled && constructing;
                let born = Born { chain, lazily: asked || outside };
                if !births.contains(&born) && births.len() < MAX_BIRTHS {
                    births.push(born);
                }
            }
            // Only an exception is followed by it.
            What::Release { .. } | What::Reset { .. } if guards.has(Guards::RAISES) => {}
            What::Release { object, how } => {
                let known = self.releases.entry(object).or_default();
                known.extend((known.len() < MAX_RELEASES).then(|| released(how, chain)));
            }
            What::Reset { place } => {
                let known = self.resets.entry(place).or_default();
                known.extend((known.len() < MAX_RELEASES).then(|| released(Release::Rebind, chain)));
            }
            What::Library { name, .. } => {
                let name = run.symbols.name(name);
                if BACKWARD.contains(&name) || name == "torch.optim.Optimizer.step" {
                    if let Some(last) = chain.iter().rev().find(|id| !small(run, **id)) {
                        self.steps.insert(*last);
                    }
                    self.training.extend(chain);
                }
            }
            What::Forward => self.applied.extend(chain),
            _ => {}
        }
    }

    /// Whether a constructor runs something, itself or by a method that sets up.
    fn constructs(&self, run: &Run, activation: ActivationId, way: &Way) -> bool {
        let (mut at, mut from) = (activation, way.from);
        for _ in 0..MAX_SETUP {
            if constructs(run, at) {
                return true;
            }
            let Some((caller, _)) = from else { return false };
            at = caller;
            from = self.ways[caller.0 as usize].first().and_then(|way| way.from);
        }
        false
    }

    /// Whether constructors alone run something.
    pub(crate) fn is_set_up(&self, run: &Run, activation: ActivationId) -> bool {
        self.ways[activation.0 as usize].iter().all(|way| self.constructs(run, activation, way))
    }

    /// Whether another method that nobody in the project calls, `reset`, binds a place anew.
    pub(crate) fn is_reset_by_users(&self, run: &Run, place: PlaceId, carrying: ActivationId) -> bool {
        self.resets.get(&place).into_iter().flatten().any(|reset| {
            reset.root == Root::Uncalled
                && !reset.constructing
                && function(run, reset.activation) != function(run, carrying)
        })
    }

    /// Whether a method that nobody in the project calls binds anew what another function makes longer.
    pub(crate) fn is_cut_by_users(&self, run: &Run, held: ObjectId, growing: FunctionId) -> bool {
        self.releases_of_held(run, held).iter().any(|cut| {
            cut.root == Root::Uncalled && !cut.constructing && function(run, cut.activation) != growing
        })
    }

    /// How long a container grows when it grows at an event, once for every way there.
    pub(crate) fn of_container(
        &self,
        run: &Run,
        activation: ActivationId,
        event: &Event,
        object: ObjectId,
    ) -> Vec<Duration> {
        if let Shape::Held(place) = run.heap.shape(object) {
            let releases = self.releases_of_held(run, object);
            let mut durations = self.of_place_with(run, activation, event, place, releases);
            if let Place::Field(owner, _) = run.places[place.index()] {
                let of_call = is_alone(run, owner) && self.is_made_by_caller(run, activation, owner);
                for duration in &mut durations {
                    duration.of_call = of_call;
                }
            }
            return durations;
        }
        let nothing = Vec::new();
        let no_births = Vec::new();
        let births = self.spans.get(&object).unwrap_or(&no_births);
        let releases = self.releases.get(&object).unwrap_or(&nothing);
        let anew = made_in(run, activation, object);
        let mut durations = self.durations(run, activation, event, births, anew, releases);
        if self.emptied_again.includes(run, object) {
            durations.retain(|duration| !is_called_back(duration.root));
        }
        let owner = only_owner(run, object);
        for duration in &mut durations {
            duration.of_call =
                anew.is_some() || owner.is_some_and(|owner| self.is_made_by_caller(run, activation, owner));
        }
        durations
    }

    /// Whether a function made an object that is calling this one, by the first way that leads here.
    fn is_made_by_caller(&self, run: &Run, mut activation: ActivationId, owner: ObjectId) -> bool {
        let Some(made) = run.heap.get(owner).at else { return false };
        for _ in 0..MAX_SETUP {
            let Some((caller, _)) = self.ways[activation.0 as usize].first().and_then(|way| way.from) else {
                return false;
            };
            if made.is_in(run.function(function(run, caller)).at) {
                return run.function(function(run, caller)).name != "<module>";
            }
            activation = caller;
        }
        false
    }

    /// How long a place carries a graph on.
    pub(crate) fn of_place(
        &self,
        run: &Run,
        activation: ActivationId,
        event: &Event,
        place: PlaceId,
    ) -> Vec<Duration> {
        let resets = self.resets.get(&place).cloned().unwrap_or_default();
        self.of_place_with(run, activation, event, place, resets)
    }

    /// Where a place that is made longer is bound to something else, or what it holds is emptied.
    pub(crate) fn releases_of_held(&self, run: &Run, object: ObjectId) -> Vec<Released> {
        let inner = run.heap.get(object).elements.objects.iter();
        let objects = std::iter::once(object).chain(inner);
        objects.flat_map(|object| self.releases.get(&object).into_iter().flatten().cloned()).collect()
    }

    fn of_place_with(
        &self,
        run: &Run,
        activation: ActivationId,
        event: &Event,
        place: PlaceId,
        mut resets: Vec<Released>,
    ) -> Vec<Duration> {
        let mut births = Vec::new();
        let mut anew = None;
        match run.places[place.index()] {
            Place::Variable(_, _, id) => {
                // It is carried through that loop: it begins outside of it.
                for way in &self.ways[activation.0 as usize] {
                    let chain = extended(&way.chain, run.activations[activation.0 as usize].loops(event));
                    if let Some(at) = chain.iter().position(|around| *around == id) {
                        births.push(chain[..at].to_vec());
                    }
                }
            }
            Place::Field(object, _) => {
                births.extend(self.spans.get(&object).into_iter().flatten().cloned());
                anew = made_in(run, activation, object);
                let emptied = |release: &&Released| matches!(release.how, Release::Clear | Release::Rebind);
                resets.extend(self.releases.get(&object).into_iter().flatten().filter(emptied).cloned());
            }
        }
        self.durations(run, activation, event, &births, anew, &resets)
    }

    /// Where an object begins to live. What is made when it is first asked for lives as long as what holds it.
    ///
    /// Each owner is looked at once: there may be many ways to one.
    pub(crate) fn births_of(&self, run: &Run, object: ObjectId) -> Vec<Chain> {
        let object = match run.heap.shape(object) {
            Shape::Held(place) => match run.places[place.index()] {
                Place::Field(owner, _) => owner,
                Place::Variable(..) => return Vec::new(),
            },
            _ => object,
        };
        let (mut chains, mut todo) = (FxHashSet::default(), vec![object]);
        let mut seen = FxHashSet::from_iter([object]);
        while let Some(id) = todo.pop() {
            let births = self.births.get(&id).map_or(&[][..], Vec::as_slice);
            if births.is_empty() && id != object {
                // Modules and classes are there from the start.
                chains.insert(Vec::new());
            }
            let named = run.holders.get(&id).into_iter().flatten().map(|(owner, _)| *owner);
            let elements = run.containers.get(&id).into_iter().flatten().copied();
            let owners: Vec<_> = named.chain(elements).filter(|owner| *owner != id).collect();
            let lasting = births.iter().filter(|birth| !birth.lazily || owners.is_empty());
            chains.extend(lasting.map(|birth| birth.chain.clone()));
            if births.iter().any(|birth| birth.lazily) && seen.len() < MAX_OWNERS {
                todo.extend(owners.into_iter().filter(|owner| seen.insert(*owner)));
            }
        }
        if chains.is_empty() {
            // Objects that hold each other, all made when they are first asked for.
            let births = self.births.get(&object).into_iter().flatten();
            chains.extend(births.map(|birth| birth.chain.clone()));
        }
        let mut chains: Vec<_> = chains.into_iter().collect();
        chains.sort_unstable();
        chains
    }

    fn durations(
        &self,
        run: &Run,
        activation: ActivationId,
        event: &Event,
        births: &[Chain],
        anew: Option<&[LoopId]>,
        releases: &[Released],
    ) -> Vec<Duration> {
        let mut found = Vec::new();
        let here = &run.activations[activation.0 as usize];
        for way in &self.ways[activation.0 as usize] {
            let around = extended(&way.chain, here.loops(event));
            // Made in the same call: only the ways that are told apart are known of the births of all calls.
            let anew = anew.map_or(0, |loops| shared(&extended(&way.chain, loops), &around));
            let born = births.iter().map(|birth| shared(birth, &around)).max().unwrap_or(0).max(anew);
            let (mut start, mut by) = (born.max(way.once_at(event)).min(around.len()), None);
            for (index, release) in releases.iter().enumerate() {
                // Made when it is first asked for, it is put in order then, and not again.
                let lazily = release.constructing && release.guards.has(Guards::MISSING);
                if release.guards.once() || lazily {
                    continue;
                }
                let until = shared(&release.chain, &around);
                if until > start {
                    (start, by) = (until, Some(index));
                }
            }
            let growing = around[start..].to_vec();
            let guards = way.guards_at(run.activations[activation.0 as usize].loops(event), event);
            let duration =
                Duration { growing, around, guards, root: way.root, released_by: by, of_call: false };
            if !found.contains(&duration) {
                found.push(duration);
            }
        }
        found
    }

    /// Whether the program empties something again and again.
    fn empties_again(&self, run: &Run, object: ObjectId, release: &Released) -> bool {
        let often = match release.how {
            Release::Clear | Release::Rebind => true,
            // One element at each step, whatever it is. A reader of a queue may be slower than its writer.
            Release::Remove => {
                let sometimes = release.guards.has(Guards::CONDITION.with(Guards::SWITCH));
                let steps = release.chain.iter().any(|id| self.steps.contains(id));
                run.heap.shape(object) != Shape::Queue && !sometimes && steps
            }
            Release::Trim => false,
        };
        often && release.root == Root::Module && release.chain.iter().any(|id| self.repeats(run, *id))
    }

    /// Whether a loop is run again and again: a training, batches, for ever.
    pub(crate) fn repeats(&self, run: &Run, id: LoopId) -> bool {
        if self.training.contains(&id) {
            return !small(run, id);
        }
        match run.loops[id.0 as usize].kind {
            LoopKind::Batches | LoopKind::Epochs | LoopKind::Folds | LoopKind::Forever => true,
            LoopKind::Steps | LoopKind::While | LoopKind::Items => self.applied.contains(&id),
            LoopKind::Times(_) | LoopKind::Parts => false,
        }
    }
}

/// Whether a library calls it whenever it likes.
fn is_called_back(root: Root) -> bool {
    matches!(root, Root::Framework([LoopId::CALLBACKS, ..]))
}

/// The loops around the making of an object in a call, where it is made there and not only when it is first asked for.
fn made_in(run: &Run, activation: ActivationId, object: ObjectId) -> Option<&[LoopId]> {
    let activation = &run.activations[activation.0 as usize];
    let mut births =
        activation.events.iter().filter(|event| matches!(event.what, What::Birth(id) if id == object));
    let birth = births.find(|event| !event.guards.has(Guards::ONCE.with(Guards::MISSING)))?;
    Some(activation.loops(birth))
}

/// The object that a container belongs to, as an attribute or inside of others, where nothing else holds any of them.
fn only_owner(run: &Run, mut object: ObjectId) -> Option<ObjectId> {
    for _ in 0..MAX_NESTED {
        let [owner] = owners(run, object)[..] else { return None };
        if is_alone(run, owner) {
            return Some(owner);
        }
        // What an object of a library keeps, nobody takes from it.
        let shape = run.heap.shape(owner);
        if !shape.is_container() && !matches!(shape, Shape::Instance(_)) {
            return None;
        }
        object = owner;
    }
    None
}

/// An instance that nothing but variables of functions holds.
fn is_alone(run: &Run, owner: ObjectId) -> bool {
    matches!(run.heap.shape(owner), Shape::Instance(_)) && owners(run, owner).is_empty()
}

/// What holds an object beside variables, and arguments that a function takes as a tuple.
fn owners(run: &Run, object: ObjectId) -> Vec<ObjectId> {
    let named = run.holders.get(&object).into_iter().flatten().map(|(owner, _)| *owner);
    let elements = run.containers.get(&object).into_iter().flatten().copied();
    let passing = |owner: &ObjectId| match run.heap.shape(*owner) {
        Shape::Variables(..) => true,
        Shape::Tuple => !run.holders.contains_key(owner) && !run.containers.contains_key(owner),
        _ => *owner == object,
    };
    let mut owners: Vec<_> = named.chain(elements).filter(|owner| !passing(owner)).collect();
    owners.sort_unstable();
    owners.dedup();
    owners
}

/// The function that is called.
fn function(run: &Run, activation: ActivationId) -> FunctionId {
    run.activations[activation.0 as usize].function
}

/// Whether a call is a constructor's.
fn constructs(run: &Run, activation: ActivationId) -> bool {
    let name = &run.function(function(run, activation)).name;
    ["__init__", "__post_init__"].iter().any(|constructor| name.ends_with(constructor))
}

/// A training loop over a handful of things: models, seeds, stages.
fn small(run: &Run, id: LoopId) -> bool {
    match run.loops[id.0 as usize].kind {
        LoopKind::Times(times) => times < MANY_TRAININGS,
        kind => kind == LoopKind::Parts,
    }
}

/// How many loops two chains share from the outside.
fn shared(one: &[LoopId], other: &[LoopId]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Loops of a caller, then those inside.
fn extended(outer: &[LoopId], inner: &[LoopId]) -> Chain {
    let mut chain = outer.to_vec();
    chain.extend(inner.iter().filter(|id| !outer.contains(id)));
    chain.truncate(MAX_LOOPS);
    chain
}

/// All ways to reach each activation.
fn ways(run: &Run) -> Vec<Vec<Way>> {
    let mut ways: Vec<Vec<Way>> = vec![Vec::new(); run.activations.len()];
    let mut open = Vec::new();
    for (at, activation) in run.activations.iter().enumerate() {
        if let Some(root) = activation.root {
            let chain = match root {
                Root::Framework(loops) => loops.to_vec(),
                _ => Vec::new(),
            };
            ways[at].push(Way { chain, guards: Guards::default(), once: 0, root, from: None });
            open.push((at, 0));
        }
    }
    while let Some((at, way)) = open.pop() {
        let here = ways[at][way].clone();
        let activation = &run.activations[at];
        for (number, event) in activation.events.iter().enumerate() {
            let What::Call(callee) = event.what else { continue };
            let callee = callee.0 as usize;
            let chain = extended(&here.chain, activation.loops(event));
            let guards = here.guards_at(activation.loops(event), event);
            // What holds once does so whatever else was asked on the way.
            let once = guards.once() || event.guards.once();
            let once = if once { chain.len() } else { here.once_at(event).min(chain.len()) };
            let alike = |known: &Way| known.chain == chain && known.guards == guards && known.once == once;
            if !ways[callee].iter().any(alike) && ways[callee].len() < MAX_WAYS {
                let from = Some((ActivationId(at as u32), number as u32));
                ways[callee].push(Way { chain, guards, once, root: here.root, from });
                open.push((callee, ways[callee].len() - 1));
            }
        }
    }
    ways
}
