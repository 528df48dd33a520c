//! Attributes: of instances and their classes, of modules, of what libraries give.

use ruff_python_ast as ast;

use crate::flow::event::Place;
use crate::flow::heap::Shape;
use crate::flow::ids::{ClassId, FunctionId, ObjectId};
use crate::flow::machine::Machine;
use crate::flow::machine::frame::Frame;
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Traits, Value};

/// Classes that are looked through for one attribute.
const MAX_BASES: usize = 24;
/// Slots of tuples further back are asked for too rarely to be remembered.
const MAX_POSITION: usize = 64;

impl<'p> Machine<'p> {
    pub(crate) fn attribute(
        &mut self,
        f: &mut Frame,
        owner: &Value,
        attribute: &'p ast::ExprAttribute,
    ) -> Value {
        let text = attribute.attr.as_str();
        let name = self.symbols.at(&attribute.attr.node_index, text);
        let mut found = Value::NOTHING;
        for object in owner.objects.iter() {
            let value = self.member(f, object, name, attribute);
            found = found.join(&value);
        }
        let kinds = owner.kinds.without(Kinds::OBJECT);
        if !kinds.is_empty() && (owner.objects.is_empty() || kinds.has(Kinds::TENSOR)) {
            let value = Self::attribute_of_kind(owner, text);
            found = found.join(&value);
        }
        if found.is_nothing() {
            found = Value::UNKNOWN;
        }
        // What trainers of libraries count steps with.
        if text == "global_step" && found.only(Kinds::UNKNOWN) && found.objects.is_empty() {
            found = Value::of(Kinds::NUMBER).with(Traits::COUNTER);
        }
        let counts =
            found.kinds.has(Kinds::NUMBER.with(Kinds::UNKNOWN)) && counts_frames(&attribute.value, text);
        if counts { found.with(Traits::FRAMES) } else { found }
    }

    fn attribute_of_kind(owner: &Value, name: &str) -> Value {
        if owner.kinds.has(Kinds::TENSOR) {
            return match name {
                "data" => owner.detached(),
                "grad" => Value::of(Kinds::TENSOR),
                "shape" | "dtype" | "device" | "layout" | "grad_fn" | "names" => Value::of(Kinds::LIBRARY),
                "ndim" | "is_cuda" | "requires_grad" | "is_leaf" | "nbytes" | "itemsize" => {
                    Value::of(Kinds::NUMBER)
                }
                // `T`, `real`, `values` of a pair, `logits` of an output.
                _ => owner.without(Traits::PIECES),
            };
        }
        if owner.kinds.has(Kinds::ARRAY) {
            return match name {
                "T" | "real" | "imag" | "flat" => *owner,
                _ => Value::of(Kinds::LIBRARY),
            };
        }
        if owner.kinds.has(Kinds::MODULE) {
            return match name {
                "weight" | "bias" => Value::of(Kinds::TENSOR).with(Traits::LEAF),
                "training" => Value::of(Kinds::NUMBER),
                _ => Value::of(Kinds::UNKNOWN),
            };
        }
        if owner.kinds.has(Kinds::RECORD) {
            return match name {
                "args" | "exc_info" | "__dict__" => Value::of(Kinds::RECORD),
                "msg" => Value::UNKNOWN,
                "levelno" | "lineno" | "created" | "process" | "thread" => Value::of(Kinds::NUMBER),
                _ => Value::of(Kinds::TEXT),
            };
        }
        if owner.kinds.has(Kinds::EXCEPTION) {
            return match name {
                "__traceback__" | "__context__" | "__cause__" => Value::of(Kinds::EXCEPTION),
                _ => Value::UNKNOWN,
            };
        }
        if owner.kinds.has(Kinds::TABLE) {
            return Value::of(Kinds::TABLE);
        }
        if owner.kinds.has(Kinds::LIBRARY) {
            return Value::of(Kinds::UNKNOWN);
        }
        // A gradient, whoever has one.
        if name == "grad" { Value::of(Kinds::TENSOR) } else { Value::UNKNOWN }
    }

