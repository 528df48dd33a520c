//! A holder path in words: as steps, and as the expression that a person would type.
//!
//! Labels read namespaces, member descriptors and indices; they never call `getattr` on the user's objects.

use std::collections::HashSet;
use std::ffi::c_void;
use std::mem;

use caulk_wire::{Holder, PathStep, StepKind};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::frames;
use crate::heap::{
    Address, Entries, Heap, MOST_REFERENTS, Shape, cell_contents, is_a, loaded, member, namespace_of,
    type_name,
};
use crate::holders::{Path, Root};
use crate::symbols;
use crate::torch::Torch;

/// Modules with a class `Queue`, the attribute with its elements, and that with its largest size, as in CPython's library.
/// Elements that `multiprocessing` has not written to its pipe yet wait in a buffer.
const QUEUES: [(&str, &str, &str); 3] = [
    ("queue", "queue", "maxsize"),
    ("asyncio.queues", "_queue", "_maxsize"),
    ("multiprocessing.queues", "_buffer", "_maxsize"),
];
/// Attributes in which a `torch.nn.Module` keeps what people know as its attributes.
const REGISTRIES: [&str; 3] = ["_modules", "_parameters", "_buffers"];
/// Modules that are known for the children and parameters in them.
const CONTAINERS: [&str; 5] = ["ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict"];
/// Attributes of one object that are looked at.
const MOST_ATTRIBUTES: usize = 256;

/// A described path.
pub(crate) struct Label {
    pub(crate) holder: Holder,
    /// The container is that of a `functools` cache wrapper: this one.
    pub(crate) cache: Option<Address>,
    /// The container is the deque inside a queue object.
    pub(crate) queue: Option<Queue>,
    /// Address of the object whose attribute the container is, for watching it being replaced.
    pub(crate) owner: Option<Address>,
}

/// A queue object.
pub(crate) struct Queue {
    /// The most elements that it takes; `None` if there is no such number.
    pub(crate) most: Option<u64>,
}

/// Describes a path; `id` and `boundary` are left to the caller.
pub(crate) fn describe(heap: &mut Heap<'_>, path: &Path) -> Label {
    let mut writer = Writer {
        heap,
        holder: Holder { complete: true, ..Holder::default() },
        owner: None,
        cache: None,
        hidden: None,
        items: None,
        cell: None,
    };
    writer.root(path);
    for pair in path.nodes.windows(2) {
        writer.edge(pair[0], pair[1]);
    }
    writer.end(path);
    let queue = writer.fold_queue(path);
    let Writer { holder, owner, cache, .. } = writer;
    Label { holder, cache, queue, owner }
}

impl Label {
    /// What a `functools` cache wraps: the function, its file and first line, instead of who was running.
    pub(crate) fn place_of_cached(&mut self, heap: &Heap<'_>, wrapper: Address) {
        let code = namespace_of(&heap.own(wrapper))
            .and_then(|namespace| namespace.get_item("__wrapped__").ok()?)
            .filter(|function| heap.is_function(function))
            .and_then(|function| function.getattr("__code__").ok());
        if let Some(code) = code {
            self.holder.function = frames::function_of(&code);
            self.holder.file = frames::file_of(&code);
            self.holder.line = code.getattr("co_firstlineno").and_then(|line| line.extract()).unwrap_or(0);
        }
    }

    /// The path leads to one of several entries; all of them are meant.
    pub(crate) fn name_all_entries(&mut self) {
        let Some(last) = self.holder.path.last_mut() else { return };
        if self.holder.expression.ends_with(&format!("[{}]", last.name)) {
            self.holder.expression.truncate(self.holder.expression.len() - last.name.len() - 1);
            self.holder.expression.push_str("...]");
            "...".clone_into(&mut last.name);
        }
    }

    /// The path leads to a parameter; what is kept is its gradient.
    pub(crate) fn add_gradient(&mut self, parameter: Address) {
        let step =
            PathStep { kind: StepKind::Attribute, name: "grad".into(), type_name: "torch.Tensor".into() };
        self.holder.path.push(step);
        self.holder.expression.push_str(".grad");
        "grad".clone_into(&mut self.holder.name);
        self.holder.owner_type = "torch.nn.parameter.Parameter".into();
        self.owner = Some(parameter);
    }
}

