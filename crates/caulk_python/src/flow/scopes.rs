//! Functions and classes of a project, and which function's variable a name means.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    self as ast, ExceptHandler, Expr, ExprContext, ExprLambda, ModModule, Parameters, Pattern, Stmt,
    StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::machine::last_name;
use crate::flow::machine::rebinding::{joined, name_of};
use crate::flow::symbols::{Symbol, Symbols};
use crate::project::{FileId, Location, Project};

/// A function, lambda or module body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub(crate) u32);

/// A class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub(crate) u32);

/// What is run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'p> {
    Module(&'p ModModule),
    Function(&'p StmtFunctionDef),
    Lambda(&'p ExprLambda),
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function<'p> {
    pub file: FileId,
    pub body: Body<'p>,
    pub name: Symbol,
    /// With the classes and functions around it; `<module>` for a module.
    pub qualified: String,
    /// The function around it.
    pub parent: Option<FunctionId>,
    /// The class whose body defines it.
    pub class: Option<ClassId>,
    /// Its variables and their slots.
    pub slots: FxHashMap<Symbol, u32>,
    /// Variables that inner functions use.
    pub shared: FxHashSet<Symbol>,
    /// Variables that inner functions bind, or functions of the module by `global`.
    pub rebound: FxHashSet<Symbol>,
    /// Names of functions around it whose variables it uses.
    pub free: FxHashMap<Symbol, FunctionId>,
    pub globals: FxHashSet<Symbol>,
    /// Variables that `backward()` is called on, directly or through a scaler or trainer.
    pub differentiated: FxHashSet<Symbol>,
    /// Variables that are used as models: `x.parameters()`, `x.train()`.
    pub models: FxHashSet<Symbol>,
    pub yields: bool,
    pub location: Location,
}

impl<'p> Function<'p> {
    pub(crate) fn parameters(&self) -> Option<&'p Parameters> {
        match self.body {
            Body::Module(_) => None,
            Body::Function(function) => Some(&function.parameters),
            Body::Lambda(lambda) => lambda.parameters.as_deref(),
        }
    }

    pub(crate) fn definition(&self) -> Option<&'p StmtFunctionDef> {
        match self.body {
            Body::Function(function) => Some(function),
            _ => None,
        }
    }
}

/// A class.
#[derive(Debug)]
pub(crate) struct Class<'p> {
    pub file: FileId,
    pub definition: &'p StmtClassDef,
    pub qualified: String,
    pub methods: FxHashMap<Symbol, FunctionId>,
}

/// Everything that is defined.
#[derive(Debug, Default)]
pub(crate) struct Scopes<'p> {
    pub functions: Vec<Function<'p>>,
    pub classes: Vec<Class<'p>>,
    pub modules: Vec<FunctionId>,
    /// Names of everything that is called somewhere.
    pub called: FxHashSet<Symbol>,
    /// Names of what is made longer by binding it anew somewhere.
    pub lengthened: FxHashSet<Symbol>,
    /// Names of properties that can be bound.
    pub setters: FxHashSet<Symbol>,
    /// Methods by their names, where only one class has one of that name.
    only_methods: FxHashMap<Symbol, Option<(ClassId, FunctionId)>>,
    by_place: FxHashMap<Location, FunctionId>,
    class_by_place: FxHashMap<Location, ClassId>,
}

impl<'p> Scopes<'p> {
    pub(crate) fn new(project: &'p Project, symbols: &mut Symbols) -> Self {
        let mut scopes = Self::default();
        for file in project.ids() {
            let tree = &project.file(file).tree;
            let location = Location { file, range: tree.range.into() };
            let mut collector = Collector {
                scopes: &mut scopes,
                symbols,
                file,
                open: Vec::new(),
                prefix: String::new(),
                class: None,
            };
            let name = collector.symbols.intern("<module>");
            let module = collector.enter(Body::Module(tree), name, "<module>".to_owned(), location);
            collector.visit_body(&tree.body);
            collector.leave();
            scopes.modules.push(module);
        }
        scopes
    }

