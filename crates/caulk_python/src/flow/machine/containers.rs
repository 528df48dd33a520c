//! Built-in containers: how they are made, what goes in and out.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use crate::flow::event::{Growth, Guards, Place, Release, What};
use crate::flow::heap::Shape;
use crate::flow::ids::ObjectId;
use crate::flow::machine::Machine;
use crate::flow::machine::entry::Entry;
use crate::flow::machine::expressions::inherit;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::located;
use crate::flow::value::{Kinds, Literal, Traits, Value};

impl<'p> Machine<'p> {
    /// A container that is made here.
    pub(crate) fn container(&mut self, f: &mut Frame, shape: Shape, node: &impl Ranged) -> ObjectId {
        let at = located(f.file, node);
        let object = self.heap.container(shape, Some(at), f.maker, f.recording);
        if shape.is_container() {
            f.event(What::Birth(object), at);
        }
        object
    }

    /// Puts an entry into a dict, without telling.
    pub(crate) fn put(&mut self, dict: ObjectId, key: Value, value: Value) {
        if let Literal::Text(name) = key.literal {
            self.heap.set_field(dict, name, value);
        }
        self.heap.add_key(dict, key);
        self.heap.add_element(dict, value);
    }

    /// Puts all entries of another dict into one.
    pub(crate) fn put_all(&mut self, dict: ObjectId, other: &Value) {
        for source in other.objects.iter().filter(|source| *source != dict) {
            let known = self.heap.get(source).clone();
            self.heap.add_element(dict, known.elements);
            self.heap.add_key(dict, known.keys);
            for (name, value) in known.fields.iter() {
                self.heap.set_field(dict, *name, *value);
            }
        }
    }

    /// A container gets longer, here.
    pub(super) fn grow(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        how: Growth,
        entry: Entry<'_>,
        container: &impl Ranged,
    ) {
        let Entry { mut value, key, stored } = entry;
        // Not every frame.
        if f.guards.has(Guards::CONDITION) {
            value = value.without(Traits::FRAME);
        }
        if how == Growth::Store {
            self.put(object, key, value);
        } else {
            self.heap.add_element(object, value);
        }
        let stored = stored.map(|expr| located(f.file, expr));
        let [value, key] = [value, key].map(|value| self.values.intern(value));
        f.event(What::Grow { object, how, value, key, stored }, located(f.file, container));
    }

    /// `container[key] = value`.
    pub(crate) fn store_item(
        &mut self,
        f: &mut Frame,
        target: &'p ast::ExprSubscript,
        value: Value,
        augmented: bool,
    ) {
        let owner = self.eval(f, &target.value);
        let key = self.eval(f, &target.slice);
        self.fill(f, &target.value, owner);
        for object in owner.objects.iter() {
            match self.heap.shape(object) {
                Shape::Dict => {
                    let name = match key.literal {
                        Literal::Text(name) => name,
                        _ => self.names.any,
                    };
                    self.store_place(f, object, name, value, augmented, target);
                    self.grow(f, object, Growth::Store, Entry { value, key, stored: None }, &*target.value);
                }
                Shape::List | Shape::Deque => {
                    if matches!(&*target.slice, Expr::Slice(slice) if slice.lower.is_none() && slice.upper.is_none())
                    {
                        f.event(What::Release { object, how: Release::Clear }, located(f.file, target));
                    } else {
                        let name = self.names.any;
                        self.store_place(f, object, name, value, augmented, target);
                    }
                    self.heap.add_element(object, value);
                }
                Shape::Instance(_) => {
                    self.call_method(f, object, self.names.setitem, &[key, value], target);
                }
                _ => {}
            }
        }
    }

    /// `rounds[number][name] = value`: the inner dict is made here, if `rounds` has none.
    fn fill(&mut self, f: &mut Frame, inner: &'p Expr, made: Value) {
        let Expr::Subscript(subscript) = inner else { return };
        let outer = self.peek(f, &subscript.value);
        let fills = |object: &ObjectId| self.heap.get(*object).fills;
        let filled: Vec<ObjectId> = outer.objects.iter().filter(fills).collect();
        if filled.is_empty() {
            return;
        }
        let key = self.peek(f, &subscript.slice);
        for object in filled {
            let entry = Entry { value: made, key, stored: None };
            self.grow(f, object, Growth::Store, entry, &*subscript.value);
        }
    }

    fn store_place(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: crate::flow::symbols::Symbol,
        value: Value,
        augmented: bool,
        target: &impl Ranged,
    ) {
        let place = self.place(Place::Field(object, name));
        let at = located(f.file, target);
        if value.comes_from(place) {
            let value = self.values.intern(value);
            f.event(What::Carry { place, value, augmented }, at);
        } else {
            f.event(What::Reset { place }, at);
        }
    }

