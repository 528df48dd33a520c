//! Definitions of functions and classes.

use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::Ranged;

use crate::flow::heap::Shape;
use crate::flow::ids::{FunctionId, ObjectId};
use crate::flow::machine::Machine;
use crate::flow::machine::frame::Frame;
use crate::flow::run::Memo;
use crate::flow::scopes::located;
use crate::flow::value::Value;
use crate::project::FileId;

impl<'p> Machine<'p> {
    /// The function as an object, with the variables around it and the defaults of its parameters.
    pub(crate) fn function_object(&mut self, f: &mut Frame, node: &impl Ranged) -> Option<ObjectId> {
        let id = self.scopes.function_at(f.file, node.range())?;
        let closure = if self.scopes.function(id).free.is_empty() { None } else { f.variables.or(f.closure) };
        let object = self.heap.unique(Shape::Function(id, closure));
        let parameters = self.scopes.function(id).parameters();
        for parameter in parameters.iter().flat_map(|parameters| parameters.iter_non_variadic_params()) {
            if let Some(default) = parameter.default() {
                let value = self.eval(f, default);
                let name = self.symbols.at(&parameter.name().node_index, parameter.name().as_str());
                self.heap.set_field(object, name, value);
            }
        }
        Some(object)
    }

    pub(super) fn define_function(&mut self, f: &mut Frame, definition: &'p ast::StmtFunctionDef) {
        let Some(object) = self.function_object(f, definition) else { return };
        for decorator in &definition.decorator_list {
            self.decorate(f, &decorator.expression, object);
            // `@engine.on(Events.ITERATION_COMPLETED)`, `@app.route(..)`: somebody else calls it.
            if matches!(&decorator.expression, Expr::Call(call) if matches!(&*call.func, Expr::Attribute(attribute) if attribute.attr.as_str() == "on"))
            {
                self.handed.insert(object);
            }
        }
        let name = self.symbols.at(&definition.name.node_index, definition.name.as_str());
        self.set_name(f, name, Value::object(object));
    }

    /// Calls a decorator of the project: it may put the function or class down somewhere. That stays what the name means,
    /// and a function that the decorator puts around it is called beside it.
    fn decorate(&mut self, f: &mut Frame, decorator: &'p Expr, decorated: ObjectId) {
        let value = self.eval(f, decorator);
        for object in value.objects.iter() {
            if matches!(self.heap.shape(object), Shape::Function(..)) {
                let made = self.call_function(f, object, None, &[Value::object(decorated)], &[], decorator);
                let around = made.objects.iter().filter(|around| {
                    *around != decorated && matches!(self.heap.shape(*around), Shape::Function(..))
                });
                for around in around.collect::<Vec<_>>() {
                    self.heap.set_field(decorated, self.names.around, Value::object(around));
                }
            }
        }
    }

    pub(super) fn define_class(&mut self, f: &mut Frame, definition: &'p ast::StmtClassDef) {
        let Some(id) = self.scopes.class_at(f.file, definition.range) else { return };
        let class = self.class_object(id);
        let arguments = definition.arguments.as_ref();
        let bases = arguments.iter().flat_map(|arguments| &arguments.args);
        let bases: Vec<Value> = bases.map(|base| self.eval(f, base)).collect();
        if self.bases.get(&id) != Some(&bases) {
            self.heap.changed = true;
            self.bases.insert(id, bases);
        }
        self.class_body(f, class, &definition.body);
        let name = self.symbols.at(&definition.name.node_index, definition.name.as_str());
        self.set_name(f, name, Value::object(class));
        self.begin_class(f, id, class, definition);
        // Registries learn of the class here.
        let register = self.symbols.intern("__init_subclass__");
        let hook = self.bases_of(id).into_iter().find_map(|base| self.class_member(base, register));
        for function in hook.iter().flat_map(|hook| hook.objects.iter()) {
            if matches!(self.heap.shape(function), Shape::Function(..)) {
                self.call_function(f, function, Some(class), &[], &[], definition);
            }
        }
        for decorator in &definition.decorator_list {
            self.decorate(f, &decorator.expression, class);
        }
    }