    pub(crate) fn function(&self, id: FunctionId) -> &Function<'p> {
        &self.functions[id.0 as usize]
    }

    pub(crate) fn class(&self, id: ClassId) -> &Class<'p> {
        &self.classes[id.0 as usize]
    }

    /// The method of a name that one class alone defines.
    pub(crate) fn only_method(&self, name: Symbol) -> Option<(ClassId, FunctionId)> {
        self.only_methods.get(&name).copied().flatten()
    }

    /// The function or lambda that is defined at a place.
    pub(crate) fn function_at(&self, file: FileId, range: TextRange) -> Option<FunctionId> {
        self.by_place.get(&Location { file, range: range.into() }).copied()
    }

    /// The class that is defined at a place.
    pub(crate) fn class_at(&self, file: FileId, range: TextRange) -> Option<ClassId> {
        self.class_by_place.get(&Location { file, range: range.into() }).copied()
    }
}

/// A function whose body is being walked.
struct Open {
    id: FunctionId,
    bound: Vec<Symbol>,
    nonlocals: FxHashSet<Symbol>,
    used: FxHashSet<Symbol>,
}

struct Collector<'a, 'p> {
    scopes: &'a mut Scopes<'p>,
    symbols: &'a mut Symbols,
    file: FileId,
    open: Vec<Open>,
    prefix: String,
    class: Option<ClassId>,
}

