//! What calls make: containers, iterators over them, and what has to be given back.

use ruff_python_ast as ast;

use crate::flow::heap::Shape;
use crate::flow::ids::ObjectId;
use crate::flow::machine::Machine;
use crate::flow::machine::called::Called;
use crate::flow::machine::calls::Given;
use crate::flow::machine::expressions::inherit;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::located;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Literal, Traits, Value};
use crate::library::Gives;

impl<'p> Machine<'p> {
    /// Something that has to be given back, told apart by where it is made.
    pub(super) fn resource(&mut self, f: &Frame, class: &str, kind: Kinds, call: &ast::ExprCall) -> Value {
        let class = self.symbols.intern(class);
        let object = self.heap.object(Shape::Foreign(class), Some(located(f.file, call)), f.maker);
        Value::object(object).or(kind)
    }

    pub(super) fn iterator(&mut self, f: &mut Frame, subject: &Value, call: &ast::ExprCall) -> Value {
        // A few of all frames.
        if subject.kinds.has(Kinds::VIDEO) && last_name(&call.func) == Some("islice") {
            let element = self.element_of(f, *subject).without(Traits::OF_VIDEO);
            let iterator = self.container(f, Shape::Iterator, call);
            self.heap.add_element(iterator, element);
            return Value::object(iterator);
        }
        // What is told of a loader or video stays told.
        if subject.objects.is_empty() || subject.kinds.has(Kinds::VIDEO) {
            return *subject;
        }
        let element = self.element_of(f, *subject);
        let iterator = self.container(f, Shape::Iterator, call);
        self.heap.add_element(iterator, element);
        Value::object(iterator).or(subject.kinds.without(Kinds::OBJECT)).with(subject.traits)
    }

    /// A tuple of these parts.
    pub(super) fn tuple(&mut self, f: &mut Frame, parts: &[Value], call: &ast::ExprCall) -> Value {
        let tuple = self.container(f, Shape::Tuple, call);
        for (position, value) in parts.iter().enumerate() {
            let slot = self.position(position);
            self.heap.set_field(tuple, slot, *value);
            self.heap.add_element(tuple, *value);
        }
        Value::object(tuple)
    }

    /// An iterator over tuples of such parts.
    pub(super) fn tuples(&mut self, f: &mut Frame, parts: &[Value], call: &ast::ExprCall) -> Value {
        let tuple = self.tuple(f, parts, call);
        let iterator = self.container(f, Shape::Iterator, call);
        self.heap.add_element(iterator, tuple);
        Value::object(iterator)
    }

    /// `zip(*rows)`: a tuple for each part of the rows, where these are tuples of the same length.
    pub(super) fn columns(&mut self, f: &mut Frame, rows: &[Value], call: &ast::ExprCall) -> Option<Value> {
        let tuples: Vec<ObjectId> = rows.iter().flat_map(|row| row.objects.iter()).collect();
        let mut columns = Vec::new();
        loop {
            let slot = self.position(columns.len());
            let parts: Vec<Value> =
                tuples.iter().filter_map(|tuple| self.heap.get(*tuple).fields.get(slot).copied()).collect();
            if parts.is_empty() {
                break;
            }
            let of_all = parts.len() == tuples.len()
                && tuples.iter().all(|tuple| self.heap.shape(*tuple) == Shape::Tuple);
            if !of_all {
                return None;
            }
            let part = parts.iter().fold(Value::NOTHING, Value::join);
            let number = columns.len() as u64 + 1;
            let column =
                self.heap.part(Shape::Tuple, Some(located(f.file, call)), f.maker, f.recording, number);
            self.heap.add_element(column, part);
            columns.push(Value::object(column));
        }
        (!columns.is_empty()).then(|| self.tuple(f, &columns, call))
    }

    /// `list(x)`, `deque(maxlen=8)`, `Queue(4)`.
    pub(super) fn make_container(&mut self, f: &mut Frame, gives: Gives, called: Called<'_, 'p>) -> Value {
        let Called { receiver, given, name, call } = called;
        let shape = match gives {
            Gives::Dict => Shape::Dict,
            Gives::Set => Shape::Set,
            Gives::Tuple => Shape::Tuple,
            Gives::Deque => Shape::Deque,
            Gives::Queue => Shape::Queue,
            _ => Shape::List,
        };
        let object = self.container(f, shape, call);
        let limit = |machine: &mut Self, wanted: &str| {
            let wanted = machine.symbols.intern(wanted);
            given.named.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
        };
        let bound = match shape {
            Shape::Deque => limit(self, "maxlen").or(given.positional.get(1).copied()),
            Shape::Queue => limit(self, "maxsize").or(given.positional.first().copied()),
            _ => None,
        };
        // `maxlen=None` and `maxsize=0` are no bounds.
        let bounded = bound.is_some_and(|bound| {
            !bound.only(Kinds::NONE) && !matches!(bound.literal, Literal::Int(0)) && !bound.is_nothing()
        });
        if bounded {
            self.heap.set_bounded(object);
        }
        let source = if receiver_like(name) { Value::NOTHING } else { given.first() };
        match shape {
            Shape::Queue => {}
            Shape::Dict if name.ends_with("defaultdict") => {
                // What the factory makes is what it holds.
                self.heap.set_fills(object);
                let factory = given.first();
                let made = Given { positional: Vec::new(), named: Vec::new() };
                for function in factory.objects.iter() {
                    if let Some(value) = self.call_object(f, function, &made, call, &factory) {
                        self.heap.add_element(object, value);
                    }
                }
            }
            Shape::Dict => {
                match self.pairs_in(f, &source) {
                    Some((key, value)) => self.put(object, key, value),
                    None => self.put_all(object, &source),
                }
                for (name, value) in &given.named {
                    self.put(object, Value::text(*name), *value);
                }
            }
            _ if receiver_like(name) => {
                let of_receiver =
                    given.all().fold(receiver.traits, |traits, value| traits.with(value.traits));
                let kind = if name.starts_with("str.") { Kinds::TEXT } else { Kinds::NUMBER };
                self.heap.add_element(object, inherit(Value::of(kind), of_receiver));
            }
            _ => {
                // The parts of a data set are that data set.
                let parts = name == "torch.utils.data.random_split";
                let mut element = if parts { source } else { self.element_of(f, source) };
                if name == "random.sample" || name == "random.Random.sample" {
                    element = element.without(Traits::OF_VIDEO).with(Traits::DRAWN);
                }
                self.heap.add_element(object, element);
            }
        }
        // A tuple as a key is as unique as what it is made from; no two groups of drawn numbers are alike.
        if shape == Shape::Tuple {
            let drawn = self.heap.get(object).elements.traits.has(Traits::DRAWN.with(Traits::UNIQUE));
            let unique = if drawn { Traits::UNIQUE } else { Traits::NONE_OF_ALL };
            inherit(Value::object(object), source.traits.with(unique))
        } else {
            Value::object(object)
        }
    }
}

/// A method that gives a list of something else than its receiver.
fn receiver_like(name: &str) -> bool {
    matches!(name, "torch.Tensor.tolist" | "numpy.ndarray.tolist" | "str.split" | "str.splitlines")
}
