//! Calls: of the project's functions and classes, of what libraries have, of what only a name tells.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use crate::flow::event::{Growth, Guards, Place, Release, What};
use crate::flow::heap::Shape;
use crate::flow::ids::{ClassId, FunctionId, ObjectId};
use crate::flow::machine::Machine;
use crate::flow::machine::attributes::MethodKind;
use crate::flow::machine::entry::Entry;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::located;
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Literal, Value};
use crate::library::roles;

/// What is passed by name.
pub(crate) type Named = Vec<(Symbol, Value)>;

/// A place for calls that no expression makes.
pub(crate) struct AtStatement(pub(crate) TextRange);

impl Ranged for AtStatement {
    fn range(&self) -> TextRange {
        self.0
    }
}

/// Arguments as they were evaluated.
pub(super) struct Given {
    pub(super) positional: Vec<Value>,
    pub(super) named: Named,
}

impl Given {
    pub(super) fn all(&self) -> impl Iterator<Item = &Value> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value))
    }

    pub(super) fn first(&self) -> Value {
        self.positional.first().copied().unwrap_or(Value::NOTHING)
    }
}

impl<'p> Machine<'p> {
    pub(crate) fn call(&mut self, f: &mut Frame, call: &'p ast::ExprCall) -> Value {
        let (receiver, callee) = match &*call.func {
            Expr::Attribute(attribute) => {
                let receiver = self.eval(f, &attribute.value);
                let callee = self.attribute(f, &receiver, attribute);
                (Some((receiver, attribute)), callee)
            }
            other => {
                let callee = self.eval(f, other);
                (None, callee)
            }
        };
        let outer = f.guards;
        if receiver.is_some_and(|(_, attribute)| attribute.attr.as_str() == "setdefault") {
            // What it is given stays where nothing was there before.
            f.guards = outer.with(Guards::MISSING);
        }
        let given = self.arguments(f, call);
        f.guards = outer;
        if let Some(special) = self.special(f, call, &callee, &given) {
            return special;
        }
        let mut found = Value::NOTHING;
        let mut followed = false;
        if let Some((receiver, attribute)) = &receiver
            && let (true, Expr::Attribute(held)) = (receiver.objects.is_empty(), &*attribute.value)
            && matches!(attribute.attr.as_str(), "clear" | "pop" | "popleft")
        {
            // Of `self` it is known whose attribute that is.
            let known = held.value.is_name_expr() && !self.eval(f, &held.value).objects.is_empty();
            if !known {
                let name = self.symbols.at(&held.attr.node_index, held.attr.as_str());
                self.emptied.insert(name);
            }
        }
        if let Some((receiver, attribute)) = &receiver
            && let Some(value) = self.call_of_type(receiver, attribute)
        {
            followed = true;
            found = found.join(&value);
        }
        for object in callee.objects.iter() {
            if let Some(value) = self.call_object(f, object, &given, call, &callee) {
                followed = true;
                found = found.join(&value);
            }
        }
        if let Some((receiver, attribute)) = &receiver
            && let Some(value) = self.method_of_kind(f, receiver, attribute, &given, call, followed)
        {
            followed = true;
            found = found.join(&value);
        }
        let is_part =
            |(_, method): &(Value, &ast::ExprAttribute)| !roles::no_module_has(method.attr.as_str());
        if callee.kinds.has(Kinds::MODULE.with(Kinds::CRITERION))
            && callee.objects.is_empty()
            && receiver.as_ref().is_none_or(is_part)
        {
            followed = true;
            let value = self.predict(f, &callee, &given, call, true);
            found = found.join(&value);
        }
        if !followed
            && let Some((receiver, attribute)) = &receiver
            && let Some(value) = self.call_only_method(f, receiver, attribute, &given, call)
        {
            followed = true;
            found = value;
        }
        if !followed {
            found = self.call_by_name(f, call, &given);
        }
        found
    }