impl<'p> Collector<'_, 'p> {
    fn enter(&mut self, body: Body<'p>, name: Symbol, qualified: String, location: Location) -> FunctionId {
        let id = FunctionId(self.scopes.functions.len() as u32);
        self.scopes.functions.push(Function {
            file: self.file,
            body,
            name,
            qualified,
            parent: self.open.last().map(|open| open.id),
            class: self.class.take(),
            slots: FxHashMap::default(),
            shared: FxHashSet::default(),
            rebound: FxHashSet::default(),
            free: FxHashMap::default(),
            globals: FxHashSet::default(),
            differentiated: FxHashSet::default(),
            models: FxHashSet::default(),
            yields: false,
            location,
        });
        self.scopes.by_place.insert(location, id);
        self.open.push(Open {
            id,
            bound: Vec::new(),
            nonlocals: FxHashSet::default(),
            used: FxHashSet::default(),
        });
        if let Some(parameters) = self.scopes.functions[id.0 as usize].parameters() {
            for parameter in parameters {
                let name = self.symbols.at(&parameter.name().node_index, parameter.name().as_str());
                self.bind(name);
            }
        }
        id
    }

    fn bind(&mut self, name: Symbol) {
        if let Some(open) = self.open.last_mut() {
            open.bound.push(name);
        }
    }

    /// Gives the variables their slots, and names used inside to the functions they belong to.
    fn leave(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let function = &mut self.scopes.functions[open.id.0 as usize];
        let is_module = matches!(function.body, Body::Module(_));
        for name in open.bound {
            if !open.nonlocals.contains(&name) && !function.globals.contains(&name) {
                let next = function.slots.len() as u32;
                function.slots.entry(name).or_insert(next);
            }
        }
        let mut passed_on = Vec::new();
        for name in open.used {
            if !function.slots.contains_key(&name) && !function.globals.contains(&name) {
                passed_on.push(name);
            }
        }
        if is_module {
            return;
        }
        // Which function around has it is known when that one is left: what is open now still collects names.
        for name in passed_on {
            let owner = self.open.iter().rev().find(|outer| {
                let outside = &self.scopes.functions[outer.id.0 as usize];
                !matches!(outside.body, Body::Module(_))
                    && outer.bound.contains(&name)
                    && !outer.nonlocals.contains(&name)
            });
            if let Some(owner) = owner.map(|owner| owner.id) {
                self.scopes.functions[open.id.0 as usize].free.insert(name, owner);
                let outside = &mut self.scopes.functions[owner.0 as usize];
                outside.shared.insert(name);
                if open.nonlocals.contains(&name) {
                    outside.rebound.insert(name);
                }
            }
            if let Some(outer) = self.open.last_mut() {
                outer.used.insert(name);
            }
        }
    }

    fn function(&mut self, definition: &'p StmtFunctionDef) {
        for decorator in &definition.decorator_list {
            self.visit_expr(&decorator.expression);
        }
        self.defaults(&definition.parameters);
        let name = self.symbols.at(&definition.name.node_index, definition.name.as_str());
        if self.class.is_none() {
            self.bind(name);
        }
        let class = self.class;
        let qualified = format!("{}{}", self.prefix, definition.name);
        let location = Location { file: self.file, range: definition.range.into() };
        let id = self.enter(Body::Function(definition), name, qualified.clone(), location);
        if let Some(class) = class {
            self.scopes.classes[class.0 as usize].methods.insert(name, id);
            if definition.decorator_list.iter().any(|known| last_name(&known.expression) == Some("setter")) {
                self.scopes.setters.insert(name);
            }
            let only = self.scopes.only_methods.entry(name);
            only.and_modify(|known| *known = None).or_insert(Some((class, id)));
        }
        let prefix = std::mem::replace(&mut self.prefix, format!("{qualified}."));
        self.visit_body(&definition.body);
        self.leave();
        self.prefix = prefix;
        self.class = class;
    }

    fn defaults(&mut self, parameters: &'p Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
            }
        }
    }

    fn class(&mut self, definition: &'p StmtClassDef) {
        for decorator in &definition.decorator_list {
            self.visit_expr(&decorator.expression);
        }
        for base in definition.arguments.iter().flat_map(|arguments| arguments.iter_source_order()) {
            self.visit_expr(base.value());
        }
        let name = self.symbols.at(&definition.name.node_index, definition.name.as_str());
        if self.class.is_none() {
            self.bind(name);
        }
        let qualified = format!("{}{}", self.prefix, definition.name);
        let id = ClassId(self.scopes.classes.len() as u32);
        let location = Location { file: self.file, range: definition.range.into() };
        self.scopes.class_by_place.insert(location, id);
        self.scopes.classes.push(Class {
            file: self.file,
            definition,
            qualified: qualified.clone(),
            methods: FxHashMap::default(),
        });
        let outer = self.class.replace(id);
        let prefix = std::mem::replace(&mut self.prefix, format!("{qualified}."));
        // Names bound in a class body are attributes, no variables of the function around it.
        let bound = self.open.last().map_or(0, |open| open.bound.len());
        for statement in &definition.body {
            self.class = Some(id);
            self.visit_stmt(statement);
        }
        if let Some(open) = self.open.last_mut() {
            open.bound.truncate(bound);
        }
        self.prefix = prefix;
        self.class = outer;
    }

    fn global(&mut self, names: &[ast::Identifier], nonlocal: bool) {
        for name in names {
            let symbol = self.symbols.intern(name.as_str());
            let Some(open) = self.open.last_mut() else { continue };
            if nonlocal {
                open.nonlocals.insert(symbol);
                open.used.insert(symbol);
            } else {
                let (id, module) = (open.id, self.open[0].id);
                self.scopes.functions[id.0 as usize].globals.insert(symbol);
                self.scopes.functions[module.0 as usize].rebound.insert(symbol);
            }
        }
    }

    /// Notes what the call tells of the names in it.
    fn call(&mut self, call: &'p ast::ExprCall) {
        let Expr::Attribute(method) = &*call.func else { return };
        let Some(open) = self.open.last() else { return };
        let id = open.id;
        let subject = match method.attr.as_str() {
            "backward" | "manual_backward" => {
                let scaled = match &*method.value {
                    Expr::Call(scale) => scale.arguments.args.first(),
                    plain if call.arguments.args.is_empty() => Some(plain),
                    _ => call.arguments.args.first().or(Some(&*method.value)),
                };
                // `(loss / steps).backward()`.
                scaled.map(|expr| match expr {
                    Expr::BinOp(binary) => &*binary.left,
                    other => other,
                })
            }
            "parameters" | "named_parameters" | "train" | "eval" | "state_dict" => Some(&*method.value),
            _ => None,
        };
        let symbol = match subject {
            Some(Expr::Name(name)) => self.symbols.at(&name.node_index, name.id.as_str()),
            Some(Expr::Attribute(attribute)) => {
                self.symbols.at(&attribute.attr.node_index, attribute.attr.as_str())
            }
            _ => return,
        };
        let function = &mut self.scopes.functions[id.0 as usize];
        if method.attr.as_str().ends_with("backward") {
            function.differentiated.insert(symbol);
        } else {
            function.models.insert(symbol);
        }
    }
}

