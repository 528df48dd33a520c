//! Calls: of the project's functions and classes, of what libraries have, of what only a name tells.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use crate::flow::event::What;
use crate::flow::heap::{Maker, ObjectId, Shape};
use crate::flow::machine::attributes::MethodKind;
use crate::flow::machine::expressions::inherit;
use crate::flow::machine::frame::Frame;
use crate::flow::machine::{Machine, last_name};
use crate::flow::scopes::{ClassId, FunctionId, located};
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Literal, Traits, Value};
use crate::library::{Gives, roles};

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
struct Given {
    positional: Vec<Value>,
    named: Named,
}

impl Given {
    fn all(&self) -> impl Iterator<Item = &Value> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value))
    }

    fn first(&self) -> Value {
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
            other => (None, self.eval(f, other)),
        };
        let given = self.arguments(f, call);
        if let Some(special) = self.special(f, call, &callee, &given) {
            return special;
        }
        let mut found = Value::NOTHING;
        let mut followed = false;
        if let Some((receiver, attribute)) = &receiver {
            for object in receiver.objects.iter() {
                let shape = self.heap.shape(object);
                let container = shape.is_container() || matches!(shape, Shape::Tuple | Shape::Iterator);
                if container
                    && let Some(value) =
                        self.container_method(f, object, attribute.attr.as_str(), &given.positional, call)
                {
                    followed = true;
                    found = found.join(&value);
                }
            }
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
        if callee.kinds.has(Kinds::MODULE) && callee.objects.is_empty() {
            followed = true;
            let value = self.predict(f, &callee, &given, call, true);
            found = found.join(&value);
        }
        if !followed {
            found = self.call_by_name(f, call, &given);
        }
        found
    }

    fn arguments(&mut self, f: &mut Frame, call: &'p ast::ExprCall) -> Given {
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
                Some(name) => named.push((self.symbols.intern(name.as_str()), value)),
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

    /// Calls whose meaning is the interpreter's own.
    fn special(
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
                let Literal::Text(attribute) = given.positional.get(1)?.literal else { return None };
                let mut found = given.positional.get(2).copied().unwrap_or(Value::NOTHING);
                for object in given.first().objects.iter() {
                    if let Some(value) = self.heap.field(object, attribute) {
                        found = found.join(&value);
                    }
                }
                Some(if found.is_nothing() { Value::UNKNOWN } else { found })
            }
            "setattr" => {
                let Literal::Text(attribute) = given.positional.get(1)?.literal else { return None };
                let value = *given.positional.get(2)?;
                for object in given.first().objects.iter() {
                    self.bind_field(f, object, attribute, value, false, &Expr::Call(call.clone()));
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
    fn call_object(
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
            Shape::Class(class) => Some(self.instantiate(f, class, given, call)),
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
                    f.event(What::Forward { model }, located(f.file, call));
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
                    known.get(&name)
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
    fn made_here(&mut self, f: &Frame, mut value: Value, call: &ast::ExprCall) -> Value {
        if value.carries_graph() {
            value.origin = Some(self.origin(located(f.file, call)));
        }
        value
    }

    /// Calls a method of an object of the project by name.
    pub(crate) fn call_method(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: Symbol,
        arguments: &[Value],
        node: &impl Ranged,
    ) -> Option<Value> {
        self.call_method_named(f, object, name, arguments, &[], node)
    }

    fn call_method_named(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: Symbol,
        arguments: &[Value],
        named: &[(Symbol, Value)],
        node: &impl Ranged,
    ) -> Option<Value> {
        let Shape::Instance(class) = self.heap.shape(object) else { return None };
        let member = self.class_member(class, name)?;
        let mut found = None::<Value>;
        for function in member.objects.iter() {
            if let Shape::Function(id, _) = self.heap.shape(function) {
                let receiver = (self.method_kind(id) != MethodKind::Static).then_some(object);
                let result = self.call_function(f, function, receiver, arguments, named, node);
                found = Some(found.map_or(result, |value| value.join(&result)));
            }
        }
        found
    }

    /// Calls a function of the project, and puts down that it was called here.
    pub(crate) fn call_function(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        receiver: Option<ObjectId>,
        arguments: &[Value],
        named: &[(Symbol, Value)],
        node: &impl Ranged,
    ) -> Value {
        let Shape::Function(function, closure) = self.heap.shape(object) else { return Value::UNKNOWN };
        let at = located(f.file, node);
        let receiver = receiver.map(|receiver| match self.method_kind(function) {
            MethodKind::Class => match self.heap.shape(receiver) {
                Shape::Instance(class) => self.class_object(class),
                _ => receiver,
            },
            _ => receiver,
        });
        let given = self.parameters(object, function, receiver, arguments, named);
        let maker = receiver.map_or(Maker::Caller(at), Maker::Receiver);
        let Some(id) = self.activate(function, closure, maker, receiver, given, f.recording, None) else {
            return Value::UNKNOWN;
        };
        f.event(What::Call(id), at);
        let result = self.activations[id.0 as usize].result;
        // A call of itself that is still under way.
        if result.is_nothing() { Value::UNKNOWN } else { result }
    }

    /// Values for the parameters of a function, in their order.
    pub(crate) fn parameters(
        &mut self,
        object: ObjectId,
        function: FunctionId,
        receiver: Option<ObjectId>,
        arguments: &[Value],
        named: &[(Symbol, Value)],
    ) -> Vec<Value> {
        let Some(parameters) = self.scopes.function(function).parameters() else { return Vec::new() };
        let file = self.scopes.function(function).file;
        let mut positional = receiver.map(Value::object).into_iter().chain(arguments.iter().copied());
        let mut given = Vec::new();
        let mut extra = Value::NOTHING;
        for parameter in parameters.iter() {
            let name = self.symbols.intern(parameter.name().as_str());
            let by_name = named.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            let value = if parameter.is_variadic() {
                let is_args =
                    parameters.vararg.as_ref().is_some_and(|vararg| vararg.name == *parameter.name());
                let shape = if is_args { Shape::Tuple } else { Shape::Dict };
                let rest =
                    self.heap.object(shape, Some(located(file, parameter.name())), Maker::Receiver(object));
                if is_args {
                    for (position, value) in positional.by_ref().enumerate() {
                        let slot = self.position(position);
                        self.heap.set_field(rest, slot, value);
                        self.heap.add_element(rest, value);
                    }
                } else {
                    for (name, value) in named {
                        self.heap.set_field(rest, *name, *value);
                        extra = extra.join(value);
                    }
                    self.heap.add_element(rest, extra);
                }
                Value::object(rest)
            } else {
                let keyword_only =
                    parameters.kwonlyargs.iter().any(|only| only.parameter.name == *parameter.name());
                let by_position = if keyword_only { None } else { positional.next() };
                let default = || self.heap.field(object, name);
                by_position.or(by_name).or_else(default).unwrap_or(Value::UNKNOWN)
            };
            given.push(value);
        }
        given
    }

    /// Makes an object of a class of the project.
    fn instantiate(
        &mut self,
        f: &mut Frame,
        class: ClassId,
        given: &Given,
        call: &'p ast::ExprCall,
    ) -> Value {
        let at = located(f.file, call);
        let object = self.heap.object(Shape::Instance(class), Some(at), f.maker);
        f.event(What::Birth(object), at);
        let mut value = Value::object(object);
        if self.is_module_class(class) {
            value.kinds = value.kinds.with(Kinds::MODULE);
        }
        for (kind, base) in [
            (Kinds::OPTIMIZER, "torch.optim.Optimizer"),
            (Kinds::THREAD, "threading.Thread"),
            (Kinds::EXCEPTION, "Exception"),
        ] {
            if self.derives(class, |name| name == base) {
                value.kinds = value.kinds.with(kind);
            }
        }
        if self.class_member(class, self.names.init).is_some() {
            self.call_method_named(f, object, self.names.init, &given.positional, &given.named, call);
        } else {
            self.fill_fields(class, object, given);
        }
        value
    }

    /// What a dataclass or named tuple does with its arguments.
    fn fill_fields(&mut self, class: ClassId, object: ObjectId, given: &Given) {
        let body = &self.scopes.class(class).definition.body;
        let names: Vec<&str> = body
            .iter()
            .filter_map(|stmt| match stmt {
                ast::Stmt::AnnAssign(field) => match &*field.target {
                    Expr::Name(name) => Some(name.id.as_str()),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        for (name, value) in names.iter().zip(&given.positional) {
            let name = self.symbols.intern(name);
            self.heap.set_field(object, name, *value);
        }
        for (name, value) in &given.named {
            self.heap.set_field(object, *name, *value);
        }
    }

    /// Notes a call that rules ask for.
    pub(crate) fn library_event(
        &mut self,
        f: &mut Frame,
        name: &str,
        receiver: Value,
        argument: Value,
        result: Value,
        node: &impl Ranged,
    ) {
        let name = self.symbols.intern(name);
        f.event(What::Library { name, receiver, argument, result }, located(f.file, node));
    }

    fn call_library(
        &mut self,
        f: &mut Frame,
        symbol: Symbol,
        given: &Given,
        call: &'p ast::ExprCall,
    ) -> Value {
        let name = self.symbols.name(symbol).to_owned();
        self.hand_over(given);
        let Some(entry) = self.library.entry(&name) else {
            // A library that nobody told us of.
            return self.unknown_result(given);
        };
        let result = self.result(f, entry.gives, &Value::NOTHING, given, &name, call);
        if entry.noted {
            self.library_event(f, &name, Value::NOTHING, given.first(), result, call);
        }
        result
    }

    fn unknown_result(&self, given: &Given) -> Value {
        let traits = given.all().fold(Traits::NONE_OF_ALL, |traits, value| traits.with(value.traits));
        inherit(Value::UNKNOWN, traits)
    }

    /// A method by the kind of its receiver; `None` where nothing is known of it.
    fn method_of_kind(
        &mut self,
        f: &mut Frame,
        receiver: &Value,
        attribute: &'p ast::ExprAttribute,
        given: &Given,
        call: &'p ast::ExprCall,
        followed: bool,
    ) -> Option<Value> {
        const CLASSES: &[(Kinds, &str)] = &[
            (Kinds::TENSOR, "torch.Tensor"),
            (Kinds::ARRAY, "numpy.ndarray"),
            (Kinds::MODULE, "torch.nn.Module"),
            (Kinds::OPTIMIZER, "torch.optim.Optimizer"),
            (Kinds::FIGURE, "matplotlib.figure.Figure"),
            (Kinds::AXES, "matplotlib.axes.Axes"),
            (Kinds::TABLE, "pandas.DataFrame"),
            (Kinds::DISTRIBUTION, "torch.distributions.Distribution"),
            (Kinds::TEXT, "str"),
            (Kinds::NUMBER, "int"),
            (Kinds::HANDLE, "torch.utils.hooks.RemovableHandle"),
            (Kinds::FILE, "io.IOBase"),
            (Kinds::THREAD, "threading.Thread"),
            (Kinds::PROCESS, "multiprocessing.Process"),
            (Kinds::VIDEO, "cv2.VideoCapture"),
            (Kinds::SHARED_MEMORY, "multiprocessing.shared_memory.SharedMemory"),
        ];
        let method = attribute.attr.as_str();
        let mut classes: Vec<String> = CLASSES
            .iter()
            .filter(|(kind, _)| receiver.kinds.has(*kind))
            .map(|(_, class)| (*class).to_owned())
            .collect();
        for object in receiver.objects.iter() {
            if let Shape::Foreign(class) = self.heap.shape(object) {
                classes.push(self.symbols.name(class).to_owned());
            }
        }
        let unknown = classes.is_empty() && !followed;
        if unknown {
            classes.extend(self.class_by_name(receiver, attribute, given).map(str::to_owned));
        }
        let mut found = None::<Value>;
        for class in classes {
            // A method of the project's own subclass comes first.
            if followed && class == "torch.nn.Module" {
                continue;
            }
            let name = format!("{class}.{method}");
            let Some(entry) = self.library.entry(&name) else { continue };
            let result = self.result(f, entry.gives, receiver, given, &name, call);
            if entry.noted {
                self.library_event(f, &name, *receiver, given.first(), result, call);
            }
            found = Some(found.map_or(result, |value| value.join(&result)));
        }
        if found.is_none() && !receiver.objects.is_empty() {
            self.hand_over(given);
        }
        found
    }

    /// The class of a receiver of which only the name or the method is known.
    fn class_by_name(
        &self,
        receiver: &Value,
        attribute: &ast::ExprAttribute,
        given: &Given,
    ) -> Option<&'static str> {
        if !receiver.objects.is_empty() && !receiver.kinds.has(Kinds::UNKNOWN) {
            return None;
        }
        let name = last_name(&attribute.value).unwrap_or("");
        match attribute.attr.as_str() {
            "backward" | "manual_backward" | "item" | "detach" | "requires_grad_" | "detach_" | "numpy"
            | "retain_grad" => Some("torch.Tensor"),
            "parameters"
            | "named_parameters"
            | "state_dict"
            | "register_forward_hook"
            | "register_forward_pre_hook"
            | "register_full_backward_hook" => Some("torch.nn.Module"),
            // `scaler.step(optimizer)`.
            "step" if given.first().kinds.has(Kinds::OPTIMIZER) => Some("torch.optim.Optimizer"),
            "step" | "zero_grad" if roles::is_optimizer(name) || name == "scaler" => {
                Some("torch.optim.Optimizer")
            }
            "zero_grad" => Some("torch.nn.Module"),
            "eval" | "train" if given.positional.is_empty() && roles::is_model(name) => {
                Some("torch.nn.Module")
            }
            "savefig" => Some("matplotlib.figure.Figure"),
            _ => None,
        }
    }

    /// A call of which only the name is known.
    fn call_by_name(&mut self, f: &mut Frame, call: &'p ast::ExprCall, given: &Given) -> Value {
        let name = last_name(&call.func).unwrap_or("");
        self.hand_over(given);
        let symbol = self.symbols.find(name);
        let used_as_model =
            symbol.is_some_and(|symbol| self.scopes.function(f.function).models.contains(&symbol));
        if used_as_model || roles::is_model(name) {
            let model = Value::of(Kinds::MODULE);
            f.event(What::Forward { model }, located(f.file, call));
            return self.predict(f, &model, given, call, used_as_model);
        }
        self.unknown_result(given)
    }

    /// What a model gives for arguments.
    fn predict(
        &mut self,
        f: &mut Frame,
        model: &Value,
        given: &Given,
        call: &ast::ExprCall,
        proved: bool,
    ) -> Value {
        if model.kinds.has(Kinds::MODULE) && model.objects.is_empty() {
            f.event(What::Forward { model: *model }, located(f.file, call));
        }
        let mut result = Value::of(Kinds::TENSOR);
        for input in given.all() {
            result.traits = result.traits.with(input.traits.without(Traits::VIEW.with(Traits::LEAF)));
            for place in input.carried.iter() {
                result.carried.insert(place);
            }
        }
        if !f.recording {
            return result.detached();
        }
        result.origin = Some(self.origin(located(f.file, call)));
        let proof = if proved { Traits::PROVED } else { Traits::NONE_OF_ALL };
        result.with(Traits::GRAPH.with(proof))
    }

    /// Functions that somebody else gets and may call: they are run with arguments that nothing is known of.
    fn hand_over(&mut self, given: &Given) {
        let values: Vec<Value> = given.all().copied().collect();
        for value in values {
            for object in value.objects.iter() {
                match self.heap.shape(object) {
                    Shape::Function(..) | Shape::Method(..) => {
                        self.handed.insert(object);
                    }
                    Shape::Partial(inner) => {
                        self.handed.insert(inner);
                    }
                    _ => {}
                }
            }
        }
    }

    /// What a library's function gives.
    fn result(
        &mut self,
        f: &mut Frame,
        gives: Gives,
        receiver: &Value,
        given: &Given,
        name: &str,
        call: &'p ast::ExprCall,
    ) -> Value {
        let subject = if receiver.is_nothing() { given.first() } else { *receiver };
        let inherited = given.all().fold(receiver.traits, |traits, value| traits.with(value.traits));
        match gives {
            Gives::Unknown => inherit(Value::UNKNOWN, inherited),
            Gives::Library => {
                let symbol = self.symbols.intern(name);
                let object = self.heap.object(Shape::Foreign(symbol), Some(located(f.file, call)), f.maker);
                Value::object(object).or(Kinds::LIBRARY)
            }
            Gives::None => Value::of(Kinds::NONE),
            Gives::Number => {
                inherit(Value::of(Kinds::NUMBER), inherited.without(Traits::UNIQUE.with(Traits::MEASURED)))
            }
            Gives::Measured => {
                let measured = if subject.kinds.has(Kinds::TENSOR.with(Kinds::ARRAY)) {
                    Traits::MEASURED
                } else {
                    Traits::NONE_OF_ALL
                };
                inherit(Value::of(Kinds::NUMBER), inherited.with(measured))
            }
            Gives::Unique => inherit(Value::of(Kinds::NUMBER), inherited.with(Traits::UNIQUE)),
            Gives::Text => inherit(Value::of(Kinds::TEXT), inherited),
            Gives::Tensor | Gives::Tensors => {
                let inputs = self.tensors_in(f, receiver, given);
                self.differentiable(f, &inputs, call)
            }
            Gives::View => {
                let mut view = self.differentiable(f, &[subject], call);
                view.kinds = Kinds::TENSOR;
                view.with(Traits::VIEW)
            }
            Gives::Fresh => inherit(Value::of(Kinds::TENSOR), inherited),
            Gives::Leaf => Value::of(Kinds::TENSOR).with(Traits::LEAF),
            Gives::Detached => {
                let mut value = subject.detached();
                value.kinds = if value.kinds.has(Kinds::TENSOR) { value.kinds } else { Kinds::TENSOR };
                value.objects = Value::NOTHING.objects;
                value
            }
            Gives::Copied => {
                let mut value = subject.without(Traits::VIEW);
                if value.traits.has(Traits::LEAF) && f.recording && name.ends_with("clone") {
                    value = value.without(Traits::LEAF).with(Traits::GRAPH);
                }
                value
            }
            Gives::Same => self.same(f, subject, given, name),
            Gives::Parameters | Gives::State => {
                let leaf = if gives == Gives::State {
                    Value::of(Kinds::TENSOR).with(Traits::VIEW)
                } else {
                    Value::of(Kinds::TENSOR).with(Traits::LEAF)
                };
                let shape = if gives == Gives::State { Shape::Dict } else { Shape::Iterator };
                let object = self.container(f, shape, call);
                self.heap.add_element(object, leaf);
                self.heap.add_key(object, Value::of(Kinds::TEXT));
                let traits = if gives == Gives::Parameters { Traits::LEAF } else { Traits::NONE_OF_ALL };
                Value::object(object).with(traits)
            }
            Gives::Prediction => self.predict(f, &Value::of(Kinds::LIBRARY), given, call, true),
            Gives::Array => {
                let views = if name == "torch.Tensor.numpy" || name.ends_with(".asarray") {
                    Traits::VIEW
                } else {
                    Traits::NONE_OF_ALL
                };
                inherit(Value::of(Kinds::ARRAY), inherited).with(views)
            }
            Gives::Module => Value::of(Kinds::MODULE),
            Gives::Optimizer => Value::of(Kinds::OPTIMIZER),
            Gives::Loader => {
                // Iterating over it iterates over the data set.
                Value::of(Kinds::LOADER)
            }
            Gives::Figure => Value::of(Kinds::FIGURE),
            Gives::FigureAndAxes => {
                let pair = self.container(f, Shape::Tuple, call);
                for (position, kind) in [Kinds::FIGURE, Kinds::AXES].into_iter().enumerate() {
                    let slot = self.position(position);
                    self.heap.set_field(pair, slot, Value::of(kind));
                    self.heap.add_element(pair, Value::of(kind));
                }
                Value::object(pair)
            }
            Gives::Axes => Value::of(Kinds::AXES),
            Gives::Table => Value::of(Kinds::TABLE),
            Gives::Distribution => {
                let graph = inherited.has(Traits::GRAPH.with(Traits::LEAF));
                Value::of(Kinds::DISTRIBUTION).with(if graph { Traits::GRAPH } else { Traits::NONE_OF_ALL })
            }
            Gives::Handle => Value::of(Kinds::HANDLE),
            Gives::File => Value::of(Kinds::FILE),
            Gives::Thread => Value::of(Kinds::THREAD),
            Gives::Process => Value::of(Kinds::PROCESS),
            Gives::Video => Value::of(Kinds::VIDEO),
            Gives::Frames => Value::of(Kinds::ARRAY.with(Kinds::TENSOR)).with(Traits::DATA),
            Gives::Profiler => Value::of(Kinds::PROFILER),
            Gives::SharedMemory => Value::of(Kinds::SHARED_MEMORY),
            Gives::Exception => Value::of(Kinds::EXCEPTION),
            Gives::List | Gives::Dict | Gives::Set | Gives::Tuple | Gives::Deque | Gives::Queue => {
                self.make_container(f, gives, given, name, call)
            }
            Gives::Elements => self.iterator(f, &subject, call),
            Gives::Element => {
                let mut element = self.element_of(f, subject);
                for other in given.positional.iter().skip(usize::from(receiver.is_nothing())) {
                    element = element.join(other);
                }
                if name == "sum" && element.kinds.has(Kinds::TENSOR) {
                    return self.differentiable(f, &[element], call);
                }
                if given.positional.len() > 1 { element.join(&subject) } else { element }
            }
            Gives::Enumerated => {
                let element = self.element_of(f, subject);
                let mut number = Value::of(Kinds::NUMBER);
                if subject.kinds.has(Kinds::LOADER) {
                    number = number.with(Traits::COUNTER);
                }
                self.tuples(f, &[number, element], call)
            }
            Gives::Zipped => {
                let elements: Vec<Value> =
                    given.positional.iter().map(|value| self.element_of(f, *value)).collect();
                if name.ends_with("chain") {
                    let joined = elements.iter().fold(Value::NOTHING, |joined, value| joined.join(value));
                    let iterator = self.container(f, Shape::Iterator, call);
                    self.heap.add_element(iterator, joined);
                    return Value::object(iterator);
                }
                if name.ends_with("prepare") {
                    let tuple = self.container(f, Shape::Tuple, call);
                    for (position, value) in given.positional.iter().enumerate() {
                        let slot = self.position(position);
                        self.heap.set_field(tuple, slot, *value);
                        self.heap.add_element(tuple, *value);
                    }
                    return if given.positional.len() == 1 { given.first() } else { Value::object(tuple) };
                }
                self.tuples(f, &elements, call)
            }
            Gives::Mapped => {
                let arguments: Vec<Value> =
                    given.positional.iter().skip(1).map(|value| self.element_of(f, *value)).collect();
                let mapped = Given { positional: arguments, named: Vec::new() };
                let mut element = Value::NOTHING;
                for function in given.first().objects.iter() {
                    if let Some(value) = self.call_object(f, function, &mapped, call, &given.first()) {
                        element = element.join(&value);
                    }
                }
                let iterator = self.container(f, Shape::Iterator, call);
                self.heap.add_element(iterator, if element.is_nothing() { Value::UNKNOWN } else { element });
                Value::object(iterator)
            }
            Gives::Range => {
                let iterator = self.container(f, Shape::Iterator, call);
                self.heap.add_element(iterator, Value::of(Kinds::NUMBER));
                Value::object(iterator)
            }
            Gives::Keys | Gives::Items => Value::UNKNOWN,
            Gives::Loaded => {
                let dict = self.container(f, Shape::Dict, call);
                self.heap.add_element(dict, Value::UNKNOWN);
                Value::object(dict).or(Kinds::UNKNOWN)
            }
        }
    }

    /// `x.to(device)`, `torch.compile(model)`: the same thing, perhaps elsewhere.
    fn same(&mut self, f: &Frame, subject: Value, given: &Given, name: &str) -> Value {
        let mut value = subject;
        if name == "torch.Tensor.cuda" {
            value = value.with(Traits::DEVICE);
        } else if name == "torch.Tensor.cpu" {
            value = value.without(Traits::DEVICE.with(Traits::VIEW));
        } else if name == "torch.Tensor.to" {
            let text = given.all().find_map(|value| match value.literal {
                Literal::Text(device) => Some(self.symbols.name(device).to_owned()),
                _ => None,
            });
            match text.as_deref() {
                Some("cpu") => value = value.without(Traits::DEVICE),
                _ => value = value.with(Traits::DEVICE),
            }
        }
        if value.kinds.has(Kinds::TENSOR)
            && value.traits.has(Traits::LEAF)
            && name != "torch.Tensor.zero_"
            && f.recording
        {
            value = value.without(Traits::LEAF).with(Traits::GRAPH.with(Traits::PROVED));
        }
        value.literal = Literal::Any;
        value
    }

    /// The tensors among receiver and arguments, those in lists and tuples, too.
    fn tensors_in(&mut self, f: &mut Frame, receiver: &Value, given: &Given) -> Vec<Value> {
        let mut inputs = vec![*receiver];
        for value in given.all().copied().collect::<Vec<_>>() {
            if value.kinds.has(Kinds::OBJECT) {
                let element = self.element_of(f, value);
                if element.kinds.has(Kinds::TENSOR) {
                    inputs.push(element);
                }
            }
            inputs.push(value);
        }
        inputs.retain(|value| value.kinds.has(Kinds::TENSOR));
        inputs
    }

    fn iterator(&mut self, f: &mut Frame, subject: &Value, call: &ast::ExprCall) -> Value {
        // What is told of a loader stays told.
        if subject.objects.is_empty() {
            return *subject;
        }
        let element = self.element_of(f, *subject);
        let iterator = self.container(f, Shape::Iterator, call);
        self.heap.add_element(iterator, element);
        Value::object(iterator).or(subject.kinds.without(Kinds::OBJECT)).with(subject.traits)
    }

    fn tuples(&mut self, f: &mut Frame, parts: &[Value], call: &ast::ExprCall) -> Value {
        let tuple = self.container(f, Shape::Tuple, call);
        let mut kinds = Kinds::NONE_OF_ALL;
        for (position, value) in parts.iter().enumerate() {
            let slot = self.position(position);
            self.heap.set_field(tuple, slot, *value);
            self.heap.add_element(tuple, *value);
            kinds = kinds.with(value.kinds);
        }
        let iterator = self.container(f, Shape::Iterator, call);
        self.heap.add_element(iterator, Value::object(tuple));
        Value::object(iterator)
    }

    /// `list(x)`, `deque(maxlen=8)`, `Queue(4)`.
    fn make_container(
        &mut self,
        f: &mut Frame,
        gives: Gives,
        given: &Given,
        name: &str,
        call: &'p ast::ExprCall,
    ) -> Value {
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
                let factory = given.first();
                let made = Given { positional: Vec::new(), named: Vec::new() };
                for function in factory.objects.iter() {
                    if let Some(value) = self.call_object(f, function, &made, call, &factory) {
                        self.heap.add_element(object, value);
                    }
                }
            }
            Shape::Dict => {
                self.put_all(object, &source);
                for (name, value) in &given.named {
                    self.put(object, Value::text(*name), *value);
                }
            }
            _ => {
                let element = self.element_of(f, source);
                self.heap.add_element(object, element);
            }
        }
        Value::object(object)
    }
}

/// A method that gives a list of something else than its receiver.
fn receiver_like(name: &str) -> bool {
    matches!(name, "torch.Tensor.tolist" | "numpy.ndarray.tolist" | "str.split")
}

/// What is known of a result of which a part is not.
fn known_part(value: Option<Value>) -> Value {
    let mut value = value.unwrap_or(Value::NOTHING);
    value.kinds = value.kinds.without(Kinds::UNKNOWN.with(Kinds::NONE));
    value
}