/// Names by which source code may mention what is held, the closest first: its keys, and the attribute or variable that
/// they are keys of.
pub(crate) fn mentioned_as(holder: &Holder) -> Vec<String> {
    let mut names = vec![holder.name.clone()];
    for step in holder.path.iter().rev() {
        match step.kind {
            StepKind::Key => names.push(unquoted(&step.name).to_owned()),
            StepKind::Index | StepKind::Internal => {}
            _ => {
                names.push(step.name.clone());
                break;
            }
        }
    }
    if holder.name == "__dict__" {
        names.push("setattr".into());
    }
    let mut seen = HashSet::new();
    names.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    names
}

fn unquoted(key: &str) -> &str {
    key.trim_matches(['\'', '"'])
}

/// The holder of something that no Python object was found to refer to.
pub(crate) fn held_from_c(id: u32, boundary: u32, type_name: &str) -> Holder {
    let step = PathStep { kind: StepKind::Native, name: String::new(), type_name: type_name.to_owned() };
    Holder { id, boundary, path: vec![step], complete: false, ..Holder::default() }
}

/// Is this loaded module the user's own?
pub(crate) fn is_user_module(py: Python<'_>, name: &str) -> bool {
    let file = loaded(py, name).and_then(|module| member(&module, "__file__")?.extract::<String>().ok());
    name == "__main__" || file.is_some_and(|file| frames::is_user_file(&file))
}

/// A dict that is part of the object before it: an instance's or a class's namespace, or a module's `_modules`.
struct Hidden {
    namespace: Address,
    /// The object that it belongs to.
    owner: Address,
    kind: StepKind,
    name: &'static str,
}

struct Writer<'a, 'py> {
    heap: &'a mut Heap<'py>,
    holder: Holder,
    owner: Option<Address>,
    cache: Option<Address>,
    /// Not named unless it is the end.
    hidden: Option<Hidden>,
    /// A function's tuple of cells or defaults that comes next, with the names of its items.
    items: Option<(Address, StepKind, Vec<String>)>,
    /// Name of the variable whose cell comes next.
    cell: Option<String>,
}

