//! Calls of what the project does not define: libraries, methods by the kind of their receiver, names alone.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;

use crate::flow::event::What;
use crate::flow::heap::Shape;
use crate::flow::machine::called::Called;
use crate::flow::machine::calls::Given;
use crate::flow::machine::expressions::inherit;
use crate::flow::machine::frame::Frame;
use crate::flow::machine::{Hooked, Machine};
use crate::flow::scopes::located;
use crate::flow::symbols::Symbol;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Traits, Value};
use crate::library::{Gives, roles};

impl<'p> Machine<'p> {
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
        let [receiver, argument, result] =
            [receiver, argument, result].map(|value| self.values.intern(value));
        f.event(What::Library { name, receiver, argument, given: (0, 0), result }, located(f.file, node));
    }

    /// Notes a call with all its arguments.
    fn call_event(
        &mut self,
        f: &mut Frame,
        name: &str,
        receiver: Value,
        given: &Given,
        result: Value,
        node: &impl Ranged,
    ) {
        let name = self.symbols.intern(name);
        let start = f.given.len() as u32;
        let positional = given.positional.iter().map(|value| (None, *value));
        let named = given.named.iter().map(|(name, value)| (Some(*name), *value));
        f.given.extend(positional.chain(named).map(|(name, value)| (name, self.values.intern(value))));
        let [receiver, argument, result] =
            [receiver, given.first(), result].map(|value| self.values.intern(value));
        let given = (start, f.given.len() as u32);
        f.event(What::Library { name, receiver, argument, given, result }, located(f.file, node));
    }

    /// Notes that something that has to be given back went to somebody who may do that.
    fn give_away(&mut self, f: &mut Frame, given: &Given, node: &impl Ranged) {
        for value in given.all().copied().collect::<Vec<_>>() {
            if value.kinds.has(Kinds::GIVEN_BACK) {
                self.library_event(f, "handed on", Value::NOTHING, value, Value::NOTHING, node);
            }
        }
    }

    pub(super) fn call_library(
        &mut self,
        f: &mut Frame,
        symbol: Symbol,
        given: &Given,
        call: &'p ast::ExprCall,
    ) -> Value {
        let name = self.symbols.name(symbol).to_owned();
        self.hand_over(given);
        let Some(entry) = self.entry(symbol) else {
            // A library that nobody told us of.
            self.give_away(f, given, call);
            return Self::unknown_result(given);
        };
        if entry.gives == Gives::Tensor && name.starts_with("torch.") {
            self.prove_tensor(f, call);
        }
        let result =
            self.result(f, entry.gives, Called { receiver: &Value::NOTHING, given, name: &name, call });
        if entry.noted {
            self.call_event(f, &name, Value::NOTHING, given, result, call);
        }
        if entry.gives == Gives::Loader {
            self.note_collation(f, given, call);
        }
        result
    }

    /// What may be a tensor is one, once a function took it that takes nothing else.
    fn prove_tensor(&mut self, f: &mut Frame, call: &ast::ExprCall) {
        let Some(ast::Expr::Name(name)) = call.arguments.args.first() else { return };
        let Some(symbol) = self.symbols.find(name.id.as_str()) else { return };
        let Some(&slot) = self.scopes.function(f.function).slots.get(&symbol) else { return };
        let value = &mut f.slots[slot as usize];
        if value.only(Kinds::TENSOR.with(Kinds::UNKNOWN)) && value.kinds.has(Kinds::TENSOR) {
            value.kinds = Kinds::TENSOR;
        }
    }

    /// A variable that `backward` is called on has a graph, whatever gave it.
    fn prove_graph(&mut self, f: &mut Frame, method: &ast::ExprAttribute) {
        let ast::Expr::Name(name) = &*method.value else { return };
        let Some(symbol) = self.symbols.find(name.id.as_str()) else { return };
        let Some(&slot) = self.scopes.function(f.function).slots.get(&symbol) else { return };
        let value = &mut f.slots[slot as usize];
        if f.recording && value.carries_graph() {
            *value = value.with(Traits::PROVED);
        }
    }

    pub(super) fn unknown_result(given: &Given) -> Value {
        let traits = given.all().fold(Traits::NONE_OF_ALL, |traits, value| traits.with(value.traits));
        inherit(Value::UNKNOWN, traits)
    }

    /// A method by the kind of its receiver; `None` where nothing is known of it.
    pub(super) fn method_of_kind(
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
            (Kinds::MODULE.with(Kinds::CRITERION), "torch.nn.Module"),
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
            (Kinds::RECORD, "logging.LogRecord"),
            (Kinds::SHARED_MEMORY, "multiprocessing.shared_memory.SharedMemory"),
        ];
        let method = attribute.attr.as_str();
        let mut classes: Vec<String> = CLASSES
            .iter()
            .filter(|(kind, _)| receiver.kinds.has(*kind))
            .map(|(_, class)| (*class).to_owned())
            .collect();
        // A loss that may be a module is a tensor where it is asked for its number.
        if !followed
            && roles::no_module_has(method)
            && receiver.kinds.has(Kinds::MODULE.with(Kinds::CRITERION))
        {
            classes.retain(|class| class != "torch.nn.Module");
            if classes.is_empty() {
                classes.push("torch.Tensor".to_owned());
            }
        }
        for object in receiver.objects.iter() {
            if let Shape::Foreign(class) = self.heap.shape(object) {
                let class = self.symbols.name(class).to_owned();
                self.keep(f, object, &class, attribute, given);
                if !classes.contains(&class) {
                    classes.push(class);
                }
            }
        }
        let mut receiver = *receiver;
        // What such a method is called on is a tensor.
        if receiver.kinds.has(Kinds::TENSOR) && receiver.objects.is_empty() && is_of_tensors(method) {
            receiver.kinds = receiver.kinds.without(Kinds::UNKNOWN);
        }
        if method == "backward" {
            self.prove_graph(f, attribute);
        }
        if classes.is_empty() && !followed {
            let class = Self::class_by_name(&receiver, attribute, given);
            if class == Some("torch.Tensor") {
                receiver.kinds = receiver.kinds.without(Kinds::UNKNOWN).with(Kinds::TENSOR);
            }
            classes.extend(class.map(str::to_owned));
        }
        let mut found = None::<Value>;
        for class in classes {
            // A method of the project's own subclass comes first.
            if followed && class == "torch.nn.Module" {
                continue;
            }
            let name = format!("{class}.{method}");
            let Some(entry) = self.library.entry(&name) else { continue };
            if entry.gives == Gives::Handle {
                self.hand_over(given);
                self.hook(f, method, given, call);
            }
            let result =
                self.result(f, entry.gives, Called { receiver: &receiver, given, name: &name, call });
            if entry.noted {
                self.call_event(f, &name, receiver, given, result, call);
            }
            found = Some(found.map_or(result, |value| value.join(&result)));
        }
        if found.is_none() && !receiver.objects.is_empty() {
            self.hand_over(given);
        }
        found
    }

    /// The class of a receiver of which only the name or the method is known.
    pub(super) fn class_by_name(
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
            "strip" | "rstrip" | "lstrip" | "lower" | "upper" | "splitlines" | "startswith" | "endswith" => {
                Some("str")
            }
            // `scaler.step(optimizer)`.
            "step" if given.first().kinds.has(Kinds::OPTIMIZER) => Some("torch.optim.Optimizer"),
            "step" | "zero_grad" if roles::is_optimizer(name) || name == "scaler" => {
                Some("torch.optim.Optimizer")
            }
            "zero_grad"
            | "parameters"
            | "named_parameters"
            | "state_dict"
            | "register_forward_hook"
            | "register_forward_pre_hook"
            | "register_full_backward_hook"
            | "register_full_backward_pre_hook"
            | "register_backward_hook" => Some("torch.nn.Module"),
            "eval" | "train" if given.positional.is_empty() && roles::is_model(name) => {
                Some("torch.nn.Module")
            }
            "savefig" => Some("matplotlib.figure.Figure"),
            "addHandler" => Some("logging.Logger"),
            method if is_of_tensors(method) && !roles::is_model(name) => Some("torch.Tensor"),
            _ => None,
        }
    }

    /// A call of which only the name is known.
    pub(super) fn call_by_name(&mut self, f: &mut Frame, call: &'p ast::ExprCall, given: &Given) -> Value {
        let name = last_name(&call.func).unwrap_or("");
        self.hand_over(given);
        self.give_away(f, given, call);
        let symbol = self.symbols.find(name);
        let used_as_model =
            symbol.is_some_and(|symbol| self.scopes.function(f.function).models.contains(&symbol));
        let applied = match &*call.func {
            ast::Expr::Attribute(method) => {
                roles::applies(method.attr.as_str()) && last_name(&method.value).is_some_and(roles::is_model)
            }
            _ => false,
        };
        if roles::is_model(name) && is_class_name(name) {
            return Value::of(Kinds::MODULE);
        }
        if used_as_model || applied || roles::is_model(name) {
            let model = Value::of(Kinds::MODULE);
            f.event(What::Forward, located(f.file, call));
            return self.predict(f, &model, given, call, used_as_model);
        }
        Self::unknown_result(given)
    }

    /// What a model gives for arguments.
    pub(super) fn predict(
        &mut self,
        f: &mut Frame,
        model: &Value,
        given: &Given,
        call: &ast::ExprCall,
        proved: bool,
    ) -> Value {
        const PLAIN: Kinds = Kinds::TENSOR.with(Kinds::ARRAY).with(Kinds::NUMBER);
        if model.kinds.has(Kinds::MODULE.with(Kinds::CRITERION)) && model.objects.is_empty() {
            f.event(What::Forward, located(f.file, call));
        }
        let mut result = Value::of(Kinds::TENSOR);
        for input in given.all() {
            let lost = Traits::VIEW.with(Traits::LEAF).with(Traits::OF_VIDEO).with(Traits::SCALAR);
            result.traits = result.traits.with(input.traits.without(lost));
            result.carried.extend(&input.fed().carried);
        }
        // A loss is a number: of no account wherever it is.
        if given.all().filter(|input| input.kinds.has(Kinds::TENSOR)).count() > 1 {
            result = result.without(Traits::DEVICE);
        }
        if model.only(Kinds::CRITERION) {
            result = result.with(Traits::SCALAR);
        }
        // A loss of plain tensors is one.
        let plain = |input: &Value| input.only(PLAIN) && !input.carries_graph();
        if !f.recording || model.only(Kinds::CRITERION) && given.all().all(plain) {
            return result.detached();
        }
        result.origin = Some(self.origin(located(f.file, call)));
        let proof = if proved { Traits::PROVED } else { Traits::NONE_OF_ALL };
        result.with(Traits::GRAPH.with(proof))
    }

    /// Functions that are called with what a module is given and gives.
    fn hook(&mut self, f: &Frame, register: &str, given: &Given, call: &ast::ExprCall) {
        let graph = if f.recording { Traits::GRAPH } else { Traits::NONE_OF_ALL };
        let arguments: Vec<Value> = roles::hook_arguments(register)
            .iter()
            .map(|kinds| {
                let tensors =
                    if kinds.has(Kinds::TENSOR) { graph.with(Traits::DATA) } else { Traits::NONE_OF_ALL };
                Value::of(*kinds).with(tensors)
            })
            .collect();
        let of_module = !arguments.is_empty();
        let dropped = of_module && located(f.file, call).range == f.statement.range;
        for object in given.first().objects.iter() {
            let dropped = dropped && self.hooks.get(&object).is_none_or(|known| known.dropped);
            self.hooks.insert(object, Hooked { by: f.function, arguments: arguments.clone(), dropped });
        }
    }

    /// Functions that somebody else gets and may call: they are run with arguments that nothing is known of.
    pub(super) fn hand_over(&mut self, given: &Given) {
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
}

/// Whether nothing but tensors, and models, has a method.
fn is_of_tensors(method: &str) -> bool {
    matches!(method, "cpu" | "cuda" | "detach" | "detach_") || roles::TENSOR_METHODS.contains(&method)
}

/// `Model`, as PEP 8 writes classes; single letters are networks in papers: `G(z)`.
fn is_class_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}