    /// A method of an object nobody knows, where only one class of the project has a method of that name and no library
    /// is known to: `tracker.observe_batch(x)` in a function that is given the tracker.
    fn call_only_method(
        &mut self,
        f: &mut Frame,
        receiver: &Value,
        attribute: &'p ast::ExprAttribute,
        given: &Given,
        call: &'p ast::ExprCall,
    ) -> Option<Value> {
        let name = attribute.attr.as_str();
        let unknown = receiver.objects.is_empty() && receiver.only(Kinds::UNKNOWN);
        if !unknown {
            return None;
        }
        let (class, function) = self.scopes.only_method(self.symbols.find(name)?)?;
        let plain = self.method_kind(function) == MethodKind::Plain;
        if !plain || self.library.has_name(name) || !self.is_handed_in(f, &attribute.value) {
            return None;
        }
        let anybody = self.anybody(class);
        let function = self.heap.unique(Shape::Function(function, None));
        Some(self.call_function(f, function, Some(anybody), &given.positional, &given.named, call))
    }

    /// Whether something comes from outside of a function: a parameter, an attribute of one. What the function makes
    /// itself, in a way that is not understood, may be new in each turn of its loops.
    fn is_handed_in(&self, f: &Frame, expr: &Expr) -> bool {
        match expr {
            Expr::Name(name) => {
                let mut at = Some(f.function);
                while let Some(function) = at {
                    let definition = self.scopes.function(function);
                    if definition.parameters().is_some_and(|parameters| parameters.includes(&name.id)) {
                        return true;
                    }
                    at = definition.parent;
                }
                false
            }
            Expr::Attribute(attribute) => self.is_handed_in(f, &attribute.value),
            _ => false,
        }
    }

    pub(super) fn arguments(&mut self, f: &mut Frame, call: &'p ast::ExprCall) -> Given {
        let mut positional = Vec::with_capacity(call.arguments.args.len());
        for argument in &call.arguments.args {
            match argument {
                Expr::Starred(starred) => {
                    let value = self.eval(f, &starred.value);
                    let tuple = value.objects.iter().find(|object| self.heap.shape(*object) == Shape::Tuple);
                    let width = tuple.map_or(1, |tuple| self.heap.get(tuple).fields.len().clamp(1, 16));
                    for position in 0..width {
                        let part = self.part_of(f, value, position);
                        positional.push(part);
                    }
                }
                plain => {
                    let value = self.eval(f, plain);
                    positional.push(value);
                }
            }
        }
        let mut named = Vec::new();
        for keyword in &call.arguments.keywords {
            let value = self.eval(f, &keyword.value);
            match &keyword.arg {
                Some(name) => named.push((self.symbols.at(&name.node_index, name.as_str()), value)),
                None => {
                    for object in value.objects.iter() {
                        named
                            .extend(self.heap.get(object).fields.iter().map(|(name, value)| (*name, *value)));
                    }
                }
            }
        }
        Given { positional, named }
    }

    /// The name that `getattr` or `setattr` is given; one name stands for all that are computed.
    fn attribute_named(&self, given: &Given) -> Option<Symbol> {
        Some(match given.positional.get(1)?.literal {
            Literal::Text(name) => name,
            _ => self.names.any,
        })
    }

