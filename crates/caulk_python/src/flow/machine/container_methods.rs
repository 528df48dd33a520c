//! Methods of built-in containers: what they add, take and give.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use crate::flow::event::{Growth, Release, What};
use crate::flow::heap::Shape;
use crate::flow::ids::ObjectId;
use crate::flow::machine::Machine;
use crate::flow::machine::entry::Entry;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::located;
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Literal, Value};

impl<'p> Machine<'p> {
    /// A method that is not called here but handed to somebody who may: `task.add_done_callback(tasks.discard)`.
    pub(crate) fn hand_out(&mut self, f: &mut Frame, owner: &Value, attribute: &ast::ExprAttribute) {
        let how = match attribute.attr.as_str() {
            "discard" | "remove" | "pop" | "popleft" | "popitem" => Release::Remove,
            "clear" => Release::Clear,
            _ => return,
        };
        for object in owner.objects.iter().filter(|object| self.heap.shape(*object).is_container()) {
            f.event(What::Release { object, how }, located(f.file, &*attribute.value));
        }
    }

    /// A method of a built-in container; `None` where it has no such method.
    pub(crate) fn container_method(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        method: Symbol,
        arguments: &[Value],
        call: &'p ast::ExprCall,
    ) -> Option<Value> {
        let method = self.symbols.name(method).to_owned();
        let method = method.as_str();
        // Under another name the container does not stand here: `put = rows.append`.
        let container = match &*call.func {
            Expr::Attribute(attribute) if attribute.attr.as_str() == method => &*attribute.value,
            other => other,
        };
        let at = located(f.file, container);
        let shape = self.heap.shape(object);
        if shape == Shape::Dict
            && let Some(value) = self.dict_method(f, object, method, arguments, call, container)
        {
            return Some(value);
        }
        let stored = call.arguments.args.first();
        let first = arguments.first().copied().unwrap_or(Value::NOTHING);
        let nothing = Value::NOTHING;
        let none = Some(Value::of(Kinds::NONE));
        let elements = self.heap.get(object).elements;
        match (shape, method) {
            (Shape::List | Shape::Deque, "append" | "appendleft") => {
                self.grow(f, object, Growth::Append, Entry { value: first, key: nothing, stored }, container);
                none
            }
            (Shape::List, "insert") => {
                let value = arguments.get(1).copied().unwrap_or(nothing);
                let stored = call.arguments.args.get(1);
                self.grow(f, object, Growth::Append, Entry { value, key: nothing, stored }, container);
                none
            }
            (Shape::List | Shape::Deque, "extend" | "extendleft") => {
                let element = self.element_of(f, first);
                self.grow(
                    f,
                    object,
                    Growth::Extend,
                    Entry { value: element, key: nothing, stored },
                    container,
                );
                none
            }
            (Shape::Set, "add") => {
                self.grow(f, object, Growth::Add, Entry { value: first, key: nothing, stored }, container);
                none
            }
            (Shape::Set, "update") => {
                let element = self.element_of(f, first);
                self.grow(f, object, Growth::Add, Entry { value: element, key: nothing, stored }, container);
                none
            }
            (Shape::Queue, "put" | "put_nowait") => {
                self.grow(f, object, Growth::Put, Entry { value: first, key: nothing, stored }, container);
                none
            }
            (_, "clear") => {
                f.event(What::Release { object, how: Release::Clear }, at);
                self.release_inner(f, object, Release::Clear, at);
                none
            }
            // Waits until everything was taken out.
            (Shape::Queue, "join") => {
                f.event(What::Release { object, how: Release::Clear }, at);
                none
            }
            (Shape::Queue, "get" | "get_nowait")
            | (_, "pop" | "popleft" | "popitem" | "remove" | "discard") => {
                f.event(What::Release { object, how: Release::Remove }, at);
                // The list of one key is taken out as a whole.
                if shape == Shape::Dict {
                    self.release_inner(f, object, Release::Rebind, at);
                }
                Some(elements)
            }
            (_, "copy") => {
                let copy = self.container(f, shape, call);
                self.heap.add_element(copy, elements);
                self.put_all(copy, &Value::object(object));
                Some(Value::object(copy))
            }
            (Shape::Tuple | Shape::Iterator, _) => Some(Value::UNKNOWN),
            _ => Some(Value::of(Kinds::UNKNOWN.with(Kinds::NUMBER))),
        }
    }

