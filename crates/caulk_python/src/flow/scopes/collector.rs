//! Goes through files, notes what they define, and gives variables to the functions they belong to.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    self as ast, ExceptHandler, Expr, ExprContext, ModModule, Parameters, Pattern, Stmt, StmtClassDef,
    StmtFunctionDef,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::differentiated::carriers;
use super::links::Links;
use super::wholes::Wholes;
use super::{Body, Class, Function, Scopes, located};
use crate::flow::ids::{ClassId, FunctionId};
use crate::flow::joined::joined;
use crate::flow::symbols::{Symbol, Symbols};
use crate::flow::syntax::{is_true, last_name, name_of};
use crate::project::{FileId, Location, Project};

impl<'p> Scopes<'p> {
    /// Everything that a project defines.
    pub(crate) fn new(project: &'p Project, symbols: &mut Symbols) -> Self {
        let mut scopes = Self::default();
        for file in project.ids() {
            let module = collect(&mut scopes, symbols, file, &project.file(file).tree);
            scopes.modules.push(module);
        }
        scopes
    }
}

/// Notes everything that a file defines; gives the function that its body is.
fn collect<'p>(
    scopes: &mut Scopes<'p>,
    symbols: &mut Symbols,
    file: FileId,
    tree: &'p ModModule,
) -> FunctionId {
    let location = Location { file, range: tree.range.into() };
    let name = symbols.intern("<module>");
    let mut collector =
        Collector { scopes, symbols, file, open: Vec::new(), prefix: String::new(), class: None, loops: 0 };
    let module = collector.enter(Body::Module(tree), name, "<module>".to_owned(), location);
    collector.visit_body(&tree.body);
    collector.leave();
    module
}

/// Aliases of aliases of a differentiated variable that are followed.
const MAX_ALIASES: usize = 8;

/// A function whose body is being walked.
struct Open<'p> {
    id: FunctionId,
    bound: Vec<Symbol>,
    nonlocals: FxHashSet<Symbol>,
    used: FxHashSet<Symbol>,
    /// Variables, each with those that carry a graph if it does.
    made_of: Vec<(Symbol, Vec<Symbol>)>,
    /// What is returned, alone or as the loss of a dict.
    returned: FxHashSet<Symbol>,
    links: Links<'p>,
    wholes: Wholes<'p>,
}

struct Collector<'a, 'p> {
    scopes: &'a mut Scopes<'p>,
    symbols: &'a mut Symbols,
    file: FileId,
    open: Vec<Open<'p>>,
    prefix: String,
    class: Option<ClassId>,
    /// Loops around the statement, in its function.
    loops: usize,
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
            carriers: FxHashSet::default(),
            returned: FxHashSet::default(),
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
            made_of: Vec::new(),
            returned: FxHashSet::default(),
            links: Links::default(),
            wholes: Wholes::default(),
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
        function.carriers = made_of(&function.differentiated, &open.made_of);
        function.returned = made_of(&open.returned, &open.made_of);
        function.returned.extend(open.returned);
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
            if let Some(open) = self.open.last_mut() {
                open.links.define(definition);
            }
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
        let loops = std::mem::take(&mut self.loops);
        self.visit_body(&definition.body);
        self.leave();
        self.loops = loops;
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

    /// Notes which variables carry a graph if the one that is bound here does.
    fn made_of(&mut self, target: &ast::ExprName, value: &Expr) {
        let parts: Vec<Symbol> = carriers(value)
            .into_iter()
            .map(|part| self.symbols.at(&part.node_index, part.id.as_str()))
            .collect();
        let name = self.symbols.at(&target.node_index, target.id.as_str());
        if let Some(open) = self.open.last_mut().filter(|_| !parts.is_empty()) {
            open.made_of.push((name, parts));
        }
    }

    /// Notes an attribute that is bound outside of a constructor, or in a loop.
    fn bind_field(&mut self, attribute: &ast::ExprAttribute) {
        let constructs = self.open.last().is_some_and(|open| {
            let name = self.scopes.functions[open.id.0 as usize].name;
            matches!(self.symbols.name(name), "__init__" | "__post_init__")
        });
        if !constructs || self.loops > 0 {
            let name = self.symbols.at(&attribute.attr.node_index, attribute.attr.as_str());
            self.scopes.rebound_fields.insert(name);
        }
    }

