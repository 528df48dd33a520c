//! What a library's function gives, by the tables.

use ruff_python_ast as ast;

use crate::flow::heap::Shape;
use crate::flow::machine::called::Called;
use crate::flow::machine::calls::Given;
use crate::flow::machine::expressions::inherit;
use crate::flow::machine::frame::Frame;
use crate::flow::machine::{Machine, video};
use crate::flow::scopes::located;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Literal, Traits, Value};
use crate::library::Gives;

impl<'p> Machine<'p> {
    /// A name with what it stands for.
    fn named_pair(&mut self, f: &mut Frame, value: Value, call: &ast::ExprCall) -> Value {
        let pair = self.container(f, Shape::Tuple, call);
        for (position, part) in [Value::of(Kinds::TEXT), value].into_iter().enumerate() {
            let slot = self.position(position);
            self.heap.set_field(pair, slot, part);
            self.heap.add_element(pair, part);
        }
        Value::object(pair)
    }

    /// What a library's function gives.
    pub(super) fn result(&mut self, f: &mut Frame, gives: Gives, called: Called<'_, 'p>) -> Value {
        let made = self.plain_result(f, gives, called);
        self.of_video(f, made, called)
    }

    fn plain_result(&mut self, f: &mut Frame, gives: Gives, called: Called<'_, 'p>) -> Value {
        let Called { given, name, call, .. } = called;
        let (subject, inherited) = (called.subject(), called.inherited());
        match gives {
            Gives::Unknown => inherit(Value::UNKNOWN, inherited),
            Gives::Library => {
                let symbol = self.symbols.intern(name);
                let object = self.heap.object(Shape::Foreign(symbol), Some(located(f.file, call)), f.maker);
                self.make_keeper(f, object, name, call);
                Value::object(object).or(Kinds::LIBRARY)
            }
            Gives::Namespace => {
                let value = self.plain_result(f, Gives::Library, called);
                for (object, (name, attribute)) in value
                    .objects
                    .iter()
                    .flat_map(|object| given.named.iter().map(move |named| (object, named)))
                {
                    self.heap.set_field(object, *name, *attribute);
                }
                value
            }
            Gives::None => Value::of(Kinds::NONE),
            Gives::Measured | Gives::Number if self.keeps_axes(name, given) => {
                inherit(Value::of(Kinds::ARRAY), inherited)
            }
            Gives::Argument => given.first(),
            // `rows[len(rows)] = row`.
            Gives::Number if name == "len" && self.is_dict(&subject) => {
                Value::of(Kinds::NUMBER).with(Traits::COUNTER)
            }
            Gives::Address if subject.kinds.has(Kinds::TENSOR) && !subject.traits.has(Traits::LEAF) => {
                Value::of(Kinds::NUMBER).with(Traits::UNIQUE)
            }
            Gives::Address => Value::of(Kinds::NUMBER),
            Gives::Number => {
                inherit(Value::of(Kinds::NUMBER), inherited.without(Traits::UNIQUE.with(Traits::MEASURED)))
            }
            Gives::Measured => {
                // Labels and counts are numbers in tensors, too, and come back.
                let real = subject.carries_graph()
                    || !matches!(name, "torch.Tensor.item" | "numpy.ndarray.item" | "int");
                let measured = if real && subject.kinds.has(Kinds::TENSOR.with(Kinds::ARRAY)) {
                    Traits::MEASURED
                } else {
                    Traits::NONE_OF_ALL
                };
                // A whole number of something random is one of so many.
                let drawn = !real && inherited.has(Traits::UNIQUE);
                let unlike = if real { Traits::NONE_OF_ALL } else { Traits::UNIQUE };
                let whole = if drawn { Traits::DRAWN } else { Traits::NONE_OF_ALL };
                inherit(Value::of(Kinds::NUMBER), inherited.without(unlike).with(measured).with(whole))
            }
            Gives::Unique => inherit(Value::of(Kinds::NUMBER), inherited.with(drawn(name, given))),
            // `"-".join(str(part) for part in parts)` is as unique as its parts.
            Gives::Text if name == "str.join" => {
                let part = self.element_of(f, given.first());
                inherit(Value::of(Kinds::TEXT), inherited.with(part.traits))
            }
            Gives::Text => inherit(Value::of(Kinds::TEXT), inherited),
            Gives::Module => Value::of(Kinds::MODULE),
            Gives::Criterion if self.keeps_shape(given) => Value::of(Kinds::MODULE),
            Gives::Criterion => Value::of(Kinds::CRITERION),
            Gives::Modules => self.make_container(f, Gives::List, called).or(Kinds::MODULE),
            // Which one it is is told by where it is made.
            Gives::Optimizer => {
                Value { origin: Some(self.origin(located(f.file, call))), ..Value::of(Kinds::OPTIMIZER) }
            }
            // Iterating over it iterates over the data set.
            Gives::Loader => Value::of(Kinds::LOADER),
            Gives::Figure => self.resource(f, FIGURE, Kinds::FIGURE, call),
            Gives::Axes => Value::of(Kinds::AXES),
            Gives::Table => Value::of(Kinds::TABLE),
            // Told apart from others: each is to be removed.
            Gives::Handle => self.resource(f, "torch.utils.hooks.RemovableHandle", Kinds::HANDLE, call),
            Gives::File => self.resource(f, name, Kinds::FILE, call),
            Gives::Thread => self.resource(f, "threading.Thread", Kinds::THREAD, call),
            Gives::Process => self.resource(f, "multiprocessing.Process", Kinds::PROCESS, call),
            Gives::Task => self.resource(f, "asyncio.Task", Kinds::TASK, call),
            Gives::Video => self.resource(f, name, Kinds::VIDEO, call),
            Gives::Frames => self.all_frames(f, name, call),
            Gives::Frame => self.read_frame(f, call),
            Gives::Sound => {
                let kind = if name.starts_with("torch") { Kinds::TENSOR } else { Kinds::ARRAY };
                let parts = [Value::of(kind).with(Traits::DATA), Value::of(Kinds::NUMBER)];
                self.tuple(f, &parts, call)
            }
            Gives::Picture => Value::of(Kinds::ARRAY).with(Traits::DATA),
            Gives::Random => {
                let kind = if name.starts_with("torch") { Kinds::TENSOR } else { Kinds::ARRAY };
                inherit(Value::of(kind), inherited.with(drawn(name, given)))
            }
            Gives::Profiler => self.resource(f, "torch.profiler.profile", Kinds::PROFILER, call),
            Gives::SharedMemory => self.resource(f, name, Kinds::SHARED_MEMORY, call),
            Gives::Exception => Value::of(Kinds::EXCEPTION),
            _ => {
                self.tensor_result(f, gives, called).unwrap_or_else(|| self.iterable_result(f, gives, called))
            }
        }
    }

