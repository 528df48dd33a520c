//! Expressions.

use ruff_python_ast::{self as ast, Expr, Number, Operator};
use ruff_text_size::Ranged;

use crate::flow::event::Place;
use crate::flow::heap::Shape;
use crate::flow::ids::ObjectId;
use crate::flow::machine::Machine;
use crate::flow::machine::frame::Frame;
use crate::flow::machine::narrowing::without_asked;
use crate::flow::scopes::{Body, located};
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Literal, Traits, Value};
use crate::library::roles;

/// Longer texts are not told apart, in bytes.
const LONGEST_NAME: usize = 128;

/// Traits that what is computed from a value has, too.
const INHERITED: Traits = Traits::COUNTER
    .with(Traits::RESTARTS)
    .with(Traits::EPOCH)
    .with(Traits::TURN)
    .with(Traits::DRAWN)
    .with(Traits::UNIQUE)
    .with(Traits::FOLD)
    .with(Traits::DATA)
    .with(Traits::MEASURED)
    .with(Traits::FRAMES)
    .with(Traits::FRAME);

impl<'p> Machine<'p> {
    pub(crate) fn eval(&mut self, f: &mut Frame, expr: &'p Expr) -> Value {
        self.steps += 1;
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.eval_inner(f, expr))
    }

    fn eval_inner(&mut self, f: &mut Frame, expr: &'p Expr) -> Value {
        match expr {
            Expr::Name(name) => self.name(f, name),
            Expr::Attribute(attribute) => {
                let owner = self.eval(f, &attribute.value);
                self.hand_out(f, &owner, attribute);
                self.attribute(f, &owner, attribute)
            }
            Expr::Call(call) => self.call(f, call),
            Expr::Subscript(subscript) => self.subscript(f, subscript),
            Expr::FString(string) => self.formatted(f, string),
            Expr::List(list) => self.display(f, Shape::List, &list.elts, expr),
            Expr::Tuple(tuple) => self.display(f, Shape::Tuple, &tuple.elts, expr),
            Expr::Set(set) => self.display(f, Shape::Set, &set.elts, expr),
            Expr::Dict(dict) => self.dict(f, dict),
            Expr::BinOp(binary) => self.binary(f, binary),
            Expr::UnaryOp(unary) => {
                let mut value = self.eval(f, &unary.operand);
                if unary.op == ast::UnaryOp::Not {
                    return Value::of(Kinds::NUMBER);
                }
                value.literal = match (unary.op, value.literal) {
                    (ast::UnaryOp::USub, Literal::Int(int)) => Literal::Int(-int),
                    _ => Literal::Any,
                };
                value.without(Traits::VIEW.with(Traits::LEAF))
            }
            Expr::BoolOp(both) => {
                let values = both.values.iter().map(|value| self.eval(f, value));
                values.fold(Value::NOTHING, |joined, value| joined.join(&value))
            }
            Expr::Compare(compare) => self.compare(f, compare),
            Expr::If(choice) => {
                self.eval(f, &choice.test);
                let narrowed = self.narrow(f, &choice.test, true);
                let body = self.eval(f, &choice.body);
                f.widen(narrowed);
                let narrowed = self.narrow(f, &choice.test, false);
                let orelse = self.eval(f, &choice.orelse);
                f.widen(narrowed);
                body.join(&without_asked(&choice.test, &choice.orelse, orelse))
            }
            Expr::Lambda(lambda) => self.function_object(f, lambda).map_or(Value::UNKNOWN, Value::object),
            Expr::ListComp(comp) => self.comprehension(f, Shape::List, &comp.elt, &comp.generators, expr),
            Expr::SetComp(comp) => self.comprehension(f, Shape::Set, &comp.elt, &comp.generators, expr),
            Expr::Generator(comp) => {
                self.comprehension(f, Shape::Iterator, &comp.elt, &comp.generators, expr)
            }
            Expr::DictComp(comp) => self.dict_comprehension(f, comp),
            Expr::Named(named) => {
                let value = self.eval(f, &named.value);
                let value = self.named_role(f, &named.target, value, &named.value);
                self.assign(f, &named.target, value, false);
                value
            }
            Expr::Await(awaited) => self.eval(f, &awaited.value),
            Expr::Yield(yielded) => {
                let value = yielded.value.as_ref().map_or(Value::of(Kinds::NONE), |expr| self.eval(f, expr));
                f.yielded = f.yielded.join(&value);
                Value::UNKNOWN
            }
            Expr::YieldFrom(yielded) => {
                let value = self.eval(f, &yielded.value);
                let element = self.element_of(f, value);
                f.yielded = f.yielded.join(&element);
                Value::UNKNOWN
            }
            Expr::Starred(starred) => self.eval(f, &starred.value),
            Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::TString(_)
            | Expr::IpyEscapeCommand(_) => self.constant(expr),
            Expr::Slice(slice) => {
                let mut traits = Traits::NONE_OF_ALL;
                for part in slice.lower.iter().chain(&slice.upper).chain(&slice.step) {
                    traits = traits.with(self.eval(f, part).traits);
                }
                inherit(Value::of(Kinds::LIBRARY), traits)
            }
        }
    }

    fn constant(&mut self, expr: &Expr) -> Value {
        match expr {
            Expr::NumberLiteral(number) => {
                let literal = match &number.value {
                    Number::Int(int) => int.as_i64().map_or(Literal::Any, Literal::Int),
                    _ => Literal::Any,
                };
                Value { literal, ..Value::of(Kinds::NUMBER) }
            }
            Expr::BooleanLiteral(boolean) => {
                Value { literal: Literal::Bool(boolean.value), ..Value::of(Kinds::NUMBER) }
            }
            // A key or a name, no prose.
            Expr::StringLiteral(string) if string.value.len() <= LONGEST_NAME => {
                let symbol = self.symbols.at(&string.node_index, string.value.to_str());
                Value::text(symbol)
            }
            Expr::NoneLiteral(_) => Value::of(Kinds::NONE),
            Expr::EllipsisLiteral(_) => Value::of(Kinds::LIBRARY),
            _ => Value::of(Kinds::TEXT),
        }
    }

    fn compare(&mut self, f: &mut Frame, compare: &'p ast::ExprCompare) -> Value {
        let mut tensors = self.eval(f, &compare.left).kinds.has(Kinds::TENSOR);
        for (op, right) in compare.ops.iter().zip(&compare.comparators) {
            let right = self.eval(f, right);
            tensors |= right.kinds.has(Kinds::TENSOR);
            if matches!(op, ast::CmpOp::In | ast::CmpOp::NotIn) {
                right.objects.iter().for_each(|object| self.heap.set_looked_up(object));
            }
        }
        let of_identity = compare
            .ops
            .iter()
            .all(|op| matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn));
        Value::of(if tensors && !of_identity { Kinds::TENSOR } else { Kinds::NUMBER })
    }

    pub(super) fn name(&mut self, f: &mut Frame, name: &ast::ExprName) -> Value {
        let text = name.id.as_str();
        let symbol = self.symbols.at(&name.node_index, text);
        let definition = self.scopes.function(f.function);
        let is_module = matches!(definition.body, Body::Module(_));
        if let Some(&slot) = definition.slots.get(&symbol) {
            let mut value = f.slots[slot as usize];
            if definition.rebound.contains(&symbol)
                && let Some(shared) = f.variables.and_then(|owner| self.heap.field(owner, symbol))
            {
                value = value.join(&shared);
            }
            if value.is_nothing() && is_module {
                value = self.builtin(text);
            }
            return value;
        }
        let owner = self.outer_variables(f, symbol);
        if let Some(owner) = owner
            && let Some(mut value) = self.heap.field(owner, symbol)
        {
            if value.kinds.has(Kinds::TENSOR) && self.is_rebound_inside(owner, symbol) {
                let place = self.place(Place::Field(owner, symbol));
                value.carried.put(place);
            }
            return value;
        }
        self.builtin(text)
    }

    fn builtin(&mut self, name: &str) -> Value {
        if self.library.entry(name).is_some() && !name.contains('.') {
            let object = self.external(name);
            return Value::object(object);
        }
        if name.ends_with("Error") || name.ends_with("Exception") || name == "KeyboardInterrupt" {
            return Value::object(self.external("Exception"));
        }
        Value::UNKNOWN
    }

    fn display(&mut self, f: &mut Frame, shape: Shape, elements: &'p [Expr], expr: &Expr) -> Value {
        let object = match shape {
            Shape::Tuple => self.heap.part(shape, Some(located(f.file, expr)), f.maker, f.recording, f.call),
            _ => self.container(f, shape, expr),
        };
        let mut traits = Traits::NONE_OF_ALL;
        let mut carried = Value::NOTHING.carried;
        for (position, element) in elements.iter().enumerate() {
            let value = match element {
                Expr::Starred(starred) => {
                    let value = self.eval(f, &starred.value);
                    self.element_of(f, value)
                }
                plain => self.eval(f, plain),
            };
            traits = beside(traits, value.traits);
            carried.extend(&value.carried);
            self.heap.add_element(object, value);
            if shape == Shape::Tuple {
                let name = self.position(position);
                self.heap.set_field(object, name, value);
            }
        }
        if shape != Shape::Tuple {
            return Value::object(object);
        }
        // A tuple as a key is as unique as what is in it, and state as what it is made from.
        Value { carried, ..inherit(Value::object(object), traits) }
    }

    /// Whether functions inside bind a variable: only then may they make it from what it held.
    fn is_rebound_inside(&self, owner: ObjectId, symbol: Symbol) -> bool {
        let function = match self.heap.shape(owner) {
            Shape::Variables(function, _) => function,
            Shape::Module(file) => self.scopes.modules[file.0 as usize],
            _ => return true,
        };
        self.scopes.function(function).rebound.contains(&symbol)
    }

    /// A tensor, or a tuple of them: `(hidden, cell)`.
    pub(super) fn is_state(&self, value: &Value) -> bool {
        let tuple = |object| {
            self.heap.shape(object) == Shape::Tuple && self.heap.get(object).elements.kinds.has(Kinds::TENSOR)
        };
        value.kinds.has(Kinds::TENSOR) || value.objects.iter().any(tuple)
    }

    fn dict(&mut self, f: &mut Frame, dict: &'p ast::ExprDict) -> Value {
        let object = self.container(f, Shape::Dict, dict);
        for item in &dict.items {
            let value = self.eval(f, &item.value);
            match &item.key {
                Some(key) => {
                    let key = self.eval(f, key);
                    self.put(object, key, value);
                }
                // `**other`.
                None => self.put_all(object, &value),
            }
        }
        Value::object(object)
    }

    fn comprehension(
        &mut self,
        f: &mut Frame,
        shape: Shape,
        element: &'p Expr,
        generators: &'p [ast::Comprehension],
        expr: &Expr,
    ) -> Value {
        let object = self.container(f, shape, expr);
        let mut made = Value::NOTHING;
        self.comprehend(f, generators, &mut |machine, f| {
            made = machine.eval(f, element);
            machine.heap.add_element(object, made);
        });
        self.of_all_frames(f, Value::object(object), &made, element, generators)
    }

    fn dict_comprehension(&mut self, f: &mut Frame, comp: &'p ast::ExprDictComp) -> Value {
        let dict = self.container(f, Shape::Dict, comp);
        self.comprehend(f, &comp.generators, &mut |machine, f| {
            if let Some(key) = &comp.key {
                let key = machine.eval(f, key);
                machine.heap.add_key(dict, key);
            }
            let value = machine.eval(f, &comp.value);
            machine.heap.add_element(dict, value);
        });
        Value::object(dict)
    }

    fn binary(&mut self, f: &mut Frame, binary: &'p ast::ExprBinOp) -> Value {
        let left = self.eval(f, &binary.left);
        let right = self.eval(f, &binary.right);
        let joins = |object: &ObjectId| match binary.op {
            Operator::Add => matches!(self.heap.shape(*object), Shape::List | Shape::Tuple),
            Operator::BitOr => matches!(self.heap.shape(*object), Shape::Dict | Shape::Set),
            _ => false,
        };
        let parts: Vec<ObjectId> = left.objects.iter().chain(right.objects.iter()).filter(joins).collect();
        if let Some(repeated) = self.repeated(f, &left, &right, binary) {
            return repeated;
        }
        if let Some(first) = parts.first() {
            let shape = if binary.op == Operator::Add { Shape::List } else { self.heap.shape(*first) };
            let joined = self.container(f, shape, binary);
            for part in parts {
                let elements = self.heap.get(part).elements;
                self.heap.add_element(joined, elements);
            }
            return Value::object(joined);
        }
        if binary.op == Operator::Add
            && let Some(text) = self.joined_text(left.literal, right.literal)
        {
            return Value::text(text);
        }
        let result = self.arithmetic(f, &left, &right, binary);
        // What is not known may be a text, with `%` behind it.
        let number = left.kinds.has(Kinds::NUMBER) && !left.kinds.has(Kinds::TEXT);
        if binary.op == Operator::Mod && number {
            return result.without(Traits::ONGOING);
        }
        let sides = [(&*binary.left, &left, &right), (&*binary.right, &right, &left)];
        if binary.op == Operator::Add
            && sides.into_iter().any(|(side, of, other)| comes_back(side, of, other))
        {
            return result.without(Traits::TURN);
        }
        if binary.op == Operator::MatMult { result.fed() } else { result }
    }

    /// An f-string: a constant, if all its parts are.
    fn formatted(&mut self, f: &mut Frame, string: &'p ast::ExprFString) -> Value {
        let mut traits = Traits::NONE_OF_ALL;
        let mut whole = Some(self.symbols.intern(""));
        for element in string.value.elements() {
            let part = match element {
                ast::InterpolatedStringElement::Interpolation(part) => {
                    let value = self.eval(f, &part.expression);
                    traits = beside(traits, value.traits);
                    let plain = part.format_spec.is_none() && part.conversion.is_none();
                    if plain { value.literal } else { Literal::Any }
                }
                ast::InterpolatedStringElement::Literal(text) => {
                    Literal::Text(self.symbols.intern(&text.value))
                }
            };
            whole = whole.and_then(|whole| self.joined_text(Literal::Text(whole), part));
        }
        whole.map_or_else(|| inherit(Value::of(Kinds::TEXT), traits), Value::text)
    }

    /// Two constant texts one after the other: `"on_" + event`.
    fn joined_text(&mut self, first: Literal, second: Literal) -> Option<Symbol> {
        let (Literal::Text(first), Literal::Text(second)) = (first, second) else { return None };
        let joined = [self.symbols.name(first), self.symbols.name(second)].concat();
        (joined.len() <= LONGEST_NAME).then(|| self.symbols.intern(&joined))
    }

    /// `[0] * 8`: another list with the same elements.
    fn repeated(
        &mut self,
        f: &mut Frame,
        left: &Value,
        right: &Value,
        binary: &ast::ExprBinOp,
    ) -> Option<Value> {
        let mut both = left.objects.iter().chain(right.objects.iter());
        let list = both.find(|object| self.heap.shape(*object) == Shape::List)?;
        (binary.op == Operator::Mult).then(|| {
            let elements = self.heap.get(list).elements;
            let made = self.container(f, Shape::List, binary);
            self.heap.add_element(made, elements);
            Value::object(made)
        })
    }

    /// Arithmetic with two values: a tensor where one is, with the graph of either.
    pub(crate) fn arithmetic(&mut self, f: &Frame, left: &Value, right: &Value, node: &impl Ranged) -> Value {
        let inherited = left.traits.with(right.traits);
        if left.kinds.has(Kinds::TENSOR) || right.kinds.has(Kinds::TENSOR) {
            let (tensor, other) = if left.kinds.has(Kinds::TENSOR) { (left, right) } else { (right, left) };
            let one = |value: &Value| value.only(Kinds::NUMBER) || value.traits.has(Traits::SCALAR);
            let result = self.differentiable(f, &[*tensor, *other], node);
            return if one(left) && one(right) { result.with(Traits::SCALAR) } else { result };
        }
        if left.kinds.has(Kinds::ARRAY) || right.kinds.has(Kinds::ARRAY) {
            // What may be a number still may be one beside a number.
            let number = |value: &Value| value.kinds.has(Kinds::NUMBER.with(Kinds::UNKNOWN));
            let array = Value::of(Kinds::ARRAY);
            let array = if number(left) && number(right) { array.or(Kinds::NUMBER) } else { array };
            return inherit(array, inherited);
        }
        if left.kinds.has(Kinds::TEXT) {
            return inherit(Value::of(Kinds::TEXT), inherited);
        }
        if left.kinds.has(Kinds::TABLE) || right.kinds.has(Kinds::TABLE) {
            return Value::of(Kinds::TABLE);
        }
        if left.kinds.has(Kinds::UNKNOWN) || right.kinds.has(Kinds::UNKNOWN) {
            return inherit(Value::UNKNOWN, inherited);
        }
        inherit(Value::of(Kinds::NUMBER), inherited)
    }

    /// A tensor computed from others: with their graphs where graphs are recorded, in memory of its own.
    pub(crate) fn differentiable(&mut self, f: &Frame, inputs: &[Value], node: &impl Ranged) -> Value {
        let mut result = Value::of(Kinds::TENSOR);
        for input in inputs {
            let lost = Traits::VIEW
                .with(Traits::OF_VIDEO)
                .with(Traits::DEVICE)
                .with(Traits::PIECES)
                .with(Traits::FLAT)
                .with(Traits::SCALAR);
            let kept = input.traits.without(lost);
            result.traits = result.traits.with(kept);
            result.carried.extend(&input.carried);
            if input.kinds.has(Kinds::TENSOR) && result.origin.is_none() {
                result.origin = input.origin;
            }
        }
        if !f.recording {
            return result.detached();
        }
        if result.traits.has(Traits::LEAF) {
            result = result.without(Traits::LEAF).with(Traits::GRAPH.with(Traits::PROVED));
        }
        if result.carries_graph() && result.origin.is_none() {
            result.origin = Some(self.origin(located(f.file, node)));
        }
        result
    }
}

/// What matters about several values together, as a key: a step that starts again is another one beside its epoch.
pub(crate) fn beside(known: Traits, more: Traits) -> Traits {
    let goes_on = |traits: Traits| traits.has(Traits::COUNTER) && !traits.has(Traits::RESTARTS);
    let both = known.with(more);
    if goes_on(known) || goes_on(more) { both.without(Traits::RESTARTS) } else { both }
}

/// With what is inherited of some traits.
pub(crate) fn inherit(value: Value, traits: Traits) -> Value {
    let lost = traits.without(INHERITED);
    value.with(traits.without(lost))
}

/// The number of an epoch, to which that of a turn is added: `epoch + number` comes back, `epoch * many + number` does not.
fn comes_back(epoch: &Expr, value: &Value, other: &Value) -> bool {
    epoch.as_name_expr().is_some_and(|name| roles::is_epoch(&name.id))
        && value.traits.has(Traits::EPOCH)
        && !value.traits.has(Traits::TURN)
        && other.traits.has(Traits::TURN)
        && !other.traits.has(Traits::EPOCH)
}