    /// Calls whose meaning is the interpreter's own.
    pub(super) fn special(
        &mut self,
        f: &mut Frame,
        call: &'p ast::ExprCall,
        callee: &Value,
        given: &Given,
    ) -> Option<Value> {
        let name = callee.objects.iter().find_map(|object| match self.heap.shape(object) {
            Shape::External(symbol) => Some(self.symbols.name(symbol).to_owned()),
            _ => None,
        })?;
        match name.as_str() {
            "super" => {
                let class = self.enclosing_class(f.function)?;
                let receiver = f.receiver?;
                Some(Value::object(self.heap.unique(Shape::Super(class, receiver))))
            }
            "getattr" => {
                let attribute = self.attribute_named(given)?;
                let mut found = given.positional.get(2).copied().unwrap_or(Value::NOTHING);
                for object in given.first().objects.iter() {
                    if self.heap.shape(object).is_container() {
                        let method = self.heap.unique(Shape::BuiltIn(object, attribute));
                        found = found.join(&Value::object(method));
                        continue;
                    }
                    let known = self.heap.field(object, attribute);
                    if let Some(value) = known.or_else(|| self.method_of(object, attribute)) {
                        found = found.join(&value);
                    }
                }
                if attribute == self.names.any
                    && let Some(prefix) = call.arguments.args.get(1).and_then(constant_beginning)
                {
                    let methods =
                        given.first().objects.iter().filter_map(|object| self.any_method(object, prefix));
                    found = methods.fold(found, |found, method| found.join(&Value::object(method)));
                }
                let all = !found.is_nothing() && attribute != self.names.any;
                Some(if all { found } else { found.join(&Value::UNKNOWN) })
            }
            "heapq.heappush" => {
                let (heap, item) = (given.first(), call.arguments.args.get(1));
                let value = given.positional.get(1).copied()?;
                for object in heap.objects.iter() {
                    let entry = Entry { value, key: Value::NOTHING, stored: item };
                    self.grow(f, object, Growth::Append, entry, call.arguments.args.first()?);
                }
                Some(Value::of(Kinds::NONE))
            }
            "heapq.heappop" => {
                let at = located(f.file, call);
                let elements = given.first().objects.iter().map(|object| {
                    f.event(What::Release { object, how: Release::Remove }, at);
                    self.heap.get(object).elements
                });
                Some(elements.fold(Value::UNKNOWN, |joined, value| joined.join(&value)))
            }
            "setattr" => {
                let name = self.attribute_named(given)?;
                let value = *given.positional.get(2)?;
                for object in given.first().objects.iter() {
                    if name == self.names.any {
                        self.release_any_field(f, object, &value, call);
                    }
                    self.relink(f, call, Place::Field(object, name), &value);
                    self.bind_field(f, object, name, value, false, call);
                }
                Some(Value::of(Kinds::NONE))
            }
            "functools.partial" => {
                let first = given.first();
                let mut made = Value::NOTHING;
                for function in first.objects.iter() {
                    let partial =
                        self.heap.object(Shape::Partial(function), Some(located(f.file, call)), f.maker);
                    for (position, value) in given.positional.iter().skip(1).enumerate() {
                        let name = self.position(position);
                        self.heap.set_field(partial, name, *value);
                        self.heap.add_element(partial, *value);
                    }
                    for (name, value) in &given.named {
                        self.heap.set_field(partial, *name, *value);
                        self.heap.add_element(partial, *value);
                    }
                    made = made.join(&Value::object(partial));
                }
                Some(if made.is_nothing() { Value::UNKNOWN } else { made })
            }
            // They name a function, and call nothing.
            "functools.wraps" => Some(Value::of(Kinds::LIBRARY)),
            "functools.update_wrapper" => Some(given.first()),
            "torch.set_grad_enabled" => {
                if let Literal::Bool(on) = given.first().literal {
                    f.recording = on;
                }
                Some(Value::of(Kinds::LIBRARY))
            }
            "vars" | "globals" | "locals" => Some(Value::UNKNOWN),
            _ => None,
        }
    }

    /// A method of an object, by its name: `getattr(callback, "on_batch_end")`.
    fn method_of(&mut self, object: ObjectId, name: Symbol) -> Option<Value> {
        let Shape::Instance(class) = self.heap.shape(object) else { return None };
        let mut found = None::<Value>;
        for function in self.class_member(class, name)?.objects.iter() {
            let Shape::Function(id, _) = self.heap.shape(function) else { continue };
            if self.method_kind(id) == MethodKind::Plain {
                let method = Value::object(self.heap.unique(Shape::Method(function, object)));
                found = Some(found.map_or(method, |known| known.join(&method)));
            }
        }
        found
    }

