//! What a value keeps alive, as far as it is known: itself and what is reached from it.

use crate::analysis::Analysis;
use crate::flow::event::Place;
use crate::flow::heap::Shape;
use crate::flow::ids::{FunctionId, LoopId, ObjectId, OriginId};
use crate::flow::value::{Few, Kinds, Traits, Value};
use crate::project::Location;

/// Objects that are looked at for one value.
const MAX_OBJECTS: usize = 32;
/// References that are followed from a value.
const MAX_DEPTH: usize = 5;

/// What a value keeps alive.
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
    /// A tensor, array or table, where one is surely there.
    pub heavy: Option<Value>,
    /// A view of something larger.
    pub view: Option<Value>,
    /// A tensor on an accelerator.
    pub on_device: Option<Value>,
    /// A function of the project, which keeps variables.
    pub function: Option<FunctionId>,
    /// A function of any kind.
    pub callable: bool,
}

impl Contents {
    /// Nothing but numbers, text and `None`.
    pub fn is_plain(&self) -> bool {
        const PLAIN: Kinds = Kinds::NUMBER.with(Kinds::TEXT).with(Kinds::NONE).with(Kinds::OBJECT);
        self.kinds.without(PLAIN).is_empty() && self.function.is_none()
    }

    fn take(&mut self, value: &Value) {
        const HEAVY: Kinds = Kinds::TENSOR.with(Kinds::ARRAY).with(Kinds::TABLE);
        self.kinds = self.kinds.with(value.kinds);
        self.traits = self.traits.with(value.traits);
        if value.carries_graph() {
            self.graph.get_or_insert(*value);
        }
        // What a model holds as parameters is there anyway.
        if value.kinds.has(HEAVY)
            && !value.kinds.has(Kinds::UNKNOWN.with(Kinds::MODULE))
            && !value.traits.has(Traits::LEAF)
        {
            // The largest that is known.
            let larger = |known: Value| known.traits.has(Traits::SCALAR) && !value.traits.has(Traits::SCALAR);
            if self.heavy.is_none_or(larger) {
                self.heavy = Some(*value);
            }
        }
        if value.kinds.has(Kinds::TENSOR.with(Kinds::ARRAY)) {
            if value.traits.has(Traits::VIEW) {
                self.view.get_or_insert(*value);
            }
            if value.traits.has(Traits::DEVICE) {
                self.on_device.get_or_insert(*value);
            }
        }
    }
}

impl Analysis {
    /// What a value keeps alive: itself, what it contains, the variables of functions.
    pub fn contents(&self, value: &Value) -> Contents {
        self.collect(value, None)
    }

    /// As [`Analysis::contents`], without what lives longer than one turn of a loop: storing the same thing again and
    /// again keeps nothing more alive.
    pub fn contents_made_in(&self, value: &Value, id: LoopId) -> Contents {
        self.collect(value, Some(id))
    }

    /// Whether something is made in the function that has a loop, outside of that loop.
    fn is_made_before(&self, made: Location, id: LoopId) -> bool {
        let a_loop = self.a_loop(id);
        let function = a_loop.function.map(|function| self.function(function).at);
        function.is_some_and(|function| made.is_in(function)) && a_loop.at.is_some_and(|at| !made.is_in(at))
    }

    fn collect(&self, value: &Value, inner: Option<LoopId>) -> Contents {
        let mut collector =
            Collector { analysis: self, inner, contents: Contents::default(), seen: Vec::new() };
        collector.value(value, 0);
        collector.contents
    }
}

struct Collector<'a> {
    analysis: &'a Analysis,
    inner: Option<LoopId>,
    contents: Contents,
    seen: Vec<ObjectId>,
}

