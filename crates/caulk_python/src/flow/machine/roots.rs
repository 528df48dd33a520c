//! What is run that nobody in the project calls: module bodies, what frameworks call, handlers, the rest.

use rustc_hash::FxHashSet;

use crate::flow::event::Root;
use crate::flow::heap::{Maker, Shape};
use crate::flow::ids::{ClassId, FunctionId, LoopId, ObjectId};
use crate::flow::machine::attributes::MethodKind;
use crate::flow::machine::before::Before;
use crate::flow::machine::order::import_order;
use crate::flow::machine::{Callee, Machine};
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Literal, Traits, Value};
use crate::library::roles::{HOOKS, Hook};

const CALLBACKS: &[LoopId] = &[LoopId::CALLBACKS];
/// Called back at every step of a training.
const AT_STEPS: &[LoopId] = &[LoopId::CALLBACKS, LoopId::EPOCHS, LoopId::STEPS];

impl Machine<'_> {
    pub(crate) fn run_roots(&mut self) {
        for module in import_order(self.project, &self.scopes.modules) {
            let callee = outermost(module, None);
            self.activate(callee, Vec::new(), Some(Root::Module));
        }
        self.run_constructors();
        self.run_hooks();
        self.run_handed();
        self.run_collations();
        self.run_uncalled();
    }

    /// Objects of every class as somebody outside would make them.
    fn run_constructors(&mut self) {
        for class in (0..self.scopes.classes.len() as u32).map(ClassId) {
            let object = self.anybody(class);
            for name in ["__init__", "__post_init__"] {
                if let Some(function) = self.method(class, name) {
                    self.run_method(function, object, Root::Uncalled, true);
                }
            }
        }
    }

    /// The function of a class's method, inherited ones included.
    pub(super) fn method(&mut self, class: ClassId, name: &str) -> Option<ObjectId> {
        let name = self.symbols.intern(name);
        let member = self.class_member(class, name)?;
        member.objects.iter().find(|object| matches!(self.heap.shape(*object), Shape::Function(..)))
    }

    fn run_method(&mut self, function: ObjectId, receiver: ObjectId, root: Root, recording: bool) {
        self.run_given(function, receiver, &[], root, recording);
    }

    /// As [`Self::run_method`], where the first arguments are known.
    pub(super) fn run_given(
        &mut self,
        function: ObjectId,
        receiver: ObjectId,
        arguments: &[Value],
        root: Root,
        recording: bool,
    ) {
        let Shape::Function(id, closure) = self.heap.shape(function) else { return };
        let bound = (self.method_kind(id) != MethodKind::Static).then_some(receiver);
        let mut given = self.outside_arguments(function, id, bound);
        for (value, known) in given.iter_mut().skip(usize::from(bound.is_some())).zip(arguments) {
            *value = *known;
        }
        let maker = Maker::Receiver(receiver);
        let callee = Callee { function: id, closure, maker, receiver: bound, recording };
        self.activate(callee, given, Some(root));
    }

    /// What is known of arguments that come from outside: annotations and defaults.
    fn outside_arguments(
        &mut self,
        object: ObjectId,
        function: FunctionId,
        receiver: Option<ObjectId>,
    ) -> Vec<Value> {
        let mut given = self.parameters(object, function, receiver, &[], &[]);
        let definition = self.scopes.function(function);
        let (file, constructs) = (definition.file, definition.name == self.names.init);
        let Some(parameters) = definition.parameters() else { return given };
        for (value, parameter) in
            given.iter_mut().zip(parameters.iter()).skip(usize::from(receiver.is_some()))
        {
            // A switch is off until the project turns it on.
            let is_off = constructs && value.literal == Literal::Bool(false);
            if parameter.is_variadic() || is_off {
                continue;
            }
            let annotated =
                parameter.as_parameter().annotation.as_deref().and_then(|expr| self.annotated(file, expr));
            // A default is one of many things that may be given.
            *value = match annotated {
                Some(known) => known.join(&Value { kinds: value.kinds.without(Kinds::UNKNOWN), ..*value }),
                None => value.or(Kinds::UNKNOWN),
            };
        }
        given
    }

    /// What nobody knows of an argument, its annotation may tell.
    pub(super) fn as_annotated(&mut self, function: FunctionId, given: &mut [Value]) {
        let definition = self.scopes.function(function);
        let file = definition.file;
        for (value, parameter) in given.iter_mut().zip(definition.parameters().into_iter().flatten()) {
            if parameter.is_variadic() || !value.only(Kinds::UNKNOWN) || !value.objects.is_empty() {
                continue;
            }
            let annotation = parameter.as_parameter().annotation.as_deref();
            if let Some(known) = annotation.and_then(|expr| self.annotated(file, expr)) {
                *value = Value { kinds: known.kinds, objects: known.objects, ..*value };
            }
        }
    }

    /// A value of an annotation's type, where that says something.
    fn annotated(&mut self, file: crate::project::FileId, expr: &ruff_python_ast::Expr) -> Option<Value> {
        use ruff_python_ast::Expr;
        match expr {
            Expr::Name(name) => {
                match name.id.as_str() {
                    "int" | "float" | "bool" => return Some(Value::of(Kinds::NUMBER)),
                    "str" => return Some(Value::of(Kinds::TEXT)),
                    _ => {}
                }
                let module = self.module_object(file);
                let symbol = self.symbols.at(&name.node_index, name.id.as_str());
                let known = self.heap.field(module, symbol)?;
                self.instance_of(&known)
            }
            Expr::Attribute(attribute) => {
                let mut dotted = vec![attribute.attr.as_str()];
                let mut at = &*attribute.value;
                while let Expr::Attribute(inner) = at {
                    dotted.push(inner.attr.as_str());
                    at = &inner.value;
                }
                let Expr::Name(root) = at else { return None };
                let module = self.module_object(file);
                let symbol = self.symbols.at(&root.node_index, root.id.as_str());
                let known = self.heap.field(module, symbol)?;
                let object = known.objects.iter().next()?;
                let Shape::External(root) = self.heap.shape(object) else { return None };
                dotted.reverse();
                let name = format!("{}.{}", self.symbols.name(root), dotted.join("."));
                let external = Value::object(self.external(&name));
                self.instance_of(&external)
            }
            Expr::Subscript(subscript)
                if crate::flow::syntax::last_name(&subscript.value) == Some("Optional") =>
            {
                self.annotated(file, &subscript.slice)
            }
            Expr::BinOp(either) => {
                self.annotated(file, &either.left).or_else(|| self.annotated(file, &either.right))
            }
            _ => None,
        }
    }

    fn instance_of(&mut self, class: &Value) -> Option<Value> {
        let object = class.objects.iter().next()?;
        match self.heap.shape(object) {
            Shape::Class(class) => {
                let anybody = self.anybody(class);
                let module = self.is_module_class(class);
                let value = Value::object(anybody);
                Some(if module { value.or(Kinds::MODULE) } else { value })
            }
            Shape::External(symbol) => match self.symbols.name(symbol) {
                "torch.Tensor" | "torch.FloatTensor" | "torch.LongTensor" => {
                    Some(Value::of(Kinds::TENSOR).with(Traits::DATA))
                }
                "torch.utils.data.DataLoader" => Some(Value::of(Kinds::LOADER)),
                "torch.optim.Optimizer" => Some(Value::of(Kinds::OPTIMIZER)),
                "numpy.ndarray" => Some(Value::of(Kinds::ARRAY)),
                name if name.starts_with("torch.nn.") || name.ends_with("LightningModule") => {
                    Some(Value::of(Kinds::MODULE))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn run_hooks(&mut self) {
        for class in (0..self.scopes.classes.len() as u32).map(ClassId) {
            for (id, name) in self.methods_with_inherited(class) {
                let name = self.symbols.name(name).to_owned();
                let Some(hook) =
                    HOOKS.iter().find(|hook| fits(hook, &name) && self.is_based_on(class, hook.base))
                else {
                    continue;
                };
                // What the project calls itself is known better.
                if hook.base == "torch.nn.Module" && self.per_function.contains_key(&id) {
                    continue;
                }
                let object = self.anybody(class);
                let root = if self.is_test(id) { Root::Test } else { Root::Framework(hook.loops) };
                if let Some(function) = self.method(class, &name) {
                    let argument: Vec<Value> = hook.argument.map(Value::of).into_iter().collect();
                    self.run_given(function, object, &argument, root, hook.recording);
                }
            }
        }
    }

    /// Methods that objects of a class have, those of its bases in the project included.
    pub(super) fn methods_with_inherited(&mut self, class: ClassId) -> Vec<(FunctionId, Symbol)> {
        let mut found = Vec::new();
        let mut classes = vec![class];
        let mut at = 0;
        while let Some(&class) = classes.get(at) {
            found.extend(self.scopes.class(class).methods.iter().map(|(name, id)| (*id, *name)));
            found.extend(self.taken_up(class));
            let bases = self.bases_of(class).into_iter().filter(|base| !classes.contains(base));
            classes.extend(bases.collect::<Vec<_>>());
            at += 1;
        }
        found.sort_unstable();
        found.dedup_by_key(|(_, name)| *name);
        found
    }

    /// Functions from elsewhere that a class binds as methods: `on_epoch_end = report`.
    fn taken_up(&mut self, class: ClassId) -> Vec<(FunctionId, Symbol)> {
        let object = self.class_object(class);
        let fields = self.heap.get(object).fields.iter();
        let bound = fields.flat_map(|(name, value)| value.objects.iter().map(move |object| (object, *name)));
        bound
            .filter_map(|(object, name)| match self.heap.shape(object) {
                Shape::Function(id, _) if self.scopes.function(id).class.is_none() => Some((id, name)),
                _ => None,
            })
            .collect()
    }

    fn is_based_on(&self, class: ClassId, base: &str) -> bool {
        self.derives(class, |name| match base.strip_prefix('.') {
            Some(_) => name.ends_with(base),
            None => match base.split_once('*') {
                Some((before, after)) => name.starts_with(before) && name.ends_with(after),
                None => name == base,
            },
        })
    }

    /// Functions that somebody got: hooks, targets of threads, handlers.
    fn run_handed(&mut self) {
        let mut handed: Vec<ObjectId> = self.handed.iter().copied().collect();
        handed.sort_unstable();
        let before = Before::new(self);
        for object in handed {
            if self.collates(object) {
                continue;
            }
            match self.heap.shape(object) {
                Shape::Function(id, closure) => {
                    let root = self.handed_root(object, id, &before);
                    let arguments = self.hook_arguments(object, root);
                    self.run_function(object, id, closure, &arguments, root);
                }
                Shape::Method(function, receiver) => {
                    let Shape::Function(id, _) = self.heap.shape(function) else { continue };
                    let root = self.handed_root(object, id, &before);
                    let arguments = self.hook_arguments(object, root);
                    self.run_given(function, receiver, &arguments, root, true);
                }
                _ => {}
            }
        }
    }

    /// Runs a function of no object, where the first arguments are known.
    pub(super) fn run_function(
        &mut self,
        object: ObjectId,
        id: FunctionId,
        closure: Option<ObjectId>,
        arguments: &[Value],
        root: Root,
    ) {
        let mut given = self.outside_arguments(object, id, None);
        for (value, known) in given.iter_mut().zip(arguments) {
            *value = *known;
        }
        self.activate(outermost(id, closure), given, Some(root));
    }

    /// What a hook is called with; without graphs where the function that registered it applies models without, or where some
    /// models are applied without: it may be the hook of a teacher.
    fn hook_arguments(&self, object: ObjectId, root: Root) -> Vec<Value> {
        let Some(hooked) = self.hooks.get(&object) else { return Vec::new() };
        let at_steps = root == Root::Framework(AT_STEPS);
        let without = self.applies.get(&hooked.by).is_some_and(|applies| !applies.recording)
            || at_steps && self.applies.values().any(|applies| applies.without);
        let seen = |value: &Value| match value.carries_graph() {
            true if without => value.detached(),
            true if at_steps => value.with(Traits::PROVED),
            _ => *value,
        };
        hooked.arguments.iter().map(seen).collect()
    }

    fn handed_root(&self, object: ObjectId, function: FunctionId, before: &Before) -> Root {
        let stays = || self.hooks.get(&object).is_some_and(|hooked| hooked.dropped);
        match self.is_test(function) {
            true => Root::Test,
            // Nobody can remove it: each step that applies the model calls it.
            false if stays() && before.is_registered(self, object) => Root::Framework(AT_STEPS),
            false => Root::Framework(CALLBACKS),
        }
    }

    /// The rest: first what no call names, then whatever is left.
    fn run_uncalled(&mut self) {
        let all = || (0..u32::MAX).map(FunctionId);
        let count = self.scopes.functions.len();
        self.run_inherited();
        // What somebody calls by name is met better from there.
        for id in all().take(count) {
            if !self.scopes.called.contains(&self.scopes.function(id).name) {
                self.run_alone(id);
            }
        }
        all().take(count).for_each(|id| self.run_alone(id));
    }

    /// Methods that classes inherit whose objects somebody else makes: a loop in the base calls what the class overrides.
    fn run_inherited(&mut self) {
        let made = self.made_classes();
        let all = (0..self.scopes.classes.len() as u32).map(ClassId);
        let bases: FxHashSet<ClassId> = all.clone().flat_map(|class| self.bases_of(class)).collect();
        for class in all.filter(|class| !made.contains(class) && !bases.contains(class)) {
            if self.bases_of(class).is_empty() {
                continue;
            }
            let object = self.anybody(class);
            for (id, _) in self.methods_with_inherited(class) {
                let definition = self.scopes.function(id);
                let inherited = definition.class.is_some_and(|owner| owner != class);
                if inherited
                    && definition.name != self.names.init
                    && !self.is_test(id)
                    && !self.is_run_on(id, object)
                {
                    let function = self.heap.unique(Shape::Function(id, None));
                    self.run_method(function, object, Root::Uncalled, true);
                }
            }
        }
    }

    /// Whether a method was met with an object as its receiver.
    fn is_run_on(&self, function: FunctionId, object: ObjectId) -> bool {
        let known = self.per_function.get(&function).into_iter().flatten();
        known.into_iter().any(|id| self.activations[id.0 as usize].receiver == Some(object))
    }

    /// Classes that some line makes an object of.
    fn made_classes(&self) -> FxHashSet<ClassId> {
        let objects = self.heap.ids().map(|id| self.heap.get(id)).filter(|object| object.at.is_some());
        objects
            .filter_map(|object| match object.shape {
                Shape::Instance(class) => Some(class),
                _ => None,
            })
            .collect()
    }

    /// Runs a function as somebody outside would, unless it was met before.
    fn run_alone(&mut self, id: FunctionId) {
        if self.per_function.contains_key(&id) {
            return;
        }
        let definition = self.scopes.function(id);
        let root = if self.is_test(id) { Root::Test } else { Root::Uncalled };
        match definition.class {
            Some(class) => {
                let object = self.anybody(class);
                let function = self.heap.unique(Shape::Function(id, None));
                self.run_method(function, object, root, true);
            }
            None if definition.free.is_empty() => {
                let function = self.heap.unique(Shape::Function(id, None));
                let given = self.outside_arguments(function, id, None);
                self.activate(outermost(id, None), given, Some(root));
            }
            // Inner functions run where their variables are known.
            None => {}
        }
    }

    /// A test, by the names of the function and its file.
    pub(crate) fn is_test(&self, function: FunctionId) -> bool {
        let definition = self.scopes.function(function);
        let path = &self.project.file(definition.file).path;
        let file = path.rsplit('/').next().unwrap_or(path);
        let in_tests = file.starts_with("test_") || file.ends_with("_test.py") || file == "conftest.py";
        in_tests
            || self.symbols.name(definition.name).starts_with("test_")
            || path.split('/').any(|folder| folder == "tests" || folder == "testing")
    }
}

/// A function that nobody in particular calls.
fn outermost(function: FunctionId, closure: Option<ObjectId>) -> Callee {
    Callee { function, closure, maker: Maker::Anyone, receiver: None, recording: true }
}

fn fits(hook: &Hook, method: &str) -> bool {
    match hook.method.strip_suffix('*') {
        Some(prefix) => method.starts_with(prefix),
        None => method == hook.method,
    }
}