    /// `container[key]`.
    pub(crate) fn subscript(&mut self, f: &mut Frame, subscript: &'p ast::ExprSubscript) -> Value {
        let owner = self.eval(f, &subscript.value);
        let key = self.eval(f, &subscript.slice);
        self.take_frames(f, &owner, key, subscript);
        let mut found = Value::NOTHING;
        if owner.kinds.has(Kinds::AXES.with(Kinds::FIGURE)) {
            return owner;
        }
        if owner.kinds.has(Kinds::VIDEO) {
            return self.frames_at(f, subscript);
        }
        for object in owner.objects.iter() {
            let value = self.item(f, object, &key, subscript);
            found = found.join(&value);
        }
        let kinds = owner.kinds.without(Kinds::OBJECT);
        let one = !matches!(
            &*subscript.slice,
            Expr::Slice(_) | Expr::Tuple(_) | Expr::List(_) | Expr::NoneLiteral(_)
        ) && !key.kinds.has(Kinds::TENSOR.with(Kinds::ARRAY));
        // What an object keeps, by a number that changes, is found again: `self.rows[index]`.
        if one && subscript.value.is_attribute_expr() && key.literal == Literal::Any {
            found = found.without(Traits::UNIQUE.with(Traits::MEASURED));
        }
        if kinds == Kinds::ARRAY && owner.traits.has(Traits::FLAT) && one {
            found = found.join(&inherit(Value::of(Kinds::NUMBER), owner.traits));
        } else if kinds.has(Kinds::TENSOR.with(Kinds::ARRAY)) {
            let mut part = Value { objects: Value::NOTHING.objects, literal: Literal::Any, ..owner };
            // A part of a row is a number, and nobody knows whether it is one.
            let number = if kinds == Kinds::ARRAY && one { Kinds::NUMBER } else { Kinds::NONE_OF_ALL };
            part.kinds = kinds.with(number);
            part = part.without(Traits::LEAF.with(Traits::WHOLE));
            if owner.traits.has(Traits::LEAF) && f.recording {
                part = part.with(Traits::GRAPH);
            }
            // Indices of a mask make a copy. Of a batch that may be a list of tensors, an element is whole.
            let indices = key.kinds.has(Kinds::TENSOR.with(Kinds::ARRAY));
            // What stands under a name, in an archive of arrays or the output of a model, is whole, too.
            let whole = owner.traits.has(Traits::PIECES) || key.only(Kinds::TEXT);
            if !kinds.has(Kinds::UNKNOWN) && !indices && !whole && cuts(&subscript.slice) {
                part = part.with(Traits::VIEW);
            }
            part = part.without(Traits::PIECES);
            found = found.join(&part);
        } else if kinds.has(Kinds::TEXT) {
            found = found.join(&Value::of(Kinds::TEXT));
        } else if kinds.has(Kinds::TABLE) {
            found = found.join(&Value::of(Kinds::TABLE));
        } else if kinds.has(Kinds::LOADER) {
            found = found.join(&Value::UNKNOWN);
        } else if !kinds.is_empty() {
            found = found.join(&inherit(Value::UNKNOWN, owner.traits));
        }
        if found.is_nothing() { Value::UNKNOWN } else { found }
    }

    fn item(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        key: &Value,
        subscript: &'p ast::ExprSubscript,
    ) -> Value {
        match self.heap.shape(object) {
            shape @ (Shape::List | Shape::Deque | Shape::Tuple | Shape::Iterator) => {
                if subscript.slice.is_slice_expr() {
                    let part = self.container(
                        f,
                        if shape == Shape::Tuple { Shape::Tuple } else { Shape::List },
                        subscript,
                    );
                    let elements = self.heap.get(object).elements;
                    self.heap.add_element(part, elements);
                    return Value::object(part);
                }
                if let (Shape::Tuple, Literal::Int(position)) = (shape, key.literal)
                    && let Ok(position) = usize::try_from(position)
                {
                    let name = self.position(position);
                    if let Some(value) = self.heap.field(object, name) {
                        return value;
                    }
                }
                let name = self.names.any;
                self.read_place(object, name, self.heap.get(object).elements)
            }
            Shape::Dict => self.entry_of(object, key),
            Shape::Instance(_) => {
                self.call_method(f, object, self.names.getitem, &[*key], subscript).unwrap_or(Value::UNKNOWN)
            }
            // `list[int]`, `Tensor[..]` in annotations and aliases.
            Shape::Class(_) | Shape::External(_) => Value::object(object),
            _ => Value::UNKNOWN,
        }
    }

    /// What a dict holds under a key.
    pub(super) fn entry_of(&mut self, dict: ObjectId, key: &Value) -> Value {
        let (name, value) = match key.literal {
            Literal::Text(name) => (name, self.heap.field(dict, name)),
            _ => (self.names.any, None),
        };
        let value = value.unwrap_or(self.heap.get(dict).elements);
        self.read_place(dict, name, value)
    }