    /// Notes whether a target gets an object that may keep its old value, or its old value joined with something else.
    fn link(&mut self, target: &'p Expr, value: &'p Expr) {
        let Some(open) = self.open.last_mut() else { return };
        if open.links.assigns(target, value) {
            self.scopes.links.insert(located(self.file, value));
            let name = name_of(target).map(|name| self.symbols.intern(name));
            self.scopes.lengthened.extend(name);
        }
        if let Some(join) = open.wholes.join(target, value) {
            self.scopes.joins.insert(located(self.file, target), join);
            let name = name_of(target).map(|name| self.symbols.intern(name));
            self.scopes.lengthened.extend(name);
        }
        open.links.bind(target, value);
        open.wholes.bind(target, value);
    }

    /// Notes what the call tells of the names in it.
    fn call(&mut self, call: &'p ast::ExprCall) {
        if self.open.last().is_some_and(|open| open.links.sets(call)) {
            self.scopes.links.insert(located(self.file, call));
        }
        if let [_, Expr::StringLiteral(name), value] = &*call.arguments.args
            && last_name(&call.func) == Some("setattr")
        {
            let name = self.symbols.intern(name.value.to_str());
            self.scopes.rebound_fields.insert(name);
            if is_true(value) {
                self.scopes.raised.insert(name);
            }
        }
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
            // Not `state_dict`: optimizers and schedulers have one, too.
            "parameters" | "named_parameters" | "train" | "eval" => Some(&*method.value),
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

/// Variables that some variables are made of, if these carry their graph.
fn made_of(subjects: &FxHashSet<Symbol>, made_of: &[(Symbol, Vec<Symbol>)]) -> FxHashSet<Symbol> {
    let mut found = FxHashSet::default();
    // What is bound late is made of what is bound early.
    for _ in 0..MAX_ALIASES {
        let known = found.len();
        for (name, parts) in made_of.iter().rev() {
            if subjects.contains(name) || found.contains(name) {
                found.extend(parts.iter().copied());
            }
        }
        if found.len() == known {
            break;
        }
    }
    found
}

/// `loss` of `return loss` and of `return {"loss": loss}`.
fn returned_loss(value: &Expr) -> Option<&ast::ExprName> {
    match value {
        Expr::Name(name) => Some(name),
        Expr::Dict(dict) => dict.items.iter().find_map(|item| {
            let key = item.key.as_ref()?.as_string_literal_expr()?;
            (key.value.to_str() == "loss").then(|| item.value.as_name_expr()).flatten()
        }),
        _ => None,
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
            Stmt::For(_) | Stmt::While(_) => {
                self.loops += 1;
                visitor::walk_stmt(self, stmt);
                self.loops -= 1;
            }
            Stmt::Assign(assign) => {
                for target in assign.targets.iter().filter(|target| joined(target, &assign.value).is_some()) {
                    let name = name_of(target).map(|name| self.symbols.intern(name));
                    self.scopes.lengthened.extend(name);
                }
                assign.targets.iter().for_each(|target| self.link(target, &assign.value));
                for target in assign.targets.iter().filter_map(Expr::as_name_expr) {
                    self.made_of(target, &assign.value);
                }
                let raised = assign.targets.iter().filter(|_| is_true(&assign.value));
                for attribute in raised.filter_map(Expr::as_attribute_expr) {
                    let name = self.symbols.intern(attribute.attr.as_str());
                    self.scopes.raised.insert(name);
                }
                visitor::walk_stmt(self, stmt);
            }
            Stmt::Return(returned) => {
                let loss = returned.value.as_deref().and_then(returned_loss);
                if let Some(name) = loss.map(|name| self.symbols.at(&name.node_index, name.id.as_str()))
                    && let Some(open) = self.open.last_mut()
                {
                    open.returned.insert(name);
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
            Expr::Attribute(attribute) if attribute.ctx == ExprContext::Store => {
                self.bind_field(attribute);
                visitor::walk_expr(self, expr);
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