impl<'py> Writer<'_, 'py> {
    fn root(&mut self, path: &Path) {
        match &path.root {
            Root::Module(name) => {
                self.step(StepKind::Module, name, String::new());
                if name != "__main__" {
                    self.holder.expression.clone_from(name);
                }
                let namespace = path.nodes[0];
                self.hide(namespace, namespace, StepKind::Global, "__dict__");
            }
            Root::Local { function, file, line, variable, thread } => {
                if let Some(thread) = thread {
                    self.step(StepKind::Thread, thread, String::new());
                }
                self.step(StepKind::Function, function, String::new());
                self.holder.function.clone_from(function);
                self.holder.file.clone_from(file);
                self.holder.line = *line;
                let type_name = self.heap.type_name(path.nodes[0]);
                self.named(StepKind::Local, variable, type_name, None);
            }
        }
    }

    /// What grows may be a namespace itself: attributes that are set under ever new names, a module's buffers.
    fn end(&mut self, path: &Path) {
        let Some(hidden) = self.hidden.take().filter(|hidden| Some(&hidden.namespace) == path.nodes.last())
        else {
            return;
        };
        let Hidden { namespace, owner, kind, name } = hidden;
        if kind == StepKind::Attribute && name != "__dict__" && self.is_container_of_torch(owner) {
            return;
        }
        let type_name = self.heap.type_name(namespace);
        if kind == StepKind::Global {
            self.step(kind, "globals()", type_name);
            "globals".clone_into(&mut self.holder.name);
            let expression = &mut self.holder.expression;
            expression.push_str(if expression.is_empty() { "globals()" } else { ".__dict__" });
        } else {
            let kind = if kind == StepKind::Default { StepKind::Attribute } else { kind };
            self.named(kind, name, type_name, Some(owner));
        }
    }

    /// Is it a `ModuleList` or the like, whose children are all that it is?
    fn is_container_of_torch(&self, object: Address) -> bool {
        let Some(module) = loaded(self.heap.py, "torch.nn.modules.container") else { return false };
        let object = self.heap.own(object);
        let is_one = |name: &&str| member(&module, name).is_some_and(|class| is_a(&object, &class));
        CONTAINERS.iter().any(is_one)
    }

    fn hide(&mut self, namespace: Address, owner: Address, kind: StepKind, name: &'static str) {
        self.hidden = Some(Hidden { namespace, owner, kind, name });
    }

    fn step(&mut self, kind: StepKind, name: &str, type_name: String) {
        self.holder.path.push(PathStep { kind, name: name.to_owned(), type_name });
    }

    /// A step by name, which is also how source mentions it.
    fn named(&mut self, kind: StepKind, name: &str, type_name: String, owner: Option<Address>) {
        self.step(kind, name, type_name);
        let expression = &mut self.holder.expression;
        match kind {
            StepKind::Attribute | StepKind::ClassAttribute => {
                expression.push('.');
                expression.push_str(name);
            }
            StepKind::Global if !expression.is_empty() => {
                expression.push('.');
                expression.push_str(name);
            }
            StepKind::Key => {
                expression.push('[');
                expression.push_str(name);
                expression.push(']');
            }
            _ => name.clone_into(expression),
        }
        unquoted(name).clone_into(&mut self.holder.name);
        self.owner = owner;
        self.holder.owner_type = match (kind, owner) {
            (StepKind::Attribute, Some(owner)) => self.heap.type_name(owner),
            (StepKind::ClassAttribute, Some(owner)) => self.heap.name_of_type(owner),
            _ => String::new(),
        };
    }

    fn edge(&mut self, parent: Address, child: Address) {
        // What is behind a result of a cache is not the cache.
        self.cache = None;
        if let Some(Hidden { namespace, owner, kind, .. }) = self.hidden.take()
            && namespace == parent
        {
            let name = self.key_of(parent, child).map_or_else(|| "?".into(), |key| plain_text(&key));
            return self.arrive(kind, &name, child, Some(owner));
        }
        match self.heap.type_of(parent).shape {
            Shape::Dict => {
                let key = self.key_of(parent, child);
                let name = key.map_or_else(|| "?".into(), |key| literal(&key, DEEPEST));
                self.arrive(StepKind::Key, &name, child, Some(parent));
            }
            Shape::List | Shape::Tuple | Shape::Deque | Shape::Set => self.index(parent, child),
            Shape::Function => self.function(parent, child),
            Shape::Type => self.hide(child, parent, StepKind::ClassAttribute, "__dict__"),
            Shape::LruCache => {
                self.cache = Some(parent).filter(|_| self.heap.dict_of_cache(parent) == Some(child));
                self.step(StepKind::Internal, "cache", self.heap.type_name(child));
            }
            _ => self.instance(parent, child),
        }
    }

    fn arrive(&mut self, kind: StepKind, name: &str, child: Address, owner: Option<Address>) {
        let type_name = self.heap.type_name(child);
        // `module._modules['head']` is `module.head` to everybody; hooks keep their registry's name.
        let registry = REGISTRIES.into_iter().find(|registry| *registry == name);
        if let Some(registry) = registry
            && kind == StepKind::Attribute
            && self.heap.type_of(child).shape == Shape::Dict
        {
            return self.hide(child, owner.unwrap_or(child), StepKind::Attribute, registry);
        }
        if name.bytes().next().is_some_and(|first| first.is_ascii_digit()) && kind == StepKind::Attribute {
            // Children of `nn.Sequential` are attributes named by number.
            self.named(StepKind::Key, name, type_name, owner);
            return;
        }
        self.named(kind, name, type_name, owner);
    }

    fn index(&mut self, parent: Address, child: Address) {
        let (mut index, mut found) = (0, None);
        self.heap.referents(parent, &mut |referent| {
            if referent == child {
                found = Some(index);
            }
            index += 1;
        });
        let shape = self.heap.type_of(parent).shape;
        let length = self.heap.length(parent).unwrap_or(index).max(index);
        // Lists and tuples are traversed from their end (CPython, `list_traverse`, `tupletraverse`).
        let from_end = matches!(shape, Shape::List | Shape::Tuple);
        let position = found.map(|at| if from_end { length - 1 - at } else { at });
        let type_name = self.heap.type_name(child);
        if let Some((tuple, kind, names)) = self.items.take()
            && tuple == parent
        {
            let name =
                position.and_then(|position| names.get(position).cloned()).unwrap_or_else(|| "?".into());
            if kind == StepKind::Closure {
                self.cell = Some(name);
            } else {
                self.named(kind, &name, type_name, None);
            }
            return;
        }
        let name = match (position, shape) {
            (Some(position), Shape::List | Shape::Tuple | Shape::Deque) => position.to_string(),
            _ => "...".into(),
        };
        self.step(StepKind::Index, &name, type_name);
        let expression = &mut self.holder.expression;
        expression.push('[');
        expression.push_str(&name);
        expression.push(']');
    }

    fn function(&mut self, parent: Address, child: Address) {
        let function = self.heap.own(parent);
        let read = |name: &str| function.getattr(name).ok().filter(|value| !value.is_none());
        let is_child = |value: &Bound<'py, PyAny>| value.as_ptr() as Address == child;
        let kind = ["__closure__", "__defaults__", "__kwdefaults__", "__dict__"]
            .into_iter()
            .find(|name| read(name).is_some_and(|value| is_child(&value)));
        match kind {
            Some("__kwdefaults__") => self.hide(child, parent, StepKind::Default, "__kwdefaults__"),
            Some("__dict__") => self.hide(child, parent, StepKind::Attribute, "__dict__"),
            Some("__closure__") => self.items = Some((child, StepKind::Closure, code_names(&function, 0))),
            Some(_) => {
                // Defaults belong to the last positional parameters.
                let length = self.heap.length(child).unwrap_or(0);
                self.items = Some((child, StepKind::Default, code_names(&function, length)));
            }
            None => self.step(StepKind::Internal, "function", self.heap.type_name(child)),
        }
    }

    fn instance(&mut self, parent: Address, child: Address) {
        let object = self.heap.own(parent);
        let type_name = self.heap.type_name(parent);
        if type_name == "cell" {
            let name = self.cell.take().unwrap_or_else(|| "?".into());
            let child_type = self.heap.type_name(child);
            return self.named(StepKind::Closure, &name, child_type, Some(parent));
        }
        if matches!(type_name.as_str(), "generator" | "coroutine" | "async_generator")
            && let Some(name) = suspended_local(&object, child)
        {
            let child_type = self.heap.type_name(child);
            return self.named(StepKind::Local, &name, child_type, None);
        }
        if let Some(namespace) = namespace_of(&object) {
            if namespace.as_ptr() as Address == child {
                return self.hide(child, parent, StepKind::Attribute, "__dict__");
            }
            if let Some(key) = key_in(&namespace, child) {
                return self.arrive(StepKind::Attribute, &plain_text(&key), child, Some(parent));
            }
        }
        if let Some(name) = slot_of(&object, child) {
            return self.arrive(StepKind::Attribute, &name, child, Some(parent));
        }
        if let Some(name) = self.registry_of_tensor(&object, child) {
            return self.arrive(StepKind::Attribute, name, child, Some(parent));
        }
        if is_context_variable(&object) {
            self.step(StepKind::Internal, "value", self.heap.type_name(child));
            self.owner = Some(parent);
            return;
        }
        let name = match type_name.as_str() {
            "method" | "builtin_function_or_method" => "__self__",
            "functools.partial" => "partial",
            _ => "",
        };
        let child_type = self.heap.type_name(child);
        let name = if name.is_empty() {
            type_name.rsplit('.').next().unwrap_or("?").to_owned()
        } else {
            name.to_owned()
        };
        self.step(StepKind::Internal, &name, child_type);
    }

    /// Hooks of a tensor are in dicts that its C++ side refers to.
    fn registry_of_tensor(&mut self, object: &Bound<'py, PyAny>, child: Address) -> Option<&'static str> {
        if !self.heap.is_plain_tensor(object) || self.heap.type_of(child).shape != Shape::Dict {
            return None;
        }
        // Reading them runs Python code where a mode is active (`torch.set_default_device`): off.
        let _overrides_off = Torch::new(self.heap.py)?;
        let is_it = |name: &&str| object.getattr(*name).is_ok_and(|value| value.as_ptr() as Address == child);
        ["_backward_hooks", "_post_accumulate_grad_hooks"].into_iter().find(is_it)
    }

    fn key_of(&self, dict: Address, value: Address) -> Option<Bound<'py, PyAny>> {
        key_in(&self.heap.own(dict).cast_into::<PyDict>().ok()?, value)
    }

    /// The container inside a queue is an implementation detail: the queue is what people know.
    fn fold_queue(&mut self, path: &Path) -> Option<Queue> {
        let owner = self.owner?;
        let (_, inside, most) = QUEUES.into_iter().find(|(module, inside, _)| {
            let queue = || loaded(self.heap.py, module).and_then(|module| member(&module, "Queue"));
            self.holder.name == *inside && queue().is_some_and(|queue| is_a(&self.heap.own(owner), &queue))
        })?;
        if !path.nodes.contains(&owner) {
            return None;
        }
        self.holder.path.pop();
        let expression = self.holder.expression.strip_suffix(inside)?.strip_suffix('.')?.to_owned();
        self.holder.expression = expression;
        let last = self.holder.path.last()?.clone();
        self.holder.name.clone_from(&last.name);
        self.holder.owner_type = String::new();
        let most = namespace_of(&self.heap.own(owner))
            .and_then(|namespace| namespace.get_item(most).ok()??.extract::<u64>().ok());
        // None or 0 is no bound.
        Some(Queue { most: most.filter(|most| *most > 0) })
    }
}

