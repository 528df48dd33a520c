//! The one walk over a file's syntax tree: statements, scopes and blocks. What expressions do is in
//! [`crate::loads`].

use std::collections::HashSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, ExceptHandler, Expr, Pattern, Stmt};
use ruff_text_size::{Ranged, TextRange};

use crate::depth;
use crate::hint::hint_of;
use crate::index::{
    Block, Class, Decorator, Index, LoopRecord, Nature, Parameter, Place, Scope, ScopeKind, Statement,
};
use crate::path::{Step, path_of};
use crate::text::Source;

/// Expressions inside one another whose calls and growth are recorded.
const MAX_DEPTH: usize = 300;

/// Walks a module's statements.
pub(crate) fn collect(source: &Source, body: &[Stmt], range: TextRange) -> Index {
    let mut collector =
        Collector { source, index: Index::default(), scope: 0, block: 0, statement: 0, depth: 0 };
    collector.enter_scope(ScopeKind::Module, String::new(), range, None);
    collector.block =
        collector.new_block(Block { parent: None, condition: None, repeats: None, no_grad: false });
    collector.index.docstring = body.first().and_then(|first| match first {
        Stmt::Expr(docstring) if docstring.value.is_string_literal_expr() => Some(docstring.range()),
        _ => None,
    });
    collector.visit_body(body);
    collector.index
}

pub(crate) struct Collector<'s> {
    pub(crate) source: &'s Source,
    pub(crate) index: Index,
    scope: usize,
    block: usize,
    statement: usize,
    depth: usize,
}

impl<'a> Visitor<'a> for Collector<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.deeper(|this| this.stmt(stmt));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.deeper(|this| this.expr(expr));
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let bound = match pattern {
            Pattern::MatchAs(part) => part.name.as_ref(),
            Pattern::MatchStar(part) => part.name.as_ref(),
            Pattern::MatchMapping(part) => part.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = bound {
            self.bind_plain(name, name.range(), Nature::Other);
        }
        self.deeper(|this| visitor::walk_pattern(this, pattern));
    }
}