    /// Whether a function of numpy that makes one number of an array does so along an axis alone, by `axis` or the argument
    /// that stands for it: `array.mean(0)`, `np.mean(array, 0)`.
    fn keeps_axes(&self, name: &str, given: &Given) -> bool {
        let Some(function) = name.strip_prefix("numpy.") else { return false };
        let position = match function {
            "ndarray.item" | "vdot" | "allclose" | "array_equal" => return false,
            "percentile" | "quantile" | "nanpercentile" | "nanquantile" | "linalg.norm" => 2,
            _ if function.starts_with("ndarray.") => 0,
            _ => 1,
        };
        let named = given.named.iter().find(|(name, _)| self.symbols.name(*name) == "axis");
        let axis = named.map(|(_, value)| value).or_else(|| given.positional.get(position));
        axis.is_some_and(|axis| !axis.only(Kinds::NONE))
    }

    /// `reduction="none"`, or one that is not known.
    fn keeps_shape(&self, given: &Given) -> bool {
        let reduction = given.named.iter().find(|(name, _)| self.symbols.name(*name) == "reduction");
        reduction.is_some_and(|(_, value)| match value.literal {
            Literal::Text(text) => self.symbols.name(text) == "none",
            _ => true,
        })
    }

    /// Tensors, arrays and what they come from.
    fn tensor_result(&mut self, f: &mut Frame, gives: Gives, called: Called<'_, 'p>) -> Option<Value> {
        let Called { receiver, given, name, call } = called;
        let (subject, inherited) = (called.subject(), called.inherited());
        Some(match gives {
            Gives::Tensor | Gives::Tensors => {
                let inputs = self.tensors_in(f, receiver, given);
                let value = self.differentiable(f, &inputs, call);
                if name == "torch.autograd.grad" && !self.creates_graph(given) {
                    value.detached()
                } else if applies(name) {
                    value.fed()
                } else if gives_pieces(name, given) {
                    value.with(Traits::PIECES)
                } else if gives_a_scalar(name, given) && !self.keeps_shape(given) {
                    value.with(Traits::SCALAR)
                } else {
                    value
                }
            }
            Gives::View => {
                let mut view = self.differentiable(f, &[subject], call);
                view.kinds = Kinds::TENSOR;
                view.with(Traits::VIEW)
            }
            Gives::Fresh => inherit(Value::of(Kinds::TENSOR), inherited),
            Gives::Leaf if given.first().literal == Literal::Bool(false) => subject.detached(),
            Gives::Leaf => Value::of(Kinds::TENSOR).with(Traits::LEAF),
            Gives::Detached => {
                let mut value = subject.detached();
                value.kinds = if value.kinds.has(Kinds::TENSOR) { value.kinds } else { Kinds::TENSOR };
                value.objects = Value::NOTHING.objects;
                value
            }
            Gives::Copied => {
                let mut value = subject.without(Traits::VIEW);
                if subject.traits.has(Traits::VIEW) {
                    value = value.with(Traits::EXCERPT);
                }
                if value.traits.has(Traits::LEAF) && f.recording && name.ends_with("clone") {
                    value = value.without(Traits::LEAF).with(Traits::GRAPH);
                }
                value
            }
            Gives::Same => self.same(f, subject, given, name, call),
            Gives::Replaced => replaced(subject, given),
            Gives::Words => self.words(f, call),
            Gives::Parameters | Gives::State => {
                let leaf = if gives == Gives::State {
                    Value::of(Kinds::TENSOR)
                } else {
                    Value::of(Kinds::TENSOR).with(Traits::LEAF)
                };
                let shape = if gives == Gives::State { Shape::Dict } else { Shape::Iterator };
                let object = self.container(f, shape, call);
                let named = name.ends_with(".named_parameters");
                let element = if named { self.named_pair(f, leaf, call) } else { leaf };
                self.heap.add_element(object, element);
                self.heap.add_key(object, Value::of(Kinds::TEXT));
                let traits = if gives == Gives::Parameters { Traits::LEAF } else { Traits::NONE_OF_ALL };
                Value::object(object).with(traits)
            }
            Gives::Prediction => self.predict(f, &Value::of(Kinds::LIBRARY), given, call, true),
            Gives::Array if computes_a_number(name, given) => inherit(Value::of(Kinds::NUMBER), inherited),
            Gives::Array => {
                let array = inherit(Value::of(Kinds::ARRAY), inherited);
                let shares = name == "torch.Tensor.numpy" || name.ends_with(".asarray");
                let kept = if shares { Traits::VIEW.with(Traits::FLAT) } else { Traits::NONE_OF_ALL };
                let array = array.with(subject.traits.without(subject.traits.without(kept)));
                if makes_a_row(name, given) { array.with(Traits::FLAT) } else { array }
            }
            Gives::Distribution => {
                let graph = inherited.has(Traits::GRAPH.with(Traits::LEAF));
                Value::of(Kinds::DISTRIBUTION).with(if graph { Traits::GRAPH } else { Traits::NONE_OF_ALL })
            }
            _ => return None,
        })
    }