impl Collector<'_> {
    fn value(&mut self, value: &Value, depth: usize) {
        self.contents.take(&self.without_lasting_resources(value));
        if value.carries_graph() {
            self.story(value);
        }
        for id in value.objects.iter() {
            if self.seen.contains(&id) || self.seen.len() >= MAX_OBJECTS || depth >= MAX_DEPTH {
                continue;
            }
            self.seen.push(id);
            if self.inner.is_none_or(|inner| self.analysis.made_in(id, inner)) {
                self.object(id, value.kinds.has(Kinds::MODULE), depth + 1);
            }
        }
    }

    /// A writer that was opened before the loop is there anyway.
    fn without_lasting_resources(&self, value: &Value) -> Value {
        let lasting = |id: ObjectId| {
            let object = self.analysis.object(id);
            let foreign = matches!(object.shape, Shape::Foreign(_));
            foreign
                && self
                    .inner
                    .zip(object.at)
                    .is_some_and(|(inner, at)| self.analysis.is_made_before(at, inner))
        };
        if value.objects.is_empty() || !value.objects.iter().all(lasting) {
            return *value;
        }
        Value { kinds: value.kinds.without(Kinds::GIVEN_BACK), ..*value }
    }

    /// How a graph came about.
    fn story(&mut self, value: &Value) {
        for place in value.carried.iter().filter(|place| place.is_fed()) {
            if let Place::Variable(_, _, id) = self.analysis.place(place) {
                self.contents.iterated.insert(id);
            }
        }
        if let Some(origin) = value.origin {
            self.contents.origins.insert(origin);
        }
    }

    fn object(&mut self, id: ObjectId, model: bool, depth: usize) {
        let analysis = self.analysis;
        let object = analysis.object(id);
        match object.shape {
            // What a model or module holds is there anyway.
            Shape::Module(_)
            | Shape::Class(_)
            | Shape::External(_)
            | Shape::Foreign(_)
            | Shape::Super(..)
            | Shape::Held(_) => {}
            Shape::Instance(_) if model => {}
            Shape::Function(function, closure) => {
                self.contents.function = Some(function);
                self.contents.callable = true;
                object.fields.values().for_each(|default| self.value(default, depth));
                self.captured(function, closure, depth);
            }
            Shape::Partial(function) => {
                self.contents.callable = true;
                if let Shape::Function(function, _) = analysis.object(function).shape {
                    self.contents.function = Some(function);
                }
                object.fields.values().for_each(|argument| self.value(argument, depth));
            }
            Shape::Method(function, receiver) => {
                self.value(&Value::object(function), depth);
                self.value(&Value::object(receiver), depth);
            }
            Shape::BuiltIn(receiver, _) => {
                if matches!(analysis.object(receiver).shape, Shape::Instance(_)) {
                    self.contents.callable = true;
                    self.value(&Value::object(receiver), depth);
                }
            }
            // What a list of an object collects is that list's own matter, unless both are made in the loop.
            Shape::Instance(_) => {
                let lasting = self.inner.is_none();
                let grows = |value: &&Value| {
                    let mut inner = value.objects.iter();
                    lasting && inner.any(|id| analysis.object(id).shape.is_container())
                };
                object
                    .fields
                    .values()
                    .filter(|value| !grows(value))
                    .for_each(|inner| self.value(inner, depth));
            }
            _ => {
                for inner in object.fields.values().chain([&object.elements]) {
                    self.value(inner, depth);
                }
            }
        }
    }

    /// Variables of functions around an inner function that it uses. Inner functions that one loop makes share the
    /// variables of the function with the loop: only the last values are kept.
    fn captured(&mut self, function: FunctionId, mut variables: Option<ObjectId>, depth: usize) {
        let analysis = self.analysis;
        while let Some(id) = variables {
            let Shape::Variables(owner, outer) = analysis.object(id).shape else { return };
            let shared = self.inner.and_then(|inner| analysis.a_loop(inner).function) == Some(owner);
            if !shared {
                for name in &analysis.function(function).free {
                    if let Some(value) = analysis.object(id).fields.get(*name) {
                        self.value(value, depth);
                    }
                }
            }
            variables = outer;
        }
    }
}