    fn read_place(
        &mut self,
        object: ObjectId,
        name: crate::flow::symbols::Symbol,
        mut value: Value,
    ) -> Value {
        if value.kinds.has(Kinds::TENSOR) {
            let place = self.place(Place::Field(object, name));
            value.carried.put(place);
        }
        value
    }

    /// What iterating over a value gives.
    pub(crate) fn element_of(&mut self, f: &mut Frame, value: Value) -> Value {
        let mut found = Value::NOTHING;
        for object in value.objects.iter() {
            let element = match self.heap.shape(object) {
                Shape::Dict => self.heap.get(object).keys,
                Shape::List | Shape::Tuple | Shape::Set | Shape::Deque | Shape::Iterator => {
                    self.heap.get(object).elements
                }
                Shape::Instance(_) => self.iterate_instance(f, object),
                Shape::Queue => Value::NOTHING,
                // What gives frames, batches or axes is told by its kind.
                Shape::Foreign(_) if value.kinds.has(Kinds::VIDEO.with(Kinds::LOADER).with(Kinds::AXES)) => {
                    Value::NOTHING
                }
                _ => Value::UNKNOWN,
            };
            found = found.join(&element);
        }
        let kinds = value.kinds.without(Kinds::OBJECT);
        if kinds.has(Kinds::TENSOR.with(Kinds::ARRAY)) {
            let number = if kinds == Kinds::ARRAY { Kinds::NUMBER } else { Kinds::NONE_OF_ALL };
            let kinds = kinds.with(number);
            let element = Value { kinds, objects: Value::NOTHING.objects, literal: Literal::Any, ..value };
            // Whoever goes through all parts sees the whole storage.
            found = found.join(&element);
        } else if kinds.has(Kinds::LOADER) {
            found = found.join(&Value::of(Kinds::TENSOR).with(Traits::DATA));
        } else if kinds.has(Kinds::TEXT) {
            found = found.join(&Value::of(Kinds::TEXT));
        } else if kinds.has(Kinds::NUMBER) {
            found = found.join(&inherit(Value::of(Kinds::NUMBER), value.traits));
        } else if kinds.has(Kinds::VIDEO) {
            found = found.join(&Value::of(Kinds::ARRAY).with(Traits::DATA.with(Traits::FRAME)));
        } else if kinds.has(Kinds::AXES) {
            found = value;
        } else if !kinds.is_empty() {
            found = found.join(&inherit(Value::UNKNOWN, value.traits));
        }
        found
    }

    fn iterate_instance(&mut self, f: &mut Frame, object: ObjectId) -> Value {
        let at = crate::flow::machine::calls::AtStatement(f.statement.range.into());
        let Some(iterator) = self.call_method(f, object, self.names.iter, &[], &at) else {
            return self
                .call_method(f, object, self.names.getitem, &[Value::of(Kinds::NUMBER)], &at)
                .unwrap_or(Value::UNKNOWN);
        };
        let mut found = Value::NOTHING;
        for inner in iterator.objects.iter() {
            let element = match self.heap.shape(inner) {
                Shape::Instance(_) => {
                    self.call_method(f, inner, self.names.next, &[], &at).unwrap_or(Value::UNKNOWN)
                }
                _ => self.element_of(f, Value::object(inner)),
            };
            found = found.join(&element);
        }
        if iterator.kinds.has(Kinds::UNKNOWN) || found.is_nothing() { Value::UNKNOWN } else { found }
    }

    /// What unpacking gives at a position.
    pub(crate) fn part_of(&mut self, f: &mut Frame, value: Value, position: usize) -> Value {
        let mut found = Value::NOTHING;
        let mut rest = value;
        rest.objects = Value::NOTHING.objects;
        for object in value.objects.iter() {
            if self.heap.shape(object) == Shape::Tuple {
                let name = self.position(position);
                let part = self.heap.field(object, name).unwrap_or(self.heap.get(object).elements);
                found = found.join(&part);
            } else {
                rest.objects.insert(object);
            }
        }
        if rest.objects.is_empty() {
            rest.kinds = rest.kinds.without(Kinds::OBJECT);
        }
        if !rest.is_nothing() {
            let part = self.element_of(f, rest);
            found = found.join(&part);
        }
        if found.is_nothing() { Value::UNKNOWN } else { found }
    }
}

/// Whether an index gives a part, in the storage of the whole: `x[0]`, `x[:, 2:4]`, not `x[None]` or `x[[1, 2]]`.
fn cuts(index: &Expr) -> bool {
    match index {
        Expr::Tuple(parts) => !parts.iter().any(Expr::is_list_expr) && parts.iter().any(cuts),
        Expr::Slice(slice) => slice.lower.is_some() || slice.upper.is_some() || slice.step.is_some(),
        Expr::NoneLiteral(_) | Expr::EllipsisLiteral(_) | Expr::List(_) => false,
        _ => true,
    }
}