impl Collector<'_> {
    fn deeper(&mut self, walk: impl FnOnce(&mut Self)) {
        self.depth += 1;
        self.index.depth = self.index.depth.max(self.depth);
        depth::deeper(|| walk(self));
        self.depth -= 1;
    }

    pub(crate) fn place(&self, range: TextRange) -> Place {
        Place { scope: self.scope, block: self.block, statement: self.statement, offset: range.start() }
    }

    /// Whether an expression is nested deeper than people, and Python's own parser, go: what it does is not recorded,
    /// since each level would repeat all that is inside it.
    pub(crate) fn too_deep(&self) -> bool {
        self.depth > MAX_DEPTH
    }

    /// Whether this is the module's own block.
    pub(crate) fn at_top(&self) -> bool {
        self.scope == 0 && self.block == 0
    }

    pub(crate) fn enter_scope(
        &mut self,
        kind: ScopeKind,
        name: String,
        range: TextRange,
        class: Option<usize>,
    ) -> usize {
        let parent = (kind != ScopeKind::Module).then_some(self.scope);
        self.index.scopes.push(Scope {
            kind,
            name,
            parent,
            range,
            parameters: Vec::new(),
            class,
            is_static: false,
            is_property: false,
            no_grad: false,
            decorators: Vec::new(),
            bound: HashSet::new(),
            globals: HashSet::new(),
            nonlocals: HashSet::new(),
            returns: Vec::new(),
            first: None,
            tail: None,
        });
        std::mem::replace(&mut self.scope, self.index.scopes.len() - 1)
    }

    pub(crate) fn leave_scope(&mut self, outer: usize) {
        self.scope = outer;
    }

    pub(crate) fn scope_mut(&mut self) -> &mut Scope {
        &mut self.index.scopes[self.scope]
    }

    fn new_block(&mut self, block: Block) -> usize {
        self.index.blocks.push(block);
        self.index.blocks.len() - 1
    }

    fn statement(&mut self, range: TextRange, header: bool) {
        self.statement = self.index.statements.len();
        self.index.statements.push(Statement { range, scope: self.scope, header });
    }

    fn header(&mut self, start: &impl Ranged, end: &impl Ranged) {
        self.statement(TextRange::new(start.start(), end.end().max(start.start())), true);
    }

    /// A suite inside the current block.
    fn suite(&mut self, body: &[Stmt], condition: Option<String>, repeats: Option<usize>, no_grad: bool) {
        let inner = self.new_block(Block { parent: Some(self.block), condition, repeats, no_grad });
        let outer = std::mem::replace(&mut self.block, inner);
        self.visit_body(body);
        self.block = outer;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::For(each) => {
                self.header(each, &*each.iter);
                self.visit_expr(&each.iter);
                self.bind_element(&each.target, &each.iter);
                let target = self.source.inline(each.target.range());
                let iter = self.source.inline(each.iter.range());
                let repeats = self.new_loop(each.range(), target, iter);
                self.suite(&each.body, None, Some(repeats), false);
                self.suite(&each.orelse, None, None, false);
            }
            Stmt::While(each) => {
                self.header(each, &*each.test);
                self.visit_expr(&each.test);
                let test = self.source.inline(each.test.range());
                let always = matches!(&*each.test, Expr::BooleanLiteral(literal) if literal.value)
                    || each.test.is_number_literal_expr();
                let repeats = self.new_loop(each.range(), String::new(), test.clone());
                self.suite(&each.body, (!always).then_some(test), Some(repeats), false);
                self.suite(&each.orelse, None, None, false);
            }
            Stmt::If(choice) => self.choice(choice),
            Stmt::With(with) => self.with(with),
            Stmt::Match(of) => {
                self.header(of, &*of.subject);
                self.visit_expr(&of.subject);
                for case in &of.cases {
                    self.header(case, &case.pattern);
                    self.visit_pattern(&case.pattern);
                    if let Some(guard) = &case.guard {
                        self.visit_expr(guard);
                    }
                    let pattern = format!("case {}", self.source.inline(case.pattern.range()));
                    self.suite(&case.body, Some(pattern), None, false);
                }
            }
            Stmt::Try(attempt) => {
                self.suite(&attempt.body, None, None, false);
                for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
                    self.except(handler);
                }
                self.suite(&attempt.orelse, None, None, false);
                self.suite(&attempt.finalbody, None, None, false);
            }
            _ => {
                self.statement(stmt.range(), false);
                self.simple(stmt);
            }
        }
    }

    fn new_loop(&mut self, range: TextRange, target: String, iter: String) -> usize {
        self.index.loops.push(LoopRecord { statement: self.statement, range, target, iter });
        self.index.loops.len() - 1
    }

    fn choice(&mut self, choice: &ast::StmtIf) {
        self.header(choice, &*choice.test);
        self.visit_expr(&choice.test);
        let mut test = self.source.inline(choice.test.range());
        self.suite(&choice.body, Some(test.clone()), None, false);
        for clause in &choice.elif_else_clauses {
            let Some(next) = &clause.test else {
                self.suite(&clause.body, Some(format!("not ({test})")), None, false);
                continue;
            };
            self.header(clause, next);
            self.visit_expr(next);
            let next = self.source.inline(next.range());
            self.suite(&clause.body, Some(next.clone()), None, false);
            test = format!("{test} or {next}");
        }
    }

    fn with(&mut self, with: &ast::StmtWith) {
        let end = with.items.last().map_or(with.range(), Ranged::range);
        self.header(with, &end);
        let mut no_grad = false;
        for item in &with.items {
            self.visit_expr(&item.context_expr);
            self.index.managed.push(item.context_expr.range());
            no_grad |= stops_grad(&item.context_expr);
            if let Some(target) = &item.optional_vars {
                self.bind(target, &item.context_expr);
            }
        }
        self.suite(&with.body, None, None, no_grad);
    }

    fn except(&mut self, handler: &ast::ExceptHandlerExceptHandler) {
        let end =
            handler.name.as_ref().map(Ranged::range).or(handler.type_.as_ref().map(|kind| kind.range()));
        self.header(handler, &end.unwrap_or(TextRange::empty(handler.start())));
        if let Some(kind) = &handler.type_ {
            self.visit_expr(kind);
        }
        if let Some(name) = &handler.name {
            self.bind_plain(name, name.range(), Nature::Caught);
        }
        let kind = handler.type_.as_ref().map_or(String::new(), |kind| self.source.inline(kind.range()));
        self.suite(&handler.body, Some(format!("except {kind}").trim_end().to_owned()), None, false);
    }

    fn function(&mut self, function: &ast::StmtFunctionDef) {
        let header = self.index.statements.len();
        let decorators = self.decorators(&function.decorator_list);
        let end = function.returns.as_ref().map_or(function.parameters.range(), |returns| returns.range());
        let start = function.decorator_list.last().map_or(function.start(), |last| {
            // The `def` keyword: first text after the decorators.
            let gap = self.source.slice(TextRange::new(last.end(), function.name.start()));
            let blank = gap.find(['d', 'a']).unwrap_or(0);
            last.end() + ruff_text_size::TextSize::try_from(blank).unwrap_or_default()
        });
        self.statement(TextRange::new(start, end.end().max(start)), true);
        for parameter in &*function.parameters {
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
            }
        }
        self.bind_plain(&function.name, function.name.range(), Nature::Definition);
        let name = self.qualified(&function.name);
        let class = match self.index.scopes[self.scope].kind {
            ScopeKind::Class => self.index.scopes[self.scope].class,
            _ => None,
        };
        let outer = self.enter_scope(ScopeKind::Function, name, function.range(), class);
        // Decorators and the `def` line belong to the function.
        for statement in &mut self.index.statements[header..] {
            statement.scope = self.scope;
        }
        self.parameters(&function.parameters);
        let named = |name: &str| decorators.iter().any(|decorator| decorator.path.last_name() == Some(name));
        let is_static = named("staticmethod");
        let is_property = named("property") || named("cached_property");
        let no_grad = named("no_grad") || named("inference_mode") || {
            let calls = |decorator: &Decorator| match decorator.path.steps.as_slice() {
                [.., Step::Attr(name), Step::Call] => matches!(name.as_str(), "no_grad" | "inference_mode"),
                [Step::Call] => matches!(decorator.path.root_name(), Some("no_grad" | "inference_mode")),
                _ => false,
            };
            decorators.iter().any(calls)
        };
        let scope = self.scope_mut();
        (scope.is_static, scope.is_property, scope.no_grad) = (is_static, is_property, no_grad);
        scope.decorators = decorators;
        self.body(&function.body);
        self.leave_scope(outer);
    }

    /// A function's or class's body, in a block without outer conditions and loops.
    fn body(&mut self, body: &[Stmt]) {
        let inner = self.new_block(Block { parent: None, condition: None, repeats: None, no_grad: false });
        let outer = (self.block, self.statement);
        self.block = inner;
        let first = self.index.statements.len();
        self.visit_body(body);
        let last = self.index.statements.len().saturating_sub(1);
        let leaves = matches!(body.last(), Some(Stmt::Return(_) | Stmt::Raise(_)));
        let scope = self.scope_mut();
        scope.first = Some(first).filter(|_| !body.is_empty());
        scope.tail = Some(last).filter(|_| leaves);
        (self.block, self.statement) = outer;
    }

    fn class(&mut self, class: &ast::StmtClassDef) {
        self.decorators(&class.decorator_list);
        let end = class.arguments.as_ref().map_or(class.name.range(), |arguments| arguments.range());
        self.header(&class.name, &end);
        let mut bases = Vec::new();
        if let Some(arguments) = &class.arguments {
            self.visit_arguments(arguments);
            bases.extend(
                arguments.args.iter().filter_map(|base| path_of(base).last_name().map(str::to_owned)),
            );
        }
        self.bind_plain(&class.name, class.name.range(), Nature::Definition);
        let name = self.qualified(&class.name);
        let id = self.index.classes.len();
        let outer = self.enter_scope(ScopeKind::Class, name.clone(), class.range(), Some(id));
        self.index.classes.push(Class { name, bases, scope: self.scope });
        self.body(&class.body);
        self.leave_scope(outer);
    }

    fn qualified(&self, name: &str) -> String {
        let mut scope = Some(self.scope);
        while let Some(at) = scope {
            let around = &self.index.scopes[at];
            if !around.name.is_empty() {
                return format!("{}.{name}", around.name);
            }
            scope = around.parent;
        }
        name.to_owned()
    }

    fn decorators(&mut self, decorators: &[ast::Decorator]) -> Vec<Decorator> {
        let mut found = Vec::new();
        for decorator in decorators {
            self.statement(decorator.range(), true);
            self.visit_expr(&decorator.expression);
            let (mut keywords, mut arguments) = (Vec::new(), Vec::new());
            if let Expr::Call(call) = &decorator.expression {
                let text = |expr: &Expr| self.source.inline(expr.range());
                arguments.extend(call.arguments.args.iter().map(text));
                keywords.extend(call.arguments.keywords.iter().map(|keyword| {
                    (keyword.arg.as_ref().map_or(String::new(), ToString::to_string), text(&keyword.value))
                }));
            }
            let path = path_of(&decorator.expression);
            found.push(Decorator { path, range: decorator.range(), keywords, arguments });
        }
        found
    }

    pub(crate) fn parameters(&mut self, parameters: &ast::Parameters) {
        let keyword_only = parameters.posonlyargs.len() + parameters.args.len();
        for (position, parameter) in parameters.iter_non_variadic_params().enumerate() {
            let name = parameter.parameter.name.to_string();
            let annotation = parameter.parameter.annotation.as_deref().and_then(annotated);
            let default = parameter.default.as_deref().map(hint_of);
            let default_range = parameter.default.as_deref().map(Ranged::range);
            let scope = self.scope_mut();
            scope.bound.insert(name.clone());
            scope.parameters.push(Parameter {
                name,
                annotation,
                default,
                default_range,
                keyword_only: position >= keyword_only,
            });
        }
        for variadic in [&parameters.vararg, &parameters.kwarg].into_iter().flatten() {
            self.scope_mut().bound.insert(variadic.name.to_string());
        }
    }

    fn simple(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(assign) => {
                self.visit_expr(&assign.value);
                for target in &assign.targets {
                    self.bind(target, &assign.value);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.visit_expr(value);
                    self.bind(&assign.target, value);
                }
            }
            Stmt::AugAssign(assign) => {
                self.visit_expr(&assign.value);
                self.augmented(assign);
            }
            Stmt::Delete(delete) => delete.targets.iter().for_each(|target| self.delete(target)),
            Stmt::Return(ast::StmtReturn { value: Some(value), .. }) => {
                self.visit_expr(value);
                let (path, place) = (path_of(value), self.place(value.range()));
                if !path.is_opaque() {
                    self.scope_mut().returns.push((path, place));
                }
            }
            Stmt::Global(global) => {
                let names: Vec<String> = global.names.iter().map(ToString::to_string).collect();
                self.scope_mut().globals.extend(names);
            }
            Stmt::Nonlocal(nonlocal) => {
                let names: Vec<String> = nonlocal.names.iter().map(ToString::to_string).collect();
                self.scope_mut().nonlocals.extend(names);
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    let dotted = alias.name.to_string();
                    let root = dotted.split('.').next().unwrap_or("").to_owned();
                    match &alias.asname {
                        Some(name) => self.import(name.as_str(), alias.range(), dotted),
                        None => self.import(&root.clone(), alias.range(), root),
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.import(name.as_str(), alias.range(), format!("{module}.{}", alias.name));
                }
            }
            _ => visitor::walk_stmt(self, stmt),
        }
    }
}

/// `torch.no_grad()`, `inference_mode()`, `set_grad_enabled(False)`.
fn stops_grad(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    match path_of(&call.func).last_name() {
        Some("no_grad" | "inference_mode") => true,
        Some("set_grad_enabled") => {
            matches!(call.arguments.args.first(), Some(Expr::BooleanLiteral(literal)) if !literal.value)
        }
        _ => false,
    }
}

/// Last name of an annotation: `Trainer` of `Trainer`, `"Trainer"`, `trainers.Trainer`, `Optional[Trainer]`.
fn annotated(annotation: &Expr) -> Option<String> {
    match annotation {
        Expr::StringLiteral(text) => text.value.to_str().rsplit('.').next().map(str::to_owned),
        Expr::Subscript(subscript) => annotated(&subscript.slice),
        Expr::BinOp(either) => annotated(&either.left),
        _ => path_of(annotation).last_name().map(str::to_owned),
    }
}
