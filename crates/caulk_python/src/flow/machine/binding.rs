//! Binding names, attributes and entries, and what that means for what they held.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, Operator};
use ruff_text_size::Ranged;

use crate::flow::event::{Growth, Place, Release, What};
use crate::flow::heap::{Heap, Maker, Shape};
use crate::flow::ids::ObjectId;
use crate::flow::joined::is_same;
use crate::flow::machine::Machine;
use crate::flow::machine::attributes::MethodKind;
use crate::flow::machine::calls::constant_beginning;
use crate::flow::machine::entry::Entry;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::{Body, located};
use crate::flow::symbols::Symbol;
use crate::flow::value::{Few, Kinds, Literal, Traits, Value};
use crate::library::roles;
use crate::project::Location;

/// Whether what is added up here is so again and again: in a loop, or by a method.
fn may_count(f: &Frame) -> bool {
    !f.loops.is_empty() || f.receiver.is_some()
}

/// `step = step + 1` counts as `step += 1` does.
pub(super) fn counted(f: &Frame, target: &Expr, source: &Expr, value: Value) -> Value {
    let Expr::BinOp(sum) = source else { return value };
    let one = matches!(&*sum.right, Expr::NumberLiteral(one) if matches!(one.value, ast::Number::Int(_)));
    let counts = sum.op == Operator::Add && one && is_same(target, &sum.left);
    if counts && value.only(Kinds::NUMBER) && may_count(f) { value.with(Traits::COUNTER) } else { value }
}

/// What costs nothing to keep.
const PLAIN: Kinds = Kinds::NUMBER.with(Kinds::TEXT).with(Kinds::NONE);

impl<'p> Machine<'p> {
    /// A variable that `backward` is called on holds a tensor with a graph, whatever the right side is.
    pub(super) fn named_role(&mut self, f: &Frame, target: &Expr, value: Value, source: &Expr) -> Value {
        let name = match target {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return value,
        };
        let Some(symbol) = self.symbols.find(name) else { return value };
        let differentiated = self.scopes.function(f.function).differentiated.contains(&symbol);
        let proves = f.recording && value.carries_graph();
        if proves && (differentiated || self.is_made_into_a_loss(f, symbol)) {
            return value.with(Traits::PROVED);
        }
        let unknown = value.kinds.has(Kinds::UNKNOWN);
        // Of what a variable is made of, a part may be plain data.
        let carries = if differentiated {
            let plain = value.kinds.has(Kinds::TENSOR) && !value.traits.has(Traits::LEAF);
            unknown || plain && is_computed(source, name)
        } else {
            unknown && self.is_made_into_a_loss(f, symbol)
        };
        if f.recording && carries && !value.carries_graph() {
            let mut value = value;
            value.kinds = value.kinds.without(Kinds::UNKNOWN).with(Kinds::TENSOR);
            value.origin = Some(self.origin(located(f.file, source)));
            return value.with(Traits::GRAPH.with(Traits::PROVED));
        }
        value
    }

    /// Whether what is differentiated is made of a variable: by the function itself, or by Lightning, which
    /// differentiates what a training step returns.
    fn is_made_into_a_loss(&self, f: &Frame, name: Symbol) -> bool {
        let function = self.scopes.function(f.function);
        let of_lightning = |class| self.derives(class, |base| base.ends_with(".LightningModule"));
        let steps = self.symbols.name(function.name) == "training_step";
        let returned = steps && function.returned.contains(&name);
        function.carriers.contains(&name) || returned && function.class.is_some_and(of_lightning)
    }