/// Has this node of a path a name of its own? A module's, class's or instance's namespace is a part of the one before it.
pub(crate) fn is_named(heap: &mut Heap<'_>, path: &Path, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return !matches!(path.root, Root::Module(_)) };
    if heap.type_of(path.nodes[before]).shape == Shape::Type {
        return false;
    }
    let owner = heap.own(path.nodes[before]);
    namespace_of(&owner).is_none_or(|namespace| namespace.as_ptr() as Address != path.nodes[at])
}

/// Is it a `contextvars.ContextVar`, whose methods are C code?
pub(crate) fn is_context_variable(object: &Bound<'_, PyAny>) -> bool {
    Some(object.get_type_ptr()) == symbols::context_variable_type()
}

/// The attributes of an object that it keeps in its namespace or in slots: names and values.
pub(crate) fn attributes(heap: &mut Heap<'_>, owner: Address) -> Vec<(String, Address)> {
    let object = heap.own(owner);
    if let Some(namespace) = namespace_of(&object) {
        let entries = namespace.iter().take(MOST_ATTRIBUTES);
        return entries.map(|(key, value)| (plain_text(&key), value.as_ptr() as Address)).collect();
    }
    let mut values = Vec::new();
    heap.referents(owner, &mut |value| values.push(value));
    let named = |value: Address| Some((slot_of(&object, value)?, value));
    values.into_iter().take(MOST_ATTRIBUTES).filter_map(named).collect()
}