    pub(super) fn class_body(&mut self, f: &mut Frame, class: ObjectId, body: &'p [Stmt]) {
        for stmt in body {
            f.statement = located(f.file, stmt);
            match stmt {
                Stmt::FunctionDef(method) => {
                    if let Some(object) = self.function_object(f, method) {
                        for decorator in &method.decorator_list {
                            self.decorate(f, &decorator.expression, object);
                        }
                        let name = self.symbols.at(&method.name.node_index, method.name.as_str());
                        self.heap.set_field(class, name, Value::object(object));
                    }
                }
                Stmt::ClassDef(inner) => {
                    if let Some(id) = self.scopes.class_at(f.file, inner.range) {
                        let object = self.class_object(id);
                        let bases = inner.arguments.iter().flat_map(|arguments| &arguments.args);
                        let bases: Vec<Value> = bases.map(|base| self.eval(f, base)).collect();
                        self.bases.insert(id, bases);
                        self.class_body(f, object, &inner.body);
                        let name = self.symbols.at(&inner.name.node_index, inner.name.as_str());
                        self.heap.set_field(class, name, Value::object(object));
                    }
                }
                Stmt::Assign(assign) => {
                    let value = self.eval(f, &assign.value);
                    for target in &assign.targets {
                        if let Expr::Name(name) = target {
                            let name = self.symbols.at(&name.node_index, name.id.as_str());
                            self.heap.set_field(class, name, value);
                        }
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let (Expr::Name(name), Some(expr)) = (&*assign.target, &assign.value) {
                        let value = self.eval(f, expr);
                        let name = self.symbols.at(&name.node_index, name.id.as_str());
                        self.heap.set_field(class, name, value);
                    }
                }
                Stmt::If(branch) => self.class_body(f, class, &branch.body),
                _ => {}
            }
        }
    }

    pub(super) fn is_decorated(&self, function: FunctionId) -> bool {
        let definition = self.scopes.function(function).definition();
        definition.is_some_and(|definition| !definition.decorator_list.is_empty())
    }

    /// The decorator that remembers a function's results, if it has one.
    pub(crate) fn memo_of(&self, function: FunctionId) -> Option<Memo> {
        let known = self.scopes.function(function);
        known.definition()?.decorator_list.iter().find_map(|decorator| {
            let (name, arguments) = match &decorator.expression {
                Expr::Call(call) => (&*call.func, Some(&call.arguments)),
                plain => (plain, None),
            };
            let unbounded = self
                .remembers(known.file, name, arguments)
                .or_else(|| self.hands_to_memo(known.file, name))?;
            Some(Memo { decorator: located(known.file, decorator), unbounded })
        })
    }

    /// Whether a decorator of Python's own drops nothing that it remembers; `None` where it does not remember.
    fn remembers(&self, file: FileId, name: &Expr, arguments: Option<&ast::Arguments>) -> Option<bool> {
        match self.dotted(file, name)?.as_str() {
            "functools.cache" => Some(true),
            "functools.lru_cache" => {
                let limit = arguments.and_then(|given| given.find_argument_value("maxsize", 0));
                Some(limit.is_some_and(Expr::is_none_literal_expr))
            }
            _ => None,
        }
    }

    /// The same of a decorator of the project: `def memo(function): return functools.lru_cache(None)(function)`.
    fn hands_to_memo(&self, file: FileId, name: &Expr) -> Option<bool> {
        let name = self.symbols.find(name.as_name_expr()?.id.as_str())?;
        let known = self.heap.field(self.heap.find(Shape::Module(file))?, name)?;
        let function = known.objects.iter().find_map(|object| match self.heap.shape(object) {
            Shape::Function(function, _) => Some(self.scopes.function(function)),
            _ => None,
        })?;
        function.definition()?.body.iter().find_map(|stmt| {
            let Expr::Call(call) = stmt.as_return_stmt()?.value.as_deref()? else { return None };
            match &*call.func {
                Expr::Call(inner) => self.remembers(function.file, &inner.func, Some(&inner.arguments)),
                plain => self.remembers(function.file, plain, None),
            }
        })
    }

    /// The canonical name that an expression at the top of a module has in a library.
    fn dotted(&self, file: FileId, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Name(name) => {
                let module = self.heap.find(Shape::Module(file))?;
                let known = self.heap.field(module, self.symbols.find(name.id.as_str())?)?;
                known.objects.iter().find_map(|object| match self.heap.shape(object) {
                    Shape::External(symbol) => Some(self.symbols.name(symbol).to_owned()),
                    _ => None,
                })
            }
            Expr::Attribute(attribute) => {
                Some(format!("{}.{}", self.dotted(file, &attribute.value)?, attribute.attr))
            }
            _ => None,
        }
    }

    /// Objects that are models.
    pub(crate) fn models(&self) -> Vec<ObjectId> {
        let is_model = |object: &ObjectId| match self.heap.shape(*object) {
            Shape::Instance(class) => self.is_module_class(class),
            _ => false,
        };
        self.heap.ids().filter(is_model).collect()
    }
}