    pub(crate) fn assign(&mut self, f: &mut Frame, target: &'p Expr, value: Value, augmented: bool) {
        match target {
            Expr::Name(name) => {
                let symbol = self.symbols.at(&name.node_index, name.id.as_str());
                self.rebind(f, symbol, value, augmented, target);
            }
            Expr::Attribute(attribute) => {
                let owner = self.eval(f, &attribute.value);
                let name = self.symbols.at(&attribute.attr.node_index, attribute.attr.as_str());
                for object in owner.objects.iter() {
                    self.bind_field(f, object, name, value, augmented, target);
                }
                if owner.objects.is_empty() && is_empty_display(&value, &self.heap) {
                    self.emptied.insert(name);
                }
                let tensor = owner.kinds.has(Kinds::TENSOR.with(Kinds::UNKNOWN));
                if tensor && attribute.attr.as_str() == "grad" {
                    self.library_event(f, "torch.Tensor.grad =", owner, value, Value::NOTHING, target);
                }
            }
            Expr::Subscript(subscript) => self.store_item(f, subscript, value, augmented),
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                self.unpack(f, elts, value);
            }
            Expr::Starred(starred) => {
                let list = self.container(f, Shape::List, starred);
                let element = self.element_of(f, value);
                self.heap.add_element(list, element);
                self.assign(f, &starred.value, Value::object(list), false);
            }
            _ => {}
        }
    }

    pub(super) fn unpack(&mut self, f: &mut Frame, targets: &'p [Expr], value: Value) {
        for (position, target) in targets.iter().enumerate() {
            let mut part = if target.is_starred_expr() { value } else { self.part_of(f, value, position) };
            // The number that stands beside the parts of a split.
            if value.traits.has(Traits::FOLD) && part.only(Kinds::NUMBER) {
                part = part.with(Traits::FOLD);
            }
            // `loss, count = model(batch)`.
            if part.carries_graph() && target.as_name_expr().is_some_and(|name| roles::is_count(&name.id)) {
                part = Value::of(Kinds::NUMBER);
            }
            self.assign(f, target, part, false);
        }
    }

    /// Binds a variable, and tells what that means for what it held.
    pub(super) fn rebind(
        &mut self,
        f: &mut Frame,
        symbol: Symbol,
        value: Value,
        augmented: bool,
        target: &Expr,
    ) {
        let at = located(f.file, target);
        let definition = self.scopes.function(f.function);
        let slot = definition.slots.get(&symbol).copied();
        let is_module = matches!(definition.body, Body::Module(_));
        if slot.is_none() {
            // A variable of a function around it, or a global.
            let owner = self.outer_variables(f, symbol);
            if let Some(owner) = owner {
                self.bind_field(f, owner, symbol, value, augmented, target);
            }
            return;
        }
        let old = slot.map_or(Value::NOTHING, |slot| f.slots[slot as usize]);
        self.release_held(f, &old, &value, at, true);
        let mut carried = false;
        // Only tensors take a graph along.
        let tensors = old.kinds.has(Kinds::TENSOR) || value.kinds.has(Kinds::TENSOR);
        let loops = if tensors { f.loops.clone() } else { Vec::new() };
        for &around in loops.iter().rev() {
            let place = self.place(Place::Variable(f.function, symbol, around));
            if value.comes_from(place) {
                carried = true;
                let value = self.values.intern(value);
                f.event(What::Carry { place, value, augmented }, at);
            } else if !f.loops.is_empty() {
                self.note_cut(&value);
                f.event(What::Reset { place }, at);
            }
        }
        if is_module && let Some(module) = f.variables {
            let place = self.place(Place::Field(module, symbol));
            if !carried && !value.only(PLAIN) {
                let value = self.values.intern(value);
                f.event(What::Bind { place, value }, at);
            }
        }
        self.set_name(f, symbol, value);
    }

    /// A value that depends on more places than are followed may depend on this one, too.
    fn note_cut(&mut self, value: &Value) {
        self.crowded |= !self.learning && value.carried.is_cut() && value.carries_graph();
    }

    /// Binds a name where it lives.
    pub(crate) fn set_name(&mut self, f: &mut Frame, symbol: Symbol, value: Value) {
        if self.scopes.function(f.function).slots.contains_key(&symbol) {
            f.set(self, symbol, value);
        } else if let Some(owner) = self.outer_variables(f, symbol) {
            self.heap.set_field(owner, symbol, value);
        }
    }

    /// The object that holds a variable that is not this function's own.
    pub(crate) fn outer_variables(&mut self, f: &Frame, symbol: Symbol) -> Option<ObjectId> {
        let definition = self.scopes.function(f.function);
        if let Some(&owner) = definition.free.get(&symbol) {
            let mut at = f.closure;
            while let Some(id) = at {
                match self.heap.shape(id) {
                    Shape::Variables(function, _) if function == owner => return Some(id),
                    Shape::Variables(_, outer) => at = outer,
                    _ => return None,
                }
            }
            return None;
        }
        Some(self.module_object(f.file))
    }

    pub(crate) fn bind_field(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: Symbol,
        value: Value,
        augmented: bool,
        target: &impl Ranged,
    ) {
        let holds = matches!(
            self.heap.shape(object),
            Shape::Instance(_)
                | Shape::Module(_)
                | Shape::Class(_)
                | Shape::Variables(..)
                | Shape::Function(..)
                | Shape::Foreign(_)
        );
        if !holds || self.set_property(f, object, name, value, target) {
            return;
        }
        let at = located(f.file, target);
        let old = self.heap.field(object, name).unwrap_or(Value::NOTHING);
        self.release_held(f, &old, &value, at, false);
        self.unlink(f, object, name, &value, at);
        let place = self.place(Place::Field(object, name));
        let told = self.values.intern(value);
        if value.comes_from(place) {
            f.event(What::Carry { place, value: told, augmented }, at);
        } else {
            // Only tensors take a graph along.
            if self.is_state(&old) || self.is_state(&value) {
                self.note_cut(&value);
                f.event(What::Reset { place }, at);
            }
            if !value.only(PLAIN) {
                f.event(What::Bind { place, value: told }, at);
            }
        }
        self.heap.set_field(object, name, value);
    }

    /// `setattr(self, name, [])`: one of an object's fields is bound, and of its name the beginning is known at most. Any may
    /// be the one, if it gets an empty container or `None`. Settings that are copied from elsewhere release nothing.
    pub(super) fn release_any_field(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        new: &Value,
        call: &ast::ExprCall,
    ) {
        let own = self.scopes.function(f.function).location;
        let empty = |made: ObjectId| {
            let known = self.heap.get(made);
            known.shape.is_container()
                && known.elements.is_nothing()
                && known.at.is_some_and(|at| within(at, own))
        };
        let is_none = call.arguments.args.get(2).is_some_and(Expr::is_none_literal_expr);
        if !is_none && !new.objects.iter().any(empty) {
            return;
        }
        let beginning = call.arguments.args.get(1).and_then(constant_beginning).unwrap_or_default();
        let fields = self.heap.get(object).fields.iter();
        let held: Vec<Value> = fields
            .filter(|(name, _)| self.symbols.name(**name).starts_with(beginning))
            .map(|(_, value)| *value)
            .collect();
        for old in held {
            self.release_held(f, &old, new, located(f.file, call), false);
        }
    }

    /// Calls what a class defines for binding a property; false where it defines nothing.
    fn set_property(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: Symbol,
        value: Value,
        target: &impl Ranged,
    ) -> bool {
        let Shape::Instance(class) = self.heap.shape(object) else { return false };
        if !self.scopes.setters.contains(&name) {
            return false;
        }
        let members = self.class_member(class, name).map(|member| member.objects);
        let setter = members.iter().flat_map(Few::iter).find(|member| match self.heap.shape(*member) {
            Shape::Function(function, _) => self.method_kind(function) == MethodKind::Setter,
            _ => false,
        });
        let Some(setter) = setter else { return false };
        self.call_function(f, setter, Some(object), &[value], &[], target);
        true
    }

    /// A place that held containers is bound to something else: these are let go.
    pub(super) fn release_held(
        &mut self,
        f: &mut Frame,
        old: &Value,
        new: &Value,
        at: Location,
        local: bool,
    ) {
        let constructs = self.scopes.function(f.function).name == self.names.init;
        for object in old.objects.iter() {
            let known = self.heap.get(object);
            // `self.rows = []` in a method: another list of the same kind, made here and empty.
            let anew = !constructs
                && known.at.is_some_and(|made| within(made, f.statement) && self.is_empty_literal(made));
            let made_here = known.at.is_some_and(|made| within(made, f.statement));
            let shape = known.shape;
            if !local && matches!(shape, Shape::Instance(_)) {
                // `self.ledger = Ledger()` in a method: with the old one goes what only that has made for itself.
                if !constructs && (made_here || !new.objects.contains(object)) {
                    self.release_own(f, object, at);
                }
                continue;
            }
            if !shape.is_container() || new.objects.contains(object) && !anew {
                continue;
            }
            // Another variable's list: dropping a name for it does not drop the list.
            let own = self.scopes.function(f.function).location;
            if local && known.at.is_none_or(|made| !within(made, own)) {
                continue;
            }
            f.event(What::Release { object, how: Release::Rebind }, at);
            self.release_inner(f, object, Release::Rebind, at);
        }
    }

    /// Containers that an object made for itself go with it.
    fn release_own(&mut self, f: &mut Frame, object: ObjectId, at: Location) {
        let fields = self.heap.get(object).fields.values();
        let own: Vec<ObjectId> = fields
            .flat_map(|value| value.objects.iter())
            .filter(|inner| self.heap.shape(*inner).is_container())
            .filter(|inner| self.heap.get(*inner).maker == Maker::Receiver(object))
            .collect();
        for inner in own {
            f.event(What::Release { object: inner, how: Release::Rebind }, at);
        }
    }

    /// Whether something that is made at a place begins empty.
    fn is_empty_literal(&self, at: Location) -> bool {
        let text = self.project.text(at);
        ["[]", "{}", "()"].iter().any(|end| text.ends_with(end))
    }

    /// What only a released container holds goes with it.
    pub(crate) fn release_inner(&mut self, f: &mut Frame, object: ObjectId, how: Release, at: Location) {
        let known = self.heap.get(object);
        let inner: Vec<ObjectId> = known
            .fields
            .values()
            .chain([&known.elements])
            .flat_map(|value| value.objects.iter())
            .filter(|inner| *inner != object && self.heap.shape(*inner).is_container())
            .collect();
        for inner in inner {
            f.event(What::Release { object: inner, how }, at);
        }
    }

    pub(super) fn augment(&mut self, f: &mut Frame, assign: &'p ast::StmtAugAssign) {
        let old = self.eval(f, &assign.target);
        let value = self.eval(f, &assign.value);
        if assign.op == Operator::Add {
            let mut grown = false;
            for object in old.objects.iter() {
                if !self.heap.shape(object).is_container() {
                    continue;
                }
                grown = true;
                let element = self.element_of(f, value);
                let entry = Entry { value: element, key: Value::NOTHING, stored: Some(&assign.value) };
                self.grow(f, object, Growth::Extend, entry, &*assign.target);
            }
            if grown {
                return;
            }
        }
        // Fixes must fit what every caller adds.
        if old.kinds.has(Kinds::TENSOR) && value.kinds.has(Kinds::NUMBER) {
            self.library_event(f, "number added", old, value, Value::NOTHING, &*assign.target);
        }
        let mut result = self.arithmetic(f, &old, &value, assign);
        let counts = value.only(Kinds::NUMBER) && matches!(value.literal, Literal::Int(_));
        if counts && may_count(f) {
            result = result.with(Traits::COUNTER);
        }
        self.assign(f, &assign.target, result, true);
    }

    pub(super) fn delete(&mut self, f: &mut Frame, target: &'p Expr) {
        match target {
            Expr::Name(name) => {
                let symbol = self.symbols.at(&name.node_index, name.id.as_str());
                if let Some(&slot) = self.scopes.function(f.function).slots.get(&symbol) {
                    let old = f.slots[slot as usize];
                    self.release_held(f, &old, &Value::NOTHING, located(f.file, target), true);
                    f.set(self, symbol, Value::NOTHING);
                }
            }
            Expr::Attribute(attribute) => {
                let owner = self.eval(f, &attribute.value);
                let name = self.symbols.at(&attribute.attr.node_index, attribute.attr.as_str());
                for object in owner.objects.iter() {
                    let old = self.heap.field(object, name).unwrap_or(Value::NOTHING);
                    let at = located(f.file, target);
                    self.release_held(f, &old, &Value::NOTHING, at, false);
                    let place = self.place(Place::Field(object, name));
                    f.event(What::Reset { place }, at);
                }
            }
            Expr::Subscript(subscript) => {
                let owner = self.eval(f, &subscript.value);
                self.eval(f, &subscript.slice);
                let whole = matches!(&*subscript.slice, Expr::Slice(slice) if slice.lower.is_none() && slice.upper.is_none());
                let how = match &*subscript.slice {
                    Expr::Slice(_) if whole => Release::Clear,
                    Expr::Slice(_) => Release::Trim,
                    _ => Release::Remove,
                };
                for object in owner.objects.iter() {
                    f.event(What::Release { object, how }, located(f.file, &*subscript.value));
                }
            }
            _ => {}
        }
    }
}