    /// An attribute of an object.
    fn member(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: Symbol,
        attribute: &'p ast::ExprAttribute,
    ) -> Value {
        match self.heap.shape(object) {
            Shape::Instance(class) => {
                if let Some(mut value) = self.heap.field(object, name) {
                    // A parameter that only the constructor binds is never made from itself.
                    if self.scopes.rebound_fields.contains(&name) && self.is_state(&value) {
                        let place = self.place(Place::Field(object, name));
                        value.carried.put(place);
                    }
                    // A default of the class shows where no instance has its own.
                    return value;
                }
                match self.class_member(class, name).or_else(|| self.started(class, name)) {
                    Some(member) => self.bind(f, member, object, attribute),
                    None => self.missing_member(name),
                }
            }
            Shape::Class(class) => {
                let member = self.class_member(class, name).unwrap_or(Value::UNKNOWN);
                self.bind_to_class(member, object)
            }
            Shape::Super(class, object) => {
                let member = self.bases_of(class).into_iter().find_map(|base| self.class_member(base, name));
                match member {
                    Some(member) => self.bind(f, member, object, attribute),
                    None => Value::of(Kinds::LIBRARY),
                }
            }
            Shape::Module(file) => {
                if let Some(value) = self.heap.field(object, name) {
                    return value;
                }
                // `import package.module` binds the package alone.
                let text = self.symbols.name(name).to_owned();
                match self.project.relative(file, 1, &text) {
                    Some(inner) => Value::object(self.module_object(inner)),
                    None => Value::UNKNOWN,
                }
            }
            Shape::External(symbol) => {
                let (package, member) = (self.symbols.name(symbol), self.symbols.name(name));
                // `import package.module` where the package is a folder without `__init__.py`.
                match self.project.submodule(f.file, 0, package, member) {
                    Some(inner) => Value::object(self.module_object(inner)),
                    None => Value::object(self.external_member(symbol, name)),
                }
            }
            Shape::Foreign(_) => {
                let mut value = self.heap.field(object, name).unwrap_or(Value::UNKNOWN);
                if self.scopes.rebound_fields.contains(&name) && value.kinds.has(Kinds::TENSOR) {
                    let place = self.place(Place::Field(object, name));
                    value.carried.put(place);
                }
                value
            }
            Shape::Tuple if let Some(value) = self.heap.field(object, name) => value,
            shape if shape.is_container() || matches!(shape, Shape::Tuple | Shape::Iterator) => {
                Value::object(self.heap.unique(Shape::BuiltIn(object, name)))
            }
            Shape::Function(..) => self.heap.field(object, name).unwrap_or(Value::UNKNOWN),
            _ => Value::NOTHING,
        }
    }

    /// A method of an object whose name begins so, where it has some: it keeps the object. Which one it is, and so what a
    /// call of it does, is not known.
    pub(super) fn any_method(&mut self, object: ObjectId, prefix: &str) -> Option<ObjectId> {
        let Shape::Instance(class) = self.heap.shape(object) else { return None };
        let fits = |machine: &Self, (id, name): (FunctionId, Symbol)| {
            let name = machine.symbols.name(name);
            name.starts_with(prefix)
                && !name.starts_with("__")
                && machine.method_kind(id) == MethodKind::Plain
        };
        let some = self.methods_with_inherited(class).into_iter().any(|method| fits(self, method));
        some.then(|| self.heap.unique(Shape::BuiltIn(object, self.names.any)))
    }

    /// `start` of a class of threads calls its method `run`: once for each object that is started.
    fn started(&mut self, class: ClassId, name: Symbol) -> Option<Value> {
        let starts =
            self.symbols.name(name) == "start" && self.derives(class, |base| base == "threading.Thread");
        if starts { self.method(class, "run").map(Value::object) } else { None }
    }

    /// An attribute that neither the object nor the project's part of its class has.
    fn missing_member(&self, name: Symbol) -> Value {
        match self.symbols.name(name) {
            "training" => Value::of(Kinds::NUMBER),
            "device" => Value::of(Kinds::LIBRARY),
            _ => Value::UNKNOWN,
        }
    }

    /// What a member of a class is on an object: a method with its receiver, a property's value.
    fn bind(
        &mut self,
        f: &mut Frame,
        member: Value,
        receiver: ObjectId,
        attribute: &'p ast::ExprAttribute,
    ) -> Value {
        let mut bound = Value { objects: Value::NOTHING.objects, ..member };
        for object in member.objects.iter() {
            let Shape::Function(function, _) = self.heap.shape(object) else {
                bound.objects.insert(object);
                continue;
            };
            match self.method_kind(function) {
                MethodKind::Static => {
                    bound.objects.insert(object);
                }
                MethodKind::Property => {
                    let result = self.call_function(f, object, Some(receiver), &[], &[], attribute);
                    bound = bound.join(&result);
                }
                MethodKind::Setter => {}
                MethodKind::Plain | MethodKind::Class => {
                    let method = self.heap.unique(Shape::Method(object, receiver));
                    bound.objects.insert(method);
                }
            }
        }
        if bound.objects.is_empty() {
            bound.kinds = bound.kinds.without(Kinds::OBJECT);
        }
        bound
    }