impl<'p> Visitor<'p> for Collector<'_, 'p> {
    fn visit_stmt(&mut self, stmt: &'p Stmt) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match stmt {
            Stmt::FunctionDef(definition) => self.function(definition),
            Stmt::ClassDef(definition) => self.class(definition),
            Stmt::Global(global) => self.global(&global.names, false),
            Stmt::Nonlocal(nonlocal) => self.global(&nonlocal.names, true),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let bound = alias.asname.as_ref().map_or_else(
                        || alias.name.as_str().split('.').next().unwrap_or(""),
                        ast::Identifier::as_str,
                    );
                    let name = self.symbols.intern(bound);
                    self.bind(name);
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    let name = self.symbols.intern(bound);
                    self.bind(name);
                }
            }
            Stmt::Assign(assign) => {
                for target in assign.targets.iter().filter(|target| joined(target, &assign.value).is_some()) {
                    let name = name_of(target).map(|name| self.symbols.intern(name));
                    self.scopes.lengthened.extend(name);
                }
                visitor::walk_stmt(self, stmt);
            }
            _ => visitor::walk_stmt(self, stmt),
        });
    }

    fn visit_expr(&mut self, expr: &'p Expr) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match expr {
            Expr::Name(name) => {
                let symbol = self.symbols.at(&name.node_index, name.id.as_str());
                if name.ctx == ExprContext::Load {
                    if let Some(open) = self.open.last_mut() {
                        open.used.insert(symbol);
                    }
                } else {
                    self.bind(symbol);
                }
            }
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.defaults(parameters);
                }
                let name = self.symbols.intern("<lambda>");
                let class = self.class.take();
                let qualified = format!("{}<lambda>", self.prefix);
                let location = Location { file: self.file, range: lambda.range.into() };
                self.enter(Body::Lambda(lambda), name, qualified, location);
                self.visit_expr(&lambda.body);
                self.leave();
                self.class = class;
            }
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                if let Some(open) = self.open.last() {
                    self.scopes.functions[open.id.0 as usize].yields = true;
                }
                visitor::walk_expr(self, expr);
            }
            Expr::Call(call) => {
                if let Expr::Name(ast::ExprName { id: name, .. })
                | Expr::Attribute(ast::ExprAttribute {
                    attr: ast::Identifier { id: name, .. }, ..
                }) = &*call.func
                {
                    let name = self.symbols.intern(name.as_str());
                    self.scopes.called.insert(name);
                }
                self.call(call);
                visitor::walk_expr(self, expr);
            }
            _ => visitor::walk_expr(self, expr),
        });
    }

    fn visit_except_handler(&mut self, handler: &'p ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            let symbol = self.symbols.intern(name.as_str());
            self.bind(symbol);
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'p Pattern) {
        let name = match pattern {
            Pattern::MatchAs(part) => part.name.as_ref(),
            Pattern::MatchStar(part) => part.name.as_ref(),
            Pattern::MatchMapping(part) => part.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            let symbol = self.symbols.intern(name.as_str());
            self.bind(symbol);
        }
        visitor::walk_pattern(self, pattern);
    }
}

/// Location of a node.
pub(crate) fn located(file: FileId, node: &impl Ranged) -> Location {
    Location { file, range: node.range().into() }
}