/// Whether a call computes a value from others, and cuts nothing off: `F.mse_loss(student(x), y)`.
fn is_computed(source: &Expr, target: &str) -> bool {
    struct Parts<'a> {
        target: &'a str,
        cut: bool,
    }
    impl<'a> Visitor<'a> for Parts<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.cut |= match expr {
                Expr::Name(name) => name.id == self.target,
                Expr::Attribute(attribute) => {
                    matches!(attribute.attr.as_str(), "detach" | "data" | "requires_grad_" | "item")
                }
                _ => false,
            };
            visitor::walk_expr(self, expr);
        }
    }
    let mut parts = Parts { target, cut: false };
    parts.visit_expr(source);
    source.is_call_expr() && !parts.cut
}

/// A container that was made just now.
fn is_empty_display(value: &Value, heap: &Heap) -> bool {
    let mut made = value.objects.iter();
    made.any(|object| heap.shape(object).is_container() && heap.get(object).elements.is_nothing())
}

/// Whether a place lies inside another.
pub(crate) fn within(inner: Location, outer: Location) -> bool {
    inner.file == outer.file && {
        let (inner, outer): (ruff_text_size::TextRange, ruff_text_size::TextRange) =
            (inner.range.into(), outer.range.into());
        outer.contains_range(inner)
    }
}