/// What an object holds under a name: an attribute of its own, a key of a dict, a variable's cell, a parameter's gradient.
pub(crate) fn slot_value<'py>(heap: &mut Heap<'py>, owner: Address, name: &str) -> Option<Bound<'py, PyAny>> {
    let shape = heap.type_of(owner).shape;
    let object = heap.own(owner);
    if shape == Shape::Tensor && !heap.is_plain_tensor(&object) {
        return None;
    }
    if Some(object.get_type_ptr()) == symbols::cell_type() {
        return cell_contents(&object);
    }
    if is_context_variable(&object) {
        return object.call_method0("get").ok();
    }
    match shape {
        Shape::Dict => object.cast::<PyDict>().ok()?.get_item(name).ok()?,
        Shape::Tensor if name == "grad" => Torch::grad(&object),
        _ => namespace_of(&object)?.get_item(name).ok()?,
    }
}

fn key_in<'py>(dict: &Bound<'py, PyDict>, value: Address) -> Option<Bound<'py, PyAny>> {
    let mut entries = Entries::of(dict.as_ptr() as Address).take(MOST_REFERENTS);
    let (key, _) = entries.find(|(_, found)| *found == value)?;
    // SAFETY: nothing was called since the dict, which is alive, gave its key.
    Some(unsafe { Bound::from_borrowed_ptr(dict.py(), key as *mut ffi::PyObject) })
}