    /// What a member of a class is on the class itself: a class method has it as its receiver.
    fn bind_to_class(&mut self, member: Value, class: ObjectId) -> Value {
        let mut bound = Value { objects: Value::NOTHING.objects, ..member };
        for object in member.objects.iter() {
            let of_class = match self.heap.shape(object) {
                Shape::Function(function, _) => self.method_kind(function) == MethodKind::Class,
                _ => false,
            };
            bound.objects.insert(if of_class {
                self.heap.unique(Shape::Method(object, class))
            } else {
                object
            });
        }
        bound
    }

    pub(crate) fn method_kind(&self, function: FunctionId) -> MethodKind {
        let Some(definition) = self.scopes.function(function).definition() else { return MethodKind::Plain };
        for decorator in &definition.decorator_list {
            match crate::flow::syntax::last_name(&decorator.expression) {
                Some("staticmethod") => return MethodKind::Static,
                Some("classmethod") => return MethodKind::Class,
                Some("property" | "cached_property" | "getter") => return MethodKind::Property,
                Some("setter") => return MethodKind::Setter,
                _ => {}
            }
        }
        MethodKind::Plain
    }

    /// An attribute of a class or its bases in the project.
    pub(crate) fn class_member(&mut self, class: ClassId, name: Symbol) -> Option<Value> {
        // Most members are the class's own.
        let own = self.class_object(class);
        if let Some(value) = self.heap.field(own, name) {
            return Some(value);
        }
        let mut seen = Vec::new();
        let mut open = vec![class];
        while let Some(class) = open.pop() {
            if seen.contains(&class) || seen.len() >= MAX_BASES {
                continue;
            }
            seen.push(class);
            let object = self.class_object(class);
            if let Some(value) = self.heap.field(object, name) {
                return Some(value);
            }
            // The first base comes first.
            open.extend(self.bases_of(class).into_iter().rev());
        }
        None
    }

    /// Bases of a class that the project defines.
    pub(crate) fn bases_of(&self, class: ClassId) -> Vec<ClassId> {
        let bases = self.bases.get(&class).into_iter().flatten();
        bases
            .flat_map(|base| base.objects.iter())
            .filter_map(|object| match self.heap.shape(object) {
                Shape::Class(base) => Some(base),
                _ => None,
            })
            .collect()
    }

    /// Whether a class is derived from a library's class whose canonical name fits.
    pub(crate) fn derives(&self, class: ClassId, fits: impl Fn(&str) -> bool) -> bool {
        if self.bases.get(&class).is_none_or(Vec::is_empty) {
            return false;
        }
        let mut seen = Vec::new();
        let mut open = vec![class];
        while let Some(class) = open.pop() {
            if seen.contains(&class) || seen.len() >= MAX_BASES {
                continue;
            }
            seen.push(class);
            for base in self.bases.get(&class).into_iter().flatten() {
                for object in base.objects.iter() {
                    match self.heap.shape(object) {
                        Shape::Class(base) => open.push(base),
                        Shape::External(symbol) if fits(self.symbols.name(symbol)) => return true,
                        _ => {}
                    }
                }
            }
        }
        false
    }

    /// Canonical names of the library classes that a class is derived from.
    pub(crate) fn library_bases(&self, class: ClassId) -> Vec<String> {
        let found = std::cell::RefCell::new(Vec::new());
        self.derives(class, |base| {
            found.borrow_mut().push(base.to_owned());
            false
        });
        found.into_inner()
    }

    /// Is it a model, by its bases?
    pub(crate) fn is_module_class(&self, class: ClassId) -> bool {
        self.derives(class, |base| {
            matches!(base, "torch.nn.Module" | "lightning.LightningModule")
                || base.starts_with("torch.nn.") && !base.starts_with("torch.nn.utils")
                || base.ends_with(".LightningModule")
                || base.ends_with("PreTrainedModel")
        })
    }

    /// The name of a slot of a tuple.
    pub(crate) fn position(&mut self, position: usize) -> Symbol {
        while self.positions.len() <= position.min(MAX_POSITION) {
            let next = self.positions.len().to_string();
            self.positions.push(self.symbols.intern(&next));
        }
        match self.positions.get(position) {
            Some(known) => *known,
            None => self.symbols.intern(&position.to_string()),
        }
    }
}

/// Whether an attribute is as many as a video has frames; settings say how many are wanted.
fn counts_frames(owner: &ast::Expr, name: &str) -> bool {
    let settings = |owner: &str| {
        let owner = owner.to_ascii_lowercase();
        ["self", "cls", "args", "cfg", "config", "conf", "opt", "opts", "hparams", "params", "settings"]
            .contains(&owner.as_str())
    };
    crate::library::roles::is_frame_count(name)
        && crate::flow::syntax::last_name(owner).is_some_and(|owner| !settings(owner))
}

/// How a function in a class body is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MethodKind {
    Plain,
    Static,
    Class,
    Property,
    /// What is called when a property is bound.
    Setter,
}