    /// Parts of a text: they come back, though the text does not.
    fn words(&mut self, f: &mut Frame, call: &ast::ExprCall) -> Value {
        let words = self.container(f, Shape::List, call);
        self.heap.add_element(words, Value::of(Kinds::TEXT));
        Value::object(words)
    }

    /// Containers, iterators, and what is taken out of them.
    fn iterable_result(&mut self, f: &mut Frame, gives: Gives, called: Called<'_, 'p>) -> Value {
        let Called { receiver, given, name, call } = called;
        let (subject, inherited) = (called.subject(), called.inherited());
        match gives {
            Gives::FigureAndAxes => {
                let figure = self.resource(f, FIGURE, Kinds::FIGURE, call);
                let axes = self.resource(f, AXES, Kinds::AXES, call);
                let name = self.symbols.intern("figure");
                for object in axes.objects.iter() {
                    self.heap.set_field(object, name, figure);
                }
                self.tuple(f, &[figure, axes], call)
            }
            Gives::List | Gives::Dict | Gives::Set | Gives::Tuple | Gives::Deque | Gives::Queue => {
                self.make_container(f, gives, called)
            }
            Gives::NamedTuple => {
                let fields =
                    call.arguments.find_argument_value("field_names", 1).map(texts).unwrap_or_default();
                Value::object(self.external(&format!("{name}.<{}>", fields.replace(',', " "))))
            }
            Gives::Packed => self.packed(f, called),
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
                let mut number = Value::of(Kinds::NUMBER).with(Traits::TURN);
                if subject.kinds.has(Kinds::LOADER) {
                    number = number.with(Traits::COUNTER).with(Traits::RESTARTS);
                }
                self.tuples(f, &[number, element], call)
            }
            Gives::Zipped => {
                let elements: Vec<Value> =
                    given.positional.iter().map(|value| self.element_of(f, *value)).collect();
                if name.ends_with("chain") {
                    let joined = elements.iter().fold(Value::NOTHING, super::super::value::Value::join);
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
                match &*call.arguments.args {
                    [ast::Expr::Starred(_)] => self.columns(f, &given.positional, call),
                    _ => None,
                }
                .unwrap_or_else(|| self.tuples(f, &elements, call))
            }
            Gives::Mapped => self.mapped(f, called),
            Gives::Called => {
                let function = given.first();
                let nothing = Given { positional: Vec::new(), named: Vec::new() };
                let results = function
                    .objects
                    .iter()
                    .filter_map(|object| self.call_object(f, object, &nothing, call, &function));
                results.fold(Value::NOTHING, |joined, value| joined.join(&value)).or_none()
            }
            Gives::Layers => {
                let layer = Value::of(Kinds::MODULE);
                let named = name.contains(".named_");
                let element = if named { self.named_pair(f, layer, call) } else { layer };
                let iterator = self.container(f, Shape::Iterator, call);
                self.heap.add_element(iterator, element);
                Value::object(iterator).or(Kinds::MODULE)
            }
            Gives::Items => {
                let pair = self.named_pair(f, subject, call);
                let iterator = self.container(f, Shape::Iterator, call);
                self.heap.add_element(iterator, pair);
                Value::object(iterator)
            }
            Gives::Range => {
                let iterator = self.container(f, Shape::Iterator, call);
                self.heap.add_element(iterator, video::counted(given));
                Value::object(iterator).with(video::counted_whole(given))
            }
            Gives::Loaded => {
                let dict = self.container(f, Shape::Dict, call);
                self.heap.add_element(dict, Value::UNKNOWN);
                Value::object(dict).or(Kinds::UNKNOWN)
            }

            _ => inherit(Value::UNKNOWN, inherited),
        }
    }