    /// A method that only dicts have.
    fn dict_method(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        method: &str,
        arguments: &[Value],
        call: &'p ast::ExprCall,
        container: &Expr,
    ) -> Option<Value> {
        let at = located(f.file, container);
        let first = arguments.first().copied().unwrap_or(Value::NOTHING);
        let nothing = Value::NOTHING;
        let none = Some(Value::of(Kinds::NONE));
        let elements = self.heap.get(object).elements;
        match method {
            "setdefault" => {
                let value = arguments.get(1).copied().unwrap_or(Value::of(Kinds::NONE));
                let stored = call.arguments.args.get(1);
                self.grow(f, object, Growth::Store, Entry { value, key: first, stored }, container);
                Some(value.join(&elements))
            }
            "pop"
                if let Literal::Text(name) = first.literal
                    && let Some(value) = self.heap.field(object, name) =>
            {
                f.event(What::Release { object, how: Release::Remove }, at);
                let other = arguments.get(1).copied().unwrap_or(nothing);
                Some(value.join(&other))
            }
            "update" => {
                let pairs = self.pairs_in(f, &first);
                if let Some((key, value)) = pairs {
                    self.grow(f, object, Growth::Store, Entry { value, key, stored: None }, container);
                    return none;
                }
                self.put_all(object, &first);
                for keyword in &call.arguments.keywords {
                    if let Some(name) = &keyword.arg {
                        let value = self.eval(f, &keyword.value);
                        let name = self.symbols.intern(name.as_str());
                        self.put(object, Value::text(name), value);
                    }
                }
                let (keys, values) = first
                    .objects
                    .iter()
                    .map(|source| (self.heap.get(source).keys, self.heap.get(source).elements))
                    .fold((nothing, nothing), |(keys, values), (key, value)| {
                        (keys.join(&key), values.join(&value))
                    });
                if !first.objects.is_empty() {
                    let [value, key] = [values, keys].map(|value| self.values.intern(value));
                    f.event(What::Grow { object, how: Growth::Store, value, key, stored: None }, at);
                }
                none
            }
            "get" => {
                if first.literal == Literal::Any {
                    self.heap.set_looked_up(object);
                }
                let other = arguments.get(1).copied().unwrap_or(Value::of(Kinds::NONE));
                // A count: no entry under another key.
                let counts = matches!(other.literal, Literal::Int(_));
                if let (Literal::Text(name), true) = (first.literal, counts)
                    && self.heap.field(object, name).is_none()
                {
                    return Some(other);
                }
                let value = self.entry_of(object, &first);
                Some(value.join(&other))
            }
            "items" => Some(self.pairs(f, object, call)),
            "values" => {
                let iterator = self.container(f, Shape::Iterator, call);
                self.heap.add_element(iterator, elements);
                Some(Value::object(iterator))
            }
            "keys" => {
                let iterator = self.container(f, Shape::Iterator, call);
                let keys = self.heap.get(object).keys;
                self.heap.add_element(iterator, keys);
                Some(Value::object(iterator))
            }
            _ => None,
        }
    }

    /// Keys and values of something that gives pairs: `zip(names, losses)`.
    pub(super) fn pairs_in(&mut self, f: &mut Frame, source: &Value) -> Option<(Value, Value)> {
        let gives_pairs =
            |object| matches!(self.heap.shape(object), Shape::Iterator | Shape::List | Shape::Tuple);
        if source.objects.is_empty() || !source.objects.iter().all(gives_pairs) {
            return None;
        }
        let pair = self.element_of(f, *source);
        Some((self.part_of(f, pair, 0), self.part_of(f, pair, 1)))
    }

    /// Keys with their values, as tuples.
    fn pairs(&mut self, f: &mut Frame, dict: ObjectId, node: &impl Ranged) -> Value {
        let (keys, elements) = (self.heap.get(dict).keys, self.heap.get(dict).elements);
        let pair = self.container(f, Shape::Tuple, node);
        for (position, value) in [keys, elements].into_iter().enumerate() {
            let name = self.position(position);
            self.heap.set_field(pair, name, value);
            self.heap.add_element(pair, value);
        }
        let iterator = self.container(f, Shape::Iterator, node);
        self.heap.add_element(iterator, Value::object(pair));
        Value::object(iterator)
    }
}