/// Name of the `__slots__` entry that holds `child`.
fn slot_of(object: &Bound<'_, PyAny>, child: Address) -> Option<String> {
    for class in object.get_type().mro().iter() {
        let namespace = class.getattr("__dict__").ok()?;
        for item in namespace.call_method0("items").ok()?.try_iter().ok()? {
            let (name, descriptor): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.ok()?.extract().ok()?;
            if descriptor.get_type().name().is_ok_and(|name| name == "member_descriptor")
                && descriptor
                    .call_method1("__get__", (object,))
                    .is_ok_and(|value| value.as_ptr() as Address == child)
            {
                return name.extract().ok();
            }
        }
    }
    None
}

fn suspended_local(generator: &Bound<'_, PyAny>, child: Address) -> Option<String> {
    let frame =
        ["gi_frame", "cr_frame", "ag_frame"].into_iter().find_map(|name| generator.getattr(name).ok())?;
    let mut found = None;
    frames::for_each_local(&frame, &mut |name, value| {
        if value.as_ptr() as Address == child {
            found = Some(name.to_owned());
        }
    });
    found
}

/// Names of a function's free variables, or of its last `defaults` positional parameters.
fn code_names(function: &Bound<'_, PyAny>, defaults: usize) -> Vec<String> {
    let read = || -> PyResult<Vec<String>> {
        let code = function.getattr("__code__")?;
        if defaults == 0 {
            return code.getattr("co_freevars")?.extract();
        }
        let mut names: Vec<String> = code.getattr("co_varnames")?.extract()?;
        names.truncate(code.getattr("co_argcount")?.extract()?);
        Ok(names.split_off(names.len().saturating_sub(defaults)))
    };
    read().unwrap_or_default()
}

fn plain_text(key: &Bound<'_, PyAny>) -> String {
    key.cast::<PyString>().map_or_else(|_| literal(key, DEEPEST), |text| text.to_string_lossy().into_owned())
}

/// Levels of tuples in a key that are written out.
const DEEPEST: u32 = 3;

/// A key as a person would type it; keys of the user's own types are shown by type, since `repr` would run their code.
fn literal(key: &Bound<'_, PyAny>, depth: u32) -> String {
    if let Ok(text) = key.cast_exact::<PyString>() {
        let text = text.to_string_lossy();
        let short: String = text.chars().take(60).collect();
        return format!("'{}'", short.replace('\\', "\\\\").replace('\'', "\\'"));
    }
    if let Ok(number) = key.cast_exact::<PyInt>() {
        let signed = number.extract::<i128>().map(|number| number.to_string());
        let text = signed.or_else(|_| number.extract::<u128>().map(|number| number.to_string()));
        return text.unwrap_or_else(|_| "<int>".into());
    }
    if let Some(number) = key.cast_exact::<PyFloat>().ok().and_then(float_literal) {
        return number;
    }
    if let (Ok(tuple), 1..) = (key.cast_exact::<PyTuple>(), depth) {
        let items: Vec<String> = tuple.iter().take(4).map(|item| literal(&item, depth - 1)).collect();
        return format!("({})", items.join(", "));
    }
    format!("<{}>", type_name(&key.get_type()))
}

/// As `repr` has it, which would also let handlers of signals run (CPython, `PyObject_Repr`).
fn float_literal(key: &Bound<'_, PyFloat>) -> Option<String> {
    // SAFETY: reads a slot of a static type, which `float` has.
    let represent = unsafe { ffi::PyType_GetSlot(&raw mut ffi::PyFloat_Type, ffi::Py_tp_repr) };
    // SAFETY: the type of the slot.
    let represent = unsafe { mem::transmute::<*mut c_void, Option<ffi::reprfunc>>(represent) }?;
    // SAFETY: a float; a new reference or null.
    let text = unsafe { Bound::from_owned_ptr_or_err(key.py(), represent(key.as_ptr())) };
    Some(text.ok()?.cast_into::<PyString>().ok()?.to_string_lossy().into_owned())
}