    /// A named tuple.
    fn packed(&mut self, f: &mut Frame, called: Called<'_, 'p>) -> Value {
        let Called { given, name, call, .. } = called;
        let packed = self.tuple(f, &given.positional, call);
        let fields: Vec<_> = fields_of(name).map(|field| self.symbols.intern(field)).collect();
        let by_position = fields.into_iter().zip(given.positional.iter().copied());
        for (field, part) in by_position.chain(given.named.iter().copied()) {
            for object in packed.objects.iter() {
                self.heap.set_field(object, field, part);
                self.heap.add_element(object, part);
            }
        }
        packed
    }

    /// `map(function, rows)`.
    fn mapped(&mut self, f: &mut Frame, called: Called<'_, 'p>) -> Value {
        let Called { given, call, .. } = called;
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

    fn is_dict(&self, value: &Value) -> bool {
        value.objects.iter().any(|object| self.heap.shape(object) == Shape::Dict)
    }

    /// `torch.autograd.grad(.., create_graph=True)`: gradients that carry a graph themselves.
    fn creates_graph(&self, given: &Given) -> bool {
        let asked = |(name, value): &(_, Value)| {
            self.symbols.name(*name) == "create_graph" && value.literal != Literal::Bool(false)
        };
        given.named.iter().any(asked)
    }

    /// `x.to(device)`, `torch.compile(model)`: the same thing, perhaps elsewhere.
    pub(super) fn same(
        &mut self,
        f: &Frame,
        subject: Value,
        given: &Given,
        name: &str,
        call: &ast::ExprCall,
    ) -> Value {
        let mut value = reshaped(subject, name, given);
        if name == "torch.Tensor.cuda" {
            value = value.with(Traits::DEVICE);
        } else if name == "torch.Tensor.cpu" {
            // What is on the host already is not copied.
            let moved = if value.traits.has(Traits::DEVICE) { Traits::VIEW } else { Traits::NONE_OF_ALL };
            value = value.without(Traits::DEVICE.with(moved));
        } else if name == "torch.Tensor.pin_memory" {
            value = value.without(Traits::VIEW).with(Traits::DEVICE);
        } else if name == "torch.Tensor.to" && !converts(&call.arguments) {
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
    pub(super) fn tensors_in(&mut self, f: &mut Frame, receiver: &Value, given: &Given) -> Vec<Value> {
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
}

/// A constant text, or those in a list or tuple, with spaces between them.
fn texts(expr: &ast::Expr) -> String {
    match expr {
        ast::Expr::StringLiteral(text) => text.value.to_str().to_owned(),
        ast::Expr::List(ast::ExprList { elts, .. }) | ast::Expr::Tuple(ast::ExprTuple { elts, .. }) => {
            elts.iter().map(texts).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

/// Names of the fields of a named tuple, from the name that its class goes by.
fn fields_of(class: &str) -> impl Iterator<Item = &str> {
    let fields = class.split_once(".<").and_then(|(_, fields)| fields.strip_suffix('>'));
    fields.into_iter().flat_map(str::split_whitespace)
}

/// What is drawn hardly comes back, unless it is a whole number of not too many.
fn drawn(name: &str, given: &Given) -> Traits {
    const FEW: i64 = 16;
    const MANY_BITS: i64 = 32;
    let last = name.rsplit('.').next().unwrap_or_default();
    let bits = given.positional.first().filter(|_| last == "getrandbits").map(|value| value.literal);
    if !WHOLE_NUMBERS.contains(&last) || matches!(bits, Some(Literal::Int(bits)) if bits >= MANY_BITS) {
        return Traits::UNIQUE;
    }
    let bounds = given.positional.iter().take(2).map(|value| match value.literal {
        Literal::Int(bound) => Some(bound),
        _ => None,
    });
    match bounds.collect::<Option<Vec<i64>>>().as_deref() {
        Some([low, high]) if (high - low).abs() <= FEW => Traits::NONE_OF_ALL,
        Some([low, high]) if (high - low).abs() >> (MANY_BITS - 1) > 0 => Traits::UNIQUE,
        Some([high]) if *high <= FEW => Traits::NONE_OF_ALL,
        Some([high]) if *high >> (MANY_BITS - 1) > 0 => Traits::UNIQUE,
        _ => Traits::DRAWN,
    }
}

/// What draws whole numbers.
const WHOLE_NUMBERS: &[&str] = &["randint", "randrange", "integers", "randint_like", "getrandbits"];

const FIGURE: &str = "matplotlib.figure.Figure";
const AXES: &str = "matplotlib.axes.Axes";

/// `x.to(torch.float32)`, `x.to(dtype=y.dtype)`: another type, at the same place.
fn converts(arguments: &ast::Arguments) -> bool {
    let is_type = |expr: &ast::Expr| {
        last_name(expr).is_some_and(|name| name.contains("dtype") || TYPES.contains(&name))
    };
    let by_name = |keyword: &ast::Keyword| keyword.arg.as_ref().is_some_and(|name| name.as_str() == "dtype");
    arguments.args.first().is_some_and(is_type)
        || arguments.args.is_empty() && arguments.keywords.iter().any(by_name)
}

const TYPES: &[&str] = &[
    "float",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "half",
    "double",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "long",
    "short",
    "bool",
    "complex64",
    "complex128",
];

/// Applies something to its input, as a layer or a solver's step does: what comes out is no mere sum with it.
fn applies(name: &str) -> bool {
    const STEPS: &[&str] = &["matmul", "mm", "bmm", "mv", "addmm", "einsum", "linear", "bilinear", "grad"];
    name.rsplit('.').next().is_some_and(|last| STEPS.contains(&last))
}

/// Whether a call gives several tensors, each with its own storage: `x.max(1)`, `torch.topk(x, 5)`.
fn gives_pieces(name: &str, given: &Given) -> bool {
    const ALWAYS: &[&str] =
        &["topk", "sort", "svd", "qr", "eigh", "slogdet", "var_mean", "std_mean", "kthvalue", "mode"];
    const BY_DIMENSION: &[&str] = &["max", "min", "median", "nanmedian", "cummax", "cummin"];
    let Some((owner, function)) = name.rsplit_once('.') else { return false };
    let number = |value: &&Value| value.only(Kinds::NUMBER);
    match owner {
        "torch" | "torch.Tensor" if ALWAYS.contains(&function) => true,
        "torch" | "torch.Tensor" if BY_DIMENSION.contains(&function) => {
            given.all().any(|value| number(&value))
        }
        _ => false,
    }
}

/// Whether a call gives one number of all: `x.mean()`, `torch.sum(x)`, a loss.
fn gives_a_scalar(name: &str, given: &Given) -> bool {
    const REDUCE: &[&str] =
        &["mean", "sum", "max", "min", "norm", "std", "var", "median", "prod", "nanmean", "nansum"];
    const LOSSES: &[&str] =
        &["cross_entropy", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits"];
    if let Some(function) = name.strip_prefix("torch.nn.functional.") {
        return function.ends_with("_loss") || LOSSES.contains(&function);
    }
    let reduces = |function: &str| REDUCE.contains(&function) && given.named.is_empty();
    match name.rsplit_once('.') {
        Some(("torch.Tensor", function)) => reduces(function) && given.positional.is_empty(),
        Some(("torch", function)) => reduces(function) && given.positional.len() == 1,
        _ => false,
    }
}

/// The result of `dataclasses.replace`: as new as the values that are replaced.
fn replaced(object: Value, given: &Given) -> Value {
    object.with(given.named.iter().fold(Traits::NONE_OF_ALL, |traits, (_, value)| traits.with(value.traits)))
}

/// Whether a call makes an array of one dimension: `np.zeros(4)`.
fn makes_a_row(name: &str, given: &Given) -> bool {
    let made = name.strip_prefix("numpy.");
    let sized = made.is_some_and(|made| ["zeros", "ones", "empty", "full"].contains(&made));
    sized && given.first().only(Kinds::NUMBER) || matches!(made, Some("arange" | "linspace"))
}

/// What a change of shape leaves: `x.reshape(1)`, `x.view(-1)` and `x.flatten()` have one dimension.
fn reshaped(value: Value, name: &str, given: &Given) -> Value {
    let Some(method) = name.strip_prefix("torch.Tensor.") else { return value };
    match method {
        "reshape" | "view" => {
            let one = given.named.is_empty()
                && matches!(&*given.positional, [only] if matches!(only.literal, Literal::Int(_)));
            if one { value.with(Traits::FLAT) } else { value.without(Traits::FLAT) }
        }
        "flatten" | "ravel" if given.all().next().is_none() => value.with(Traits::FLAT),
        "unsqueeze" | "expand" | "repeat" | "unflatten" => value.without(Traits::FLAT),
        _ => value,
    }
}

/// What `numpy` computes from numbers alone, or from what may be one.
fn computes_a_number(name: &str, given: &Given) -> bool {
    const ELEMENTWISE: &[&str] = &[
        "abs", "absolute", "ceil", "clip", "cos", "exp", "floor", "isfinite", "isnan", "log", "log10",
        "log1p", "log2", "maximum", "minimum", "power", "rint", "round", "sign", "sin", "sqrt", "square",
        "tanh",
    ];
    name.strip_prefix("numpy.").is_some_and(|function| ELEMENTWISE.contains(&function))
        && given.all().all(|value| !value.kinds.has(Kinds::ARRAY.with(Kinds::TENSOR)))
}
