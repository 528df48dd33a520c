//! Calls of the project's own functions and classes: which values their parameters get, what comes back.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use crate::flow::event::What;
use crate::flow::heap::{Maker, Shape};
use crate::flow::ids::{ClassId, FunctionId, ObjectId};
use crate::flow::machine::attributes::MethodKind;
use crate::flow::machine::calls::Given;
use crate::flow::machine::expressions::{beside, inherit};
use crate::flow::machine::frame::Frame;
use crate::flow::machine::{Callee, Machine};
use crate::flow::scopes::located;
use crate::flow::symbols::Symbol;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Traits, Value};
use crate::project::Location;

/// Classes that a class gets fields from.
const MOST_BASES: usize = 8;

impl<'p> Machine<'p> {
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

    pub(super) fn call_method_named(
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
        self.call_around(f, object, receiver, arguments, named, node);
        let mut given = self.parameters(object, function, receiver, arguments, named);
        self.as_annotated(function, &mut given);
        let maker = receiver.map_or(Maker::Caller(at), Maker::Receiver);
        // What came in with a graph tells the better story of the graph that comes out.
        let source = given.iter().filter(|value| value.carries_graph()).find_map(|value| value.origin);
        let callee = Callee { function, closure, maker, receiver, recording: f.recording };
        let Some(id) = self.activate(callee, given, None) else {
            return Value::UNKNOWN;
        };
        // One that stands in for too many others tells what comes back, not what happens to whom.
        if self.activations[id.0 as usize].receiver == callee.receiver {
            f.event(What::Call(id), at);
        }
        let mut result = self.activations[id.0 as usize].result;
        if result.carries_graph() {
            result.origin = source.or(result.origin);
        }
        // A call of itself that is still under way.
        if result.is_nothing() { Value::UNKNOWN } else { result }
    }

    /// Calls what a decorator put around a function, unless that is what calls it.
    fn call_around(
        &mut self,
        f: &mut Frame,
        function: ObjectId,
        receiver: Option<ObjectId>,
        arguments: &[Value],
        named: &[(Symbol, Value)],
        node: &impl Ranged,
    ) {
        let Some(around) = self.heap.field(function, self.names.around) else { return };
        let mut given: Vec<Value> = receiver.map(Value::object).into_iter().collect();
        given.extend(arguments);
        for outer in around.objects.iter() {
            let Shape::Function(id, _) = self.heap.shape(outer) else { continue };
            if id != f.function {
                self.call_function(f, outer, None, &given, named, node);
            }
        }
    }

    /// The first function among values.
    pub(super) fn handed_function(&self, values: &[Value]) -> Option<ObjectId> {
        let mut objects = values.iter().flat_map(|value| value.objects.iter());
        objects.find(|object| matches!(self.heap.shape(*object), Shape::Function(..) | Shape::Method(..)))
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
        for parameter in parameters {
            let name = self.symbols.at(&parameter.name().node_index, parameter.name().as_str());
            let by_name = named.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            let value = if parameter.is_variadic() {
                let is_args =
                    parameters.vararg.as_ref().is_some_and(|vararg| vararg.name == *parameter.name());
                let shape = if is_args { Shape::Tuple } else { Shape::Dict };
                // What is handed along to one function is none of another's.
                let maker = Maker::Receiver(self.handed_function(arguments).unwrap_or(object));
                let rest = self.heap.object(shape, Some(located(file, parameter.name())), maker);
                let mut traits = Traits::NONE_OF_ALL;
                if is_args {
                    for (position, value) in positional.by_ref().enumerate() {
                        let slot = self.position(position);
                        traits = beside(traits, value.traits);
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
                inherit(Value::object(rest), traits)
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
    pub(super) fn instantiate(
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
            self.fill_defaults(f, class, object, at);
            if self.class_member(class, self.names.post_init).is_some() {
                self.call_method_named(f, object, self.names.post_init, &[], &[], call);
            }
        }
        value
    }

    /// What a dataclass or named tuple does with its arguments.
    pub(super) fn fill_fields(&mut self, class: ClassId, object: ObjectId, given: &Given) {
        let mut names: Vec<Symbol> = Vec::new();
        for (.., name) in self.fields(class) {
            let name = self.symbols.at(&name.node_index, name.id.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for (name, value) in names.into_iter().zip(&given.positional) {
            self.heap.set_field(object, name, *value);
        }
        for (name, value) in &given.named {
            self.heap.set_field(object, *name, *value);
        }
    }

    /// Containers that a dataclass makes for each object: `field(default_factory=list)`.
    fn fill_defaults(&mut self, f: &mut Frame, class: ClassId, object: ObjectId, at: Location) {
        for (owner, field, name) in self.fields(class) {
            let Some(Expr::Call(call)) = field.value.as_deref() else { continue };
            // `factory` in attrs.
            let given =
                ["default_factory", "factory"].iter().find_map(|name| call.arguments.find_keyword(name));
            let Some(shape) = given.and_then(|factory| factory_shape(&factory.value)) else { continue };
            let file = self.scopes.class(owner).file;
            let made = self.heap.object(shape, Some(located(file, call)), Maker::Receiver(object));
            f.event(What::Birth(made), at);
            let name = self.symbols.at(&name.node_index, name.id.as_str());
            self.heap.set_field(object, name, Value::object(made));
        }
    }

    /// The fields that a class and its bases declare, those of a base first.
    fn fields(&self, class: ClassId) -> Vec<(ClassId, &'p ast::StmtAnnAssign, &'p ast::ExprName)> {
        let mut lineage = vec![class];
        let mut at = 0;
        while at < lineage.len() && lineage.len() < MOST_BASES {
            let bases = self.bases_of(lineage[at]);
            lineage.extend(bases.into_iter().filter(|base| *base != class));
            at += 1;
        }
        let mut fields = Vec::new();
        for owner in lineage.into_iter().rev() {
            for stmt in &self.scopes.class(owner).definition.body {
                if let ast::Stmt::AnnAssign(field) = stmt
                    && let Expr::Name(name) = &*field.target
                {
                    fields.push((owner, field, name));
                }
            }
        }
        fields
    }
}

/// What a factory makes, by its name or by what its `lambda` returns: containers without a bound.
fn factory_shape(factory: &Expr) -> Option<Shape> {
    match factory {
        Expr::Name(name) => match name.id.as_str() {
            "list" => Some(Shape::List),
            "dict" | "OrderedDict" => Some(Shape::Dict),
            "set" => Some(Shape::Set),
            "deque" => Some(Shape::Deque),
            _ => None,
        },
        Expr::Lambda(lambda) => match &*lambda.body {
            Expr::List(_) => Some(Shape::List),
            Expr::Dict(_) => Some(Shape::Dict),
            Expr::Call(call) => match last_name(&call.func)? {
                "defaultdict" => Some(Shape::Dict),
                _ if call.arguments.is_empty() => factory_shape(&call.func),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
