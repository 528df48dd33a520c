//! Growth by binding anew: `x = x + [y]`, `x = torch.cat([x, y])`, `d = {**d, k: v}`, `x = Node(value, x)`.
//!
//! No container grows there: each turn makes another one, with all of the last in it; or another object that keeps the
//! last. What is followed is the place, by an object of its own that stands for whatever the place holds.

use ruff_python_ast::{self as ast, Expr, Operator};
use ruff_text_size::Ranged;

use crate::flow::event::{Growth, Guards, Place, Release, What};
use crate::flow::heap::Shape;
use crate::flow::ids::ObjectId;
use crate::flow::joined::{is_same, joined, parts};
use crate::flow::machine::Machine;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::{Body, located};
use crate::flow::symbols::Symbol;
use crate::flow::syntax::name_of;
use crate::flow::value::{Kinds, Literal, Value};
use crate::library::joins;
use crate::project::Location;

impl<'p> Machine<'p> {
    /// Tells what an assignment does to the length of what its target holds.
    pub(super) fn relength(&mut self, f: &mut Frame, target: &'p Expr, expr: &'p Expr, value: &Value) {
        if let Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) = target {
            for part in elts {
                self.cut(f, part);
            }
            return;
        }
        if !self.is_lengthened(target) {
            return;
        }
        let through = || self.scopes.joins.get(&located(f.file, target)).copied();
        let join = joined(target, expr).or_else(through).filter(|join| self.is_longer(f, join, value));
        if let Some(join) = join {
            return self.lengthen(f, target, join, value);
        }
        let links = self.links(f, expr, value);
        if links.is_empty() {
            return self.cut(f, target);
        }
        for held in self.held(f, target) {
            self.link(f, held, &links, value, located(f.file, target));
        }
    }

    /// Notes growth if `setattr` binds an object that keeps the one before it.
    pub(super) fn relink(&mut self, f: &mut Frame, call: &'p ast::ExprCall, place: Place, value: &Value) {
        let links = self.links(f, call, value);
        let [object, ..] = &*call.arguments.args else { return };
        if !links.is_empty() {
            let place = self.place(place);
            let held = self.heap.unique(Shape::Held(place));
            self.link(f, held, &links, value, located(f.file, object));
        }
    }

    /// Objects of a value that keep one that was made at the same place, where it may be the one before.
    fn links(&self, f: &Frame, at: &impl Ranged, value: &Value) -> Vec<ObjectId> {
        if !self.scopes.links.contains(&located(f.file, at)) {
            return Vec::new();
        }
        value.objects.iter().filter(|object| self.keeps_its_like(*object)).collect()
    }

    fn keeps_its_like(&self, object: ObjectId) -> bool {
        let known = self.heap.get(object);
        let kept = |held: &Value| held.objects.contains(object);
        let captured = match known.shape {
            Shape::Function(function, Some(around)) => {
                let free = &self.scopes.function(function).free;
                free.keys().any(|name| self.heap.field(around, *name).is_some_and(|held| kept(&held)))
            }
            Shape::Instance(_) | Shape::Partial(_) | Shape::Tuple | Shape::Function(..) => false,
            shape if shape.is_container() => false,
            _ => return false,
        };
        captured || known.fields.values().chain([&known.elements]).any(kept)
    }

    /// A place is bound to an object that keeps the one that was there.
    fn link(&mut self, f: &mut Frame, held: ObjectId, links: &[ObjectId], value: &Value, at: Location) {
        for link in links {
            self.heap.changed |= self.linked.entry(*link).or_default().insert(held);
        }
        // A model's parameters come with each of the models.
        let model = value.kinds.has(Kinds::MODULE);
        let added = if model { Value::of(Kinds::TENSOR) } else { *value };
        let [value, key] = [added, Value::NOTHING].map(|value| self.values.intern(value));
        f.event(What::Grow { object: held, how: Growth::Link, value, key, stored: None }, at);
    }

    /// An attribute that may have kept the object before this one is bound to something else: `last.previous = None`.
    pub(super) fn unlink(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: Symbol,
        value: &Value,
        at: Location,
    ) {
        let held = self.heap.field(object, name).is_some_and(|held| held.objects.contains(object));
        if !held || value.objects.contains(object) || self.scopes.function(f.function).name == self.names.init
        {
            return;
        }
        for chain in self.linked.get(&object).cloned().unwrap_or_default() {
            f.event(What::Release { object: chain, how: Release::Rebind }, at);
        }
    }

    /// A place is bound to something that does not contain what it held.
    fn cut(&mut self, f: &mut Frame, target: &'p Expr) {
        // Bound for the first time: whatever is there stays.
        if f.guards.has(Guards::ONCE.with(Guards::MISSING)) || !self.is_lengthened(target) {
            return;
        }
        let at = located(f.file, target);
        for object in self.held(f, target) {
            f.event(What::Release { object, how: Release::Rebind }, at);
        }
    }

    fn lengthen(&mut self, f: &mut Frame, target: &'p Expr, join: &'p Expr, value: &Value) {
        let (added, key) = self.added(f, target, join, value);
        // `torch.cat([x, y]).detach()`.
        let whole = value.kinds.has(Kinds::TENSOR) && !value.carries_graph();
        let added = if whole { added.detached() } else { added };
        let at = located(f.file, target);
        for object in self.held(f, target) {
            self.heap.add_element(object, *value);
            let [value, key] = [added, key].map(|value| self.values.intern(value));
            f.event(What::Grow { object, how: Growth::Concatenate, value, key, stored: None }, at);
        }
    }

    /// Whether something lengthens what is held under the last name of a target anywhere.
    fn is_lengthened(&self, target: &Expr) -> bool {
        name_of(target)
            .and_then(|name| self.symbols.find(name))
            .is_some_and(|name| self.scopes.lengthened.contains(&name))
    }

    /// Whether parts are put one behind the other, and not added up.
    fn is_longer(&mut self, f: &mut Frame, join: &'p Expr, value: &Value) -> bool {
        let has = |machine: &Self, shapes: &[Shape]| {
            value.objects.iter().any(|object| shapes.contains(&machine.heap.shape(object)))
        };
        match join {
            Expr::BinOp(binary) if binary.op == Operator::BitOr => has(self, &[Shape::Dict, Shape::Set]),
            Expr::BinOp(_) => has(self, &[Shape::List, Shape::Tuple]),
            Expr::Call(call) => self.is_join(f, call),
            _ => true,
        }
    }

    fn is_join(&mut self, f: &mut Frame, call: &'p ast::ExprCall) -> bool {
        let callee = self.peek(f, &call.func);
        let function = callee.objects.iter().any(|object| match self.heap.shape(object) {
            Shape::External(name) => joins::JOINS.contains(&self.symbols.name(name)),
            _ => false,
        });
        let Some(method) = call.func.as_attribute_expr().filter(|_| !function) else { return function };
        joins::TABLE_METHODS.contains(&method.attr.as_str())
            && self.peek(f, &method.value).kinds.has(Kinds::TABLE)
    }

    /// What one turn adds, and under which keys.
    pub(super) fn added(
        &mut self,
        f: &mut Frame,
        target: &Expr,
        join: &'p Expr,
        value: &Value,
    ) -> (Value, Value) {
        let mut added = Value::NOTHING;
        let mut key = Value::NOTHING;
        match join {
            Expr::Dict(dict) => {
                for item in &dict.items {
                    if let Some(name) = &item.key {
                        key = key.join(&self.peek(f, name));
                        added = added.join(&self.peek(f, &item.value));
                    }
                }
            }
            Expr::List(ast::ExprList { elts, .. })
            | Expr::Tuple(ast::ExprTuple { elts, .. })
            | Expr::Set(ast::ExprSet { elts, .. }) => {
                for element in elts.iter().filter(|element| !element.is_starred_expr()) {
                    added = added.join(&self.peek(f, element));
                }
            }
            _ => {
                for part in parts(join).into_iter().filter(|part| !is_same(target, part)) {
                    let part = self.peek(f, part);
                    let containers = part.objects.iter().filter(|object| {
                        self.heap.shape(*object).is_container() || self.heap.shape(*object) == Shape::Tuple
                    });
                    for object in containers.collect::<Vec<_>>() {
                        let known = self.heap.get(object);
                        added = added.join(&known.elements);
                        key = key.join(&known.keys);
                    }
                    if part.objects.is_empty() {
                        added = added.join(&part);
                    }
                }
            }
        }
        (if added.is_nothing() { *value } else { added }, key)
    }

    /// The value of an expression that is evaluated at another time, too.
    pub(super) fn peek(&mut self, f: &mut Frame, expr: &'p Expr) -> Value {
        let noted = f.events.len();
        let value = self.eval(f, expr);
        f.events.truncate(noted);
        value
    }

    /// Objects that stand for what the places hold that a target means.
    fn held(&mut self, f: &mut Frame, target: &'p Expr) -> Vec<ObjectId> {
        let places = self.places_of(f, target);
        places
            .into_iter()
            .map(|place| {
                let place = self.place(place);
                self.heap.unique(Shape::Held(place))
            })
            .collect()
    }

    fn places_of(&mut self, f: &mut Frame, target: &'p Expr) -> Vec<Place> {
        match target {
            Expr::Name(name) => {
                let symbol = self.symbols.at(&name.node_index, name.id.as_str());
                let definition = self.scopes.function(f.function);
                let own = definition.slots.contains_key(&symbol);
                let shared =
                    matches!(definition.body, Body::Module(_)) || definition.shared.contains(&symbol);
                let owner = match own {
                    true if !shared => {
                        // Outside of loops it is bound once for every call.
                        let outer = f.loops.first();
                        return outer
                            .map(|outer| Place::Variable(f.function, symbol, *outer))
                            .into_iter()
                            .collect();
                    }
                    true => f.variables,
                    false => self.outer_variables(f, symbol),
                };
                owner.map(|owner| Place::Field(owner, symbol)).into_iter().collect()
            }
            Expr::Attribute(attribute) => {
                let name = self.symbols.at(&attribute.attr.node_index, attribute.attr.as_str());
                let owner = self.peek(f, &attribute.value);
                let keeps = |object: &ObjectId| {
                    matches!(
                        self.heap.shape(*object),
                        Shape::Instance(_) | Shape::Module(_) | Shape::Class(_) | Shape::Foreign(_)
                    )
                };
                owner.objects.iter().filter(keeps).map(|object| Place::Field(object, name)).collect()
            }
            Expr::Subscript(subscript) => {
                let owner = self.peek(f, &subscript.value);
                let name = match self.peek(f, &subscript.slice).literal {
                    Literal::Text(name) => name,
                    _ => self.names.any,
                };
                let keeps = |object: &ObjectId| self.heap.shape(*object).is_container();
                owner.objects.iter().filter(keeps).map(|object| Place::Field(object, name)).collect()
            }
            _ => Vec::new(),
        }
    }
}
