//! Running a function with certain values, once for each combination of them.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::flow::event::{Activation, Guards, Root, What};
use crate::flow::heap::Shape;
use crate::flow::ids::{ActivationId, FunctionId};
use crate::flow::machine::frame::Frame;
use crate::flow::machine::{Callee, Key, Machine};
use crate::flow::scopes::Body;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Value};

/// Different combinations of values that one function is followed with.
const MAX_ACTIVATIONS: usize = 8;
/// The same of one that is given functions.
const MAX_HANDED: usize = 64;
/// The same in rounds that only learn what objects may hold.
const MAX_LEARNING: usize = 4;
/// Calls inside one another that are followed.
const MAX_DEPTH: usize = 24;

impl Machine<'_> {
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
            // What one more combination would teach, an earlier one of the same receiver most likely did. Without
            // recording nothing is as it was with it.
            let alike = |id: &&ActivationId| self.activations[id.0 as usize].recording == recording;
            let same = |id: &&ActivationId| self.activations[id.0 as usize].receiver == receiver;
            let known = before.iter().rev().filter(alike).find(same).or_else(|| before.iter().find(alike));
            if let Some(known) = known {
                return Some(*known);
            }
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
            recording,
            parameters: if self.is_decorated(function) { given.clone() } else { Vec::new() },
            events: Vec::new(),
            loops: Vec::new(),
            given: Vec::new(),
            result: Value::NOTHING,
        });
        let call = FxBuildHasher.hash_one(&key.given);
        self.memo.insert(key, id);
        self.per_function.entry(function).or_default().push(id);
        let mut frame = Frame::new(self, callee);
        frame.call = call;
        if self.is_remembered(function) {
            frame.guards = Guards::ONCE;
        }
        frame.bind_parameters(self, &given);
        let applied = self.scopes.function(function).name == self.names.forward;
        if applied && matches!(root, Some(Root::Framework(_))) {
            self.lend(&mut frame, given.get(usize::from(receiver.is_some())..).unwrap_or_default());
        }
        self.depth += 1;
        stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, || self.run_body(&mut frame));
        self.depth -= 1;
        for event in frame.events.iter().filter(|event| matches!(event.what, What::Forward)) {
            let applies = self.applies.entry(function).or_default();
            *(if event.recording { &mut applies.recording } else { &mut applies.without }) = true;
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
            frame.result = frame.result.join(&Value::of(Kinds::NONE));
        }
    }

    /// Decorated so that it runs once for each object, and its result stays: `functools.cached_property`.
    fn is_remembered(&self, function: FunctionId) -> bool {
        const DECORATORS: [&str; 3] = ["cached_property", "lazy_property", "reify"];
        let Some(definition) = self.scopes.function(function).definition() else { return false };
        let names = definition.decorator_list.iter().filter_map(|decorator| last_name(&decorator.expression));
        names.into_iter().any(|name| DECORATORS.contains(&name))
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