    pub(crate) fn enclosing_class(&self, mut function: FunctionId) -> Option<ClassId> {
        loop {
            let definition = self.scopes.function(function);
            if let Some(class) = definition.class {
                return Some(class);
            }
            function = definition.parent?;
        }
    }

    /// Calls an object that the project or a library defines; `None` for what is not called so.
    pub(super) fn call_object(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        given: &Given,
        call: &'p ast::ExprCall,
        callee: &Value,
    ) -> Option<Value> {
        match self.heap.shape(object) {
            Shape::Function(..) => {
                Some(self.call_function(f, object, None, &given.positional, &given.named, call))
            }
            Shape::Method(function, receiver) => {
                Some(self.call_function(f, function, Some(receiver), &given.positional, &given.named, call))
            }
            Shape::BuiltIn(container, name) => {
                self.container_method(f, container, name, &given.positional, call)
            }
            Shape::Class(class) => {
                let made = self.instantiate(f, class, given, call);
                self.call_metaclass(f, class, object, made, given, call);
                Some(made)
            }
            Shape::Instance(class) => {
                let name = if self.is_module_class(class) { self.names.forward } else { self.names.call };
                let member = self.class_member(class, name);
                if name == self.names.forward {
                    let inner = member
                        .map(|_| {
                            self.call_method_named(f, object, name, &given.positional, &given.named, call)
                        })
                        .and_then(|value| value);
                    let mut model = *callee;
                    model.kinds = model.kinds.with(Kinds::MODULE);
                    f.event(What::Forward, located(f.file, call));
                    let told = inner.filter(|value| !value.kinds.has(Kinds::UNKNOWN) && !value.is_nothing());
                    return Some(match told {
                        Some(value) => self.made_here(f, value, call),
                        None => self.predict(f, &model, given, call, true).join(&known_part(inner)),
                    });
                }
                member?;
                self.call_method_named(f, object, name, &given.positional, &given.named, call)
            }
            Shape::Partial(function) => {
                let known = self.heap.get(object).fields.clone();
                let mut positional = Vec::new();
                while let Some(value) = {
                    let name = self.position(positional.len());
                    known.get(name)
                } {
                    positional.push(*value);
                }
                positional.extend(&given.positional);
                let mut named = given.named.clone();
                named.extend(
                    known
                        .iter()
                        .filter(|(name, _)| {
                            !self.symbols.name(**name).starts_with(|c: char| c.is_ascii_digit())
                        })
                        .map(|(name, value)| (*name, *value)),
                );
                let inner = Given { positional, named };
                self.call_object(f, function, &inner, call, callee)
            }
            Shape::External(symbol) => Some(self.call_library(f, symbol, given, call)),
            _ => None,
        }
    }

    /// The graph of what comes out of a model is told from the call, not from inside the model.
    pub(super) fn made_here(&mut self, f: &Frame, mut value: Value, call: &ast::ExprCall) -> Value {
        if value.carries_graph() {
            value.origin = Some(self.origin(located(f.file, call)));
        }
        value
    }
}

/// What is known of a result of which a part is not.
fn known_part(value: Option<Value>) -> Value {
    let mut value = value.unwrap_or(Value::NOTHING);
    value.kinds = value.kinds.without(Kinds::UNKNOWN.with(Kinds::NONE));
    value
}

/// The constant beginning of a text: `"on_" + event`, `f"on_{event}"`.
pub(crate) fn constant_beginning(text: &Expr) -> Option<&str> {
    match text {
        Expr::BinOp(binary) if binary.op == ast::Operator::Add => match &*binary.left {
            Expr::StringLiteral(first) => Some(first.value.to_str()),
            left => constant_beginning(left),
        },
        Expr::FString(string) => match string.value.elements().next()? {
            ast::InterpolatedStringElement::Literal(first) => Some(&first.value),
            ast::InterpolatedStringElement::Interpolation(_) => None,
        },
        _ => None,
    }
}
