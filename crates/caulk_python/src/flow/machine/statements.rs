//! Statements.

use ruff_python_ast::{self as ast, ExceptHandler, Expr, Operator, Pattern, Stmt};
use ruff_text_size::Ranged;

use crate::flow::event::{Growth, Guards, LoopKind, Place, Release, What};
use crate::flow::heap::{ObjectId, Shape};
use crate::flow::machine::frame::Frame;
use crate::flow::machine::{Machine, last_name};
use crate::flow::scopes::located;
use crate::flow::value::{Kinds, Literal, Traits, Value};

impl<'p> Machine<'p> {
    pub(crate) fn suite(&mut self, f: &mut Frame, body: &'p [Stmt]) {
        for stmt in body {
            if !f.live {
                return;
            }
            f.statement = located(f.file, stmt);
            stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.statement(f, stmt));
        }
    }

    fn statement(&mut self, f: &mut Frame, stmt: &'p Stmt) {
        match stmt {
            Stmt::FunctionDef(definition) => self.define_function(f, definition),
            Stmt::ClassDef(definition) => self.define_class(f, definition),
            Stmt::Return(returned) => {
                let value = returned.value.as_ref().map_or(Value::of(Kinds::NONE), |expr| self.eval(f, expr));
                f.result = f.result.join(&value);
                f.live = false;
            }
            Stmt::Delete(delete) => delete.targets.iter().for_each(|target| self.delete(f, target)),
            Stmt::Assign(assign) => {
                let value = self.eval(f, &assign.value);
                for target in &assign.targets {
                    let value = self.named_role(f, target, value, &assign.value);
                    self.assign(f, target, value, false);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(expr) = &assign.value {
                    let value = self.eval(f, expr);
                    let value = self.named_role(f, &assign.target, value, expr);
                    self.assign(f, &assign.target, value, false);
                }
            }
            Stmt::AugAssign(assign) => self.augment(f, assign),
            Stmt::For(stmt) => self.for_loop(f, stmt),
            Stmt::While(stmt) => self.while_loop(f, stmt),
            Stmt::If(stmt) => self.branch(f, stmt),
            Stmt::With(stmt) => self.with(f, stmt),
            Stmt::Match(stmt) => self.match_(f, stmt),
            Stmt::Raise(raise) => {
                for expr in raise.exc.iter().chain(&raise.cause) {
                    self.eval(f, expr);
                }
                f.live = false;
            }
            Stmt::Try(stmt) => self.try_(f, stmt),
            Stmt::Assert(assert) => {
                self.eval(f, &assert.test);
            }
            Stmt::Import(import) => self.import(f, import),
            Stmt::ImportFrom(import) => self.import_from(f, import),
            Stmt::Expr(stmt) => {
                self.eval(f, &stmt.value);
            }
            Stmt::Break(_) => {
                if let Some(breaks) = f.breaks.last_mut() {
                    breaks.push(f.slots.clone());
                }
                f.live = false;
            }
            Stmt::Continue(_) => {
                if let Some(continues) = f.continues.last_mut() {
                    continues.push(f.slots.clone());
                }
                f.live = false;
            }
            Stmt::Global(_)
            | Stmt::Nonlocal(_)
            | Stmt::Pass(_)
            | Stmt::TypeAlias(_)
            | Stmt::IpyEscapeCommand(_) => {}
        }
    }

    /// The function as an object, with the variables around it and the defaults of its parameters.
    pub(crate) fn function_object(&mut self, f: &mut Frame, node: &impl Ranged) -> Option<ObjectId> {
        let id = self.scopes.function_at(f.file, node.range())?;
        let closure = if self.scopes.function(id).free.is_empty() { None } else { f.variables.or(f.closure) };
        let object = self.heap.unique(Shape::Function(id, closure));
        let parameters = self.scopes.function(id).parameters();
        for parameter in parameters.iter().flat_map(|parameters| parameters.iter_non_variadic_params()) {
            if let Some(default) = parameter.default() {
                let value = self.eval(f, default);
                let name = self.symbols.intern(parameter.name().as_str());
                self.heap.set_field(object, name, value);
            }
        }
        Some(object)
    }

    fn define_function(&mut self, f: &mut Frame, definition: &'p ast::StmtFunctionDef) {
        let Some(object) = self.function_object(f, definition) else { return };
        for decorator in &definition.decorator_list {
            self.eval(f, &decorator.expression);
            // `@engine.on(Events.ITERATION_COMPLETED)`, `@app.route(..)`: somebody else calls it.
            if matches!(&decorator.expression, Expr::Call(call) if matches!(&*call.func, Expr::Attribute(attribute) if attribute.attr.as_str() == "on"))
            {
                self.handed.insert(object);
            }
        }
        let name = self.symbols.intern(definition.name.as_str());
        self.set_name(f, name, Value::object(object));
    }

    fn define_class(&mut self, f: &mut Frame, definition: &'p ast::StmtClassDef) {
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
        let name = self.symbols.intern(definition.name.as_str());
        self.set_name(f, name, Value::object(class));
    }

    fn class_body(&mut self, f: &mut Frame, class: ObjectId, body: &'p [Stmt]) {
        for stmt in body {
            f.statement = located(f.file, stmt);
            match stmt {
                Stmt::FunctionDef(method) => {
                    if let Some(object) = self.function_object(f, method) {
                        for decorator in &method.decorator_list {
                            self.eval(f, &decorator.expression);
                        }
                        let name = self.symbols.intern(method.name.as_str());
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
                        let name = self.symbols.intern(inner.name.as_str());
                        self.heap.set_field(class, name, Value::object(object));
                    }
                }
                Stmt::Assign(assign) => {
                    let value = self.eval(f, &assign.value);
                    for target in &assign.targets {
                        if let Expr::Name(name) = target {
                            let name = self.symbols.intern(name.id.as_str());
                            self.heap.set_field(class, name, value);
                        }
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let (Expr::Name(name), Some(expr)) = (&*assign.target, &assign.value) {
                        let value = self.eval(f, expr);
                        let name = self.symbols.intern(name.id.as_str());
                        self.heap.set_field(class, name, value);
                    }
                }
                Stmt::If(branch) => self.class_body(f, class, &branch.body),
                _ => {}
            }
        }
    }

    /// A variable that `backward` is called on holds a tensor with a graph, whatever the right side is.
    fn named_role(&mut self, f: &Frame, target: &Expr, value: Value, source: &Expr) -> Value {
        let name = match target {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return value,
        };
        let Some(symbol) = self.symbols.find(name) else { return value };
        let differentiated = self.scopes.function(f.function).differentiated.contains(&symbol);
        if differentiated && f.recording && value.kinds.has(Kinds::UNKNOWN) && !value.carries_graph() {
            let mut value = value;
            value.kinds = value.kinds.without(Kinds::UNKNOWN).with(Kinds::TENSOR);
            value.origin = Some(self.origin(located(f.file, source)));
            return value.with(Traits::GRAPH.with(Traits::PROVED));
        }
        value
    }

    pub(crate) fn assign(&mut self, f: &mut Frame, target: &'p Expr, value: Value, augmented: bool) {
        match target {
            Expr::Name(name) => {
                let symbol = self.symbols.intern(name.id.as_str());
                self.rebind(f, symbol, value, augmented, target);
            }
            Expr::Attribute(attribute) => {
                let owner = self.eval(f, &attribute.value);
                let name = self.symbols.intern(attribute.attr.as_str());
                for object in owner.objects.iter() {
                    self.bind_field(f, object, name, value, augmented, target);
                }
                if owner.kinds.has(Kinds::TENSOR) && attribute.attr.as_str() == "grad" {
                    self.library_event(f, "torch.Tensor.grad =", owner, value, Value::NOTHING, target);
                }
            }
            Expr::Subscript(subscript) => self.store_item(f, subscript, value, augmented),
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                self.unpack(f, elts, value);
            }
            Expr::Starred(starred) => {
                let list = self.container(f, Shape::List, starred);
                let element = self.element_of(f, value);
                self.heap.add_element(list, element);
                self.assign(f, &starred.value, Value::object(list), false);
            }
            _ => {}
        }
    }

    fn unpack(&mut self, f: &mut Frame, targets: &'p [Expr], value: Value) {
        for (position, target) in targets.iter().enumerate() {
            let part = if target.is_starred_expr() { value } else { self.part_of(f, value, position) };
            self.assign(f, target, part, false);
        }
    }

    /// Binds a variable, and tells what that means for what it held.
    fn rebind(
        &mut self,
        f: &mut Frame,
        symbol: crate::flow::symbols::Symbol,
        value: Value,
        augmented: bool,
        target: &Expr,
    ) {
        let at = located(f.file, target);
        let definition = self.scopes.function(f.function);
        let slot = definition.slots.get(&symbol).copied();
        let is_module = matches!(definition.body, crate::flow::scopes::Body::Module(_));
        if slot.is_none() {
            // A variable of a function around it, or a global.
            let owner = self.outer_variables(f, symbol);
            if let Some(owner) = owner {
                self.bind_field(f, owner, symbol, value, augmented, target);
            }
            return;
        }
        let old = slot.map_or(Value::NOTHING, |slot| f.slots[slot as usize]);
        self.release_held(f, &old, &value, at, true);
        let mut carried = false;
        for &around in f.loops.clone().iter().rev() {
            let place = self.place(Place::Variable(f.function, symbol, around));
            if value.carried.contains(place) {
                carried = true;
                f.event(What::Carry { place, value, augmented }, at);
            } else if !f.loops.is_empty() {
                f.event(What::Reset { place }, at);
            }
        }
        if is_module && let Some(module) = f.variables {
            let place = self.place(Place::Field(module, symbol));
            if !carried {
                f.event(What::Bind { place, value }, at);
            }
        }
        self.set_name(f, symbol, value);
    }

    /// Binds a name where it lives.
    pub(crate) fn set_name(&mut self, f: &mut Frame, symbol: crate::flow::symbols::Symbol, value: Value) {
        if self.scopes.function(f.function).slots.contains_key(&symbol) {
            f.set(self, symbol, value);
        } else if let Some(owner) = self.outer_variables(f, symbol) {
            self.heap.set_field(owner, symbol, value);
        }
    }

    /// The object that holds a variable that is not this function's own.
    pub(crate) fn outer_variables(
        &mut self,
        f: &Frame,
        symbol: crate::flow::symbols::Symbol,
    ) -> Option<ObjectId> {
        let definition = self.scopes.function(f.function);
        if let Some(&owner) = definition.free.get(&symbol) {
            let mut at = f.closure;
            while let Some(id) = at {
                match self.heap.shape(id) {
                    Shape::Variables(function, _) if function == owner => return Some(id),
                    Shape::Variables(_, outer) => at = outer,
                    _ => return None,
                }
            }
            return None;
        }
        Some(self.module_object(f.file))
    }

    pub(crate) fn bind_field(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        name: crate::flow::symbols::Symbol,
        value: Value,
        augmented: bool,
        target: &Expr,
    ) {
        let holds = matches!(
            self.heap.shape(object),
            Shape::Instance(_)
                | Shape::Module(_)
                | Shape::Class(_)
                | Shape::Variables(..)
                | Shape::Function(..)
                | Shape::Foreign(_)
        );
        if !holds {
            return;
        }
        let at = located(f.file, target);
        let old = self.heap.field(object, name).unwrap_or(Value::NOTHING);
        self.release_held(f, &old, &value, at, false);
        let place = self.place(Place::Field(object, name));
        let what = if value.carried.contains(place) {
            What::Carry { place, value, augmented }
        } else {
            f.event(What::Reset { place }, at);
            What::Bind { place, value }
        };
        f.event(what, at);
        self.heap.set_field(object, name, value);
    }

    /// A place that held containers is bound to something else: these are let go.
    fn release_held(
        &mut self,
        f: &mut Frame,
        old: &Value,
        new: &Value,
        at: crate::project::Location,
        local: bool,
    ) {
        for object in old.objects.iter().filter(|object| !new.objects.contains(*object)) {
            let known = self.heap.get(object);
            if !known.shape.is_container() {
                continue;
            }
            // Another variable's list: dropping a name for it does not drop the list.
            let own = self.scopes.function(f.function).location;
            if local && known.at.is_none_or(|made| !within(made, own)) {
                continue;
            }
            f.event(What::Release { object, how: Release::Rebind }, at);
            self.release_inner(f, object, Release::Rebind, at);
        }
    }

    /// What only a released container holds goes with it.
    pub(crate) fn release_inner(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        how: Release,
        at: crate::project::Location,
    ) {
        let known = self.heap.get(object);
        let inner: Vec<ObjectId> = known
            .fields
            .values()
            .chain([&known.elements])
            .flat_map(|value| value.objects.iter())
            .filter(|inner| *inner != object && self.heap.shape(*inner).is_container())
            .collect();
        for inner in inner {
            f.event(What::Release { object: inner, how }, at);
        }
    }

    fn augment(&mut self, f: &mut Frame, assign: &'p ast::StmtAugAssign) {
        let old = self.eval(f, &assign.target);
        let value = self.eval(f, &assign.value);
        if assign.op == Operator::Add {
            let mut grown = false;
            for object in old.objects.iter() {
                if !self.heap.shape(object).is_container() {
                    continue;
                }
                grown = true;
                let element = self.element_of(f, value);
                self.grow(
                    f,
                    object,
                    Growth::Extend,
                    element,
                    Value::NOTHING,
                    &*assign.target,
                    Some(&assign.value),
                );
            }
            if grown {
                return;
            }
        }
        let mut result = self.arithmetic(f, &old, &value, assign);
        let counts = value.only(Kinds::NUMBER) && matches!(value.literal, Literal::Int(_));
        if counts && !f.loops.is_empty() || counts && f.receiver.is_some() {
            result = result.with(Traits::COUNTER);
        }
        self.assign(f, &assign.target, result, true);
    }

    fn delete(&mut self, f: &mut Frame, target: &'p Expr) {
        match target {
            Expr::Name(name) => {
                let symbol = self.symbols.intern(name.id.as_str());
                if let Some(&slot) = self.scopes.function(f.function).slots.get(&symbol) {
                    let old = f.slots[slot as usize];
                    self.release_held(f, &old, &Value::NOTHING, located(f.file, target), true);
                    f.set(self, symbol, Value::NOTHING);
                }
            }
            Expr::Attribute(attribute) => {
                let owner = self.eval(f, &attribute.value);
                let name = self.symbols.intern(attribute.attr.as_str());
                for object in owner.objects.iter() {
                    let old = self.heap.field(object, name).unwrap_or(Value::NOTHING);
                    let at = located(f.file, target);
                    self.release_held(f, &old, &Value::NOTHING, at, false);
                    let place = self.place(Place::Field(object, name));
                    f.event(What::Reset { place }, at);
                }
            }
            Expr::Subscript(subscript) => {
                let owner = self.eval(f, &subscript.value);
                self.eval(f, &subscript.slice);
                let whole = matches!(&*subscript.slice, Expr::Slice(slice) if slice.lower.is_none() && slice.upper.is_none());
                let how = match &*subscript.slice {
                    Expr::Slice(_) if whole => Release::Clear,
                    Expr::Slice(_) => Release::Trim,
                    _ => Release::Remove,
                };
                for object in owner.objects.iter() {
                    f.event(What::Release { object, how }, located(f.file, &*subscript.value));
                }
            }
            _ => {}
        }
    }

    fn branch(&mut self, f: &mut Frame, stmt: &'p ast::StmtIf) {
        self.eval(f, &stmt.test);
        let outer = f.guards;
        let before = f.slots.clone();
        let mut ends: Vec<(Vec<Value>, bool)> = Vec::new();
        let mut falls_through = true;
        f.guards = outer.with(guard(&stmt.test));
        self.suite(f, &stmt.body);
        ends.push((std::mem::replace(&mut f.slots, before.clone()), f.live));
        f.live = true;
        for clause in &stmt.elif_else_clauses {
            match &clause.test {
                Some(test) => {
                    f.guards = outer;
                    self.eval(f, test);
                    f.guards = outer.with(guard(test));
                }
                None => {
                    falls_through = false;
                    f.guards = outer.with(negated(guard(&stmt.test)));
                }
            }
            self.suite(f, &clause.body);
            ends.push((std::mem::replace(&mut f.slots, before.clone()), f.live));
            f.live = true;
        }
        f.guards = outer;
        f.live = falls_through && !is_main_guard(&stmt.test);
        for (slots, live) in ends {
            f.join(&slots, live);
        }
    }

    fn with(&mut self, f: &mut Frame, stmt: &'p ast::StmtWith) {
        let recording = f.recording;
        let mut exits = Vec::new();
        for item in &stmt.items {
            let value = self.eval(f, &item.context_expr);
            if let Some(on) = self.recording_switch(f, &item.context_expr) {
                f.recording = on;
            }
            let mut entered = value;
            for object in value.objects.iter() {
                match self.heap.shape(object) {
                    Shape::Instance(_) => {
                        if let Some(result) =
                            self.call_method(f, object, self.names.enter, &[], &item.context_expr)
                        {
                            entered = result;
                        }
                        exits.push((object, &item.context_expr));
                    }
                    // A generator under `contextmanager`: what it yields.
                    Shape::Iterator => entered = self.heap.get(object).elements,
                    _ => {}
                }
            }
            self.library_event(f, "with", value, Value::NOTHING, entered, &item.context_expr);
            if let Some(target) = &item.optional_vars {
                self.assign(f, target, entered, false);
            }
        }
        self.suite(f, &stmt.body);
        for (object, expr) in exits {
            let none = Value::of(Kinds::NONE);
            self.call_method(f, object, self.names.exit, &[none, none, none], expr);
        }
        f.recording = recording;
    }

    /// Whether a context switches the recording of graphs on or off.
    pub(crate) fn recording_switch(&mut self, f: &mut Frame, expr: &'p Expr) -> Option<bool> {
        let (called, arguments) = match expr {
            Expr::Call(call) => (&*call.func, Some(&call.arguments)),
            other => (other, None),
        };
        match last_name(called)? {
            "no_grad" | "inference_mode" => Some(false),
            "enable_grad" => Some(true),
            "set_grad_enabled" => {
                let argument = arguments?.args.first()?;
                match self.eval(f, argument).literal {
                    Literal::Bool(on) => Some(on),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn match_(&mut self, f: &mut Frame, stmt: &'p ast::StmtMatch) {
        let subject = self.eval(f, &stmt.subject);
        let before = f.slots.clone();
        let outer = f.guards;
        let mut ends = Vec::new();
        for case in &stmt.cases {
            self.bind_pattern(f, &case.pattern, subject);
            if let Some(test) = &case.guard {
                self.eval(f, test);
            }
            f.guards = outer.with(Guards::CONDITION);
            self.suite(f, &case.body);
            ends.push((std::mem::replace(&mut f.slots, before.clone()), f.live));
            f.live = true;
        }
        f.guards = outer;
        for (slots, live) in ends {
            f.join(&slots, live);
        }
    }

    fn bind_pattern(&mut self, f: &mut Frame, pattern: &'p Pattern, subject: Value) {
        match pattern {
            Pattern::MatchAs(part) => {
                if let Some(inner) = &part.pattern {
                    self.bind_pattern(f, inner, subject);
                }
                if let Some(name) = &part.name {
                    let name = self.symbols.intern(name.as_str());
                    self.set_name(f, name, subject);
                }
            }
            Pattern::MatchSequence(part) => {
                for (position, inner) in part.patterns.iter().enumerate() {
                    let value = self.part_of(f, subject, position);
                    self.bind_pattern(f, inner, value);
                }
            }
            Pattern::MatchOr(part) => {
                part.patterns.iter().for_each(|inner| self.bind_pattern(f, inner, subject));
            }
            Pattern::MatchClass(part) => {
                part.arguments.patterns.iter().for_each(|inner| self.bind_pattern(f, inner, Value::UNKNOWN));
            }
            Pattern::MatchMapping(part) => {
                part.patterns.iter().for_each(|inner| self.bind_pattern(f, inner, Value::UNKNOWN));
            }
            _ => {}
        }
    }

    fn try_(&mut self, f: &mut Frame, stmt: &'p ast::StmtTry) {
        let before = f.slots.clone();
        self.suite(f, &stmt.body);
        // An exception may come anywhere in the body: variables are what they were before it or are after it.
        let (after, live) = (f.slots.clone(), f.live);
        let mut ends = Vec::new();
        let outer = f.guards;
        for handler in &stmt.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            f.slots.clone_from(&before);
            f.live = true;
            f.join(&after, true);
            if let Some(kind) = &handler.type_ {
                self.eval(f, kind);
            }
            if let Some(name) = &handler.name {
                let name = self.symbols.intern(name.as_str());
                self.set_name(f, name, Value::of(Kinds::EXCEPTION));
            }
            f.guards = outer.with(Guards::CAUGHT);
            self.suite(f, &handler.body);
            f.guards = outer;
            ends.push((f.slots.clone(), f.live));
        }
        f.slots = after;
        f.live = live;
        self.suite(f, &stmt.orelse);
        for (slots, live) in ends {
            f.join(&slots, live);
        }
        if !stmt.finalbody.is_empty() {
            // It runs on every way out.
            let live = f.live;
            f.live = true;
            self.suite(f, &stmt.finalbody);
            f.live &= live;
        }
    }

    fn import(&mut self, f: &mut Frame, import: &'p ast::StmtImport) {
        for alias in &import.names {
            let dotted = alias.name.as_str();
            let (bound, name) = match &alias.asname {
                Some(bound) => (bound.as_str(), dotted),
                None => {
                    let first = dotted.split('.').next().unwrap_or(dotted);
                    (first, first)
                }
            };
            let value = self.imported(f, name);
            let symbol = self.symbols.intern(bound);
            self.set_name(f, symbol, value);
        }
    }

    /// The module of a dotted name: the project's, else a library's.
    fn imported(&mut self, f: &Frame, name: &str) -> Value {
        match self.project.module(f.file, name) {
            Some(file) => Value::object(self.module_object(file)),
            None => Value::object(self.external(name)),
        }
    }

    fn import_from(&mut self, f: &mut Frame, import: &'p ast::StmtImportFrom) {
        let module = import.module.as_ref().map_or("", ast::Identifier::as_str);
        let file = if import.level > 0 {
            self.project.relative(f.file, import.level, module)
        } else {
            self.project.module(f.file, module)
        };
        for alias in &import.names {
            let name = alias.name.as_str();
            if name == "*" {
                if let Some(file) = file {
                    self.import_all(f, file);
                }
                continue;
            }
            let value = match file {
                Some(file) => self.member_of_module(f, file, import.level, module, name),
                None if import.level > 0 => Value::UNKNOWN,
                None => Value::object(self.external(&format!("{module}.{name}"))),
            };
            let bound = self.symbols.intern(alias.asname.as_ref().unwrap_or(&alias.name).as_str());
            self.set_name(f, bound, value);
        }
    }

    fn member_of_module(
        &mut self,
        f: &Frame,
        file: crate::project::FileId,
        level: u32,
        module: &str,
        name: &str,
    ) -> Value {
        let symbol = self.symbols.intern(name);
        let object = self.module_object(file);
        if let Some(known) = self.heap.field(object, symbol) {
            return known;
        }
        let inner = if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") };
        let submodule = if level > 0 {
            self.project.relative(f.file, level, &inner)
        } else {
            self.project.module(f.file, &inner)
        };
        match submodule {
            Some(file) => Value::object(self.module_object(file)),
            // Not run yet.
            None => Value::NOTHING,
        }
    }

    fn import_all(&mut self, f: &mut Frame, file: crate::project::FileId) {
        let object = self.module_object(file);
        if Some(object) == f.variables {
            return;
        }
        let mine = self.module_object(f.file);
        let fields: Vec<_> =
            self.heap.get(object).fields.iter().map(|(name, value)| (*name, *value)).collect();
        for (name, value) in fields {
            self.heap.set_field(mine, name, value);
        }
    }
}

/// Whether a place lies inside another.
pub(crate) fn within(inner: crate::project::Location, outer: crate::project::Location) -> bool {
    inner.file == outer.file && {
        let (inner, outer): (ruff_text_size::TextRange, ruff_text_size::TextRange) =
            (inner.range.into(), outer.range.into());
        outer.contains_range(inner)
    }
}

/// `if __name__ == "__main__"`.
fn is_main_guard(test: &Expr) -> bool {
    matches!(test, Expr::Compare(compare) if matches!(&*compare.left, Expr::Name(name) if name.id.as_str() == "__name__"))
}

/// What a condition says of how often it holds.
pub(crate) fn guard(test: &Expr) -> Guards {
    let condition = Guards::CONDITION;
    match test {
        _ if is_main_guard(test) => Guards::default(),
        Expr::BoolOp(both) => both.values.iter().fold(condition, |guards, value| guards.with(guard(value))),
        Expr::UnaryOp(unary) => guard(&unary.operand).with(condition),
        Expr::Compare(compare) => {
            let sides = || std::iter::once(&*compare.left).chain(&compare.comparators);
            let mut guards = condition;
            if sides().any(|side| matches!(side, Expr::Call(call) if matches!(last_name(&call.func), Some("len" | "qsize" | "__len__")))) {
                guards = guards.with(Guards::LENGTH);
            }
            if sides().any(|side| matches!(side, Expr::BinOp(binary) if binary.op == Operator::Mod)) {
                guards = guards.with(Guards::MODULO);
            }
            for (op, right) in compare.ops.iter().zip(&compare.comparators) {
                match op {
                    ast::CmpOp::NotIn | ast::CmpOp::In => guards = guards.with(Guards::MISSING),
                    ast::CmpOp::Is if right.is_none_literal_expr() => guards = guards.with(Guards::ONCE),
                    ast::CmpOp::Eq
                        if matches!(right, Expr::NumberLiteral(_)) && !guards.has(Guards::MODULO) =>
                    {
                        let counts = last_name(&compare.left).is_some_and(|name| {
                            crate::library::roles::is_epoch(name) || crate::library::roles::is_step(name)
                        });
                        if counts {
                            guards = guards.with(Guards::ONCE);
                        }
                    }
                    _ => {}
                }
            }
            guards
        }
        Expr::Call(call) if matches!(last_name(&call.func), Some("hasattr")) => condition.with(Guards::ONCE),
        Expr::Name(_) | Expr::Attribute(_) => {
            let name = last_name(test).unwrap_or("").to_ascii_lowercase();
            if name.contains("sanity") {
                condition.with(Guards::ONCE)
            } else if ["debug", "verbose", "log", "trace", "profile"].iter().any(|word| name.contains(word)) {
                condition.with(Guards::SWITCH)
            } else {
                condition
            }
        }
        _ => condition,
    }
}

/// What the `else` of a condition says.
fn negated(guards: Guards) -> Guards {
    if guards.has(Guards::LENGTH) { Guards::CONDITION.with(Guards::LENGTH) } else { Guards::CONDITION }
}

/// Kinds of loops that are told by their headers alone.
pub(crate) fn while_kind(test: &Expr) -> LoopKind {
    match test {
        Expr::BooleanLiteral(literal) if literal.value => LoopKind::Forever,
        Expr::NumberLiteral(_) => LoopKind::Forever,
        Expr::Compare(compare) => {
            let names = std::iter::once(&*compare.left).chain(&compare.comparators).filter_map(last_name);
            let mut kind = LoopKind::While;
            for name in names {
                if crate::library::roles::is_epoch(name) {
                    kind = LoopKind::Epochs;
                } else if crate::library::roles::is_step(name) {
                    kind = LoopKind::Steps;
                }
            }
            kind
        }
        _ => LoopKind::While,
    }
}
