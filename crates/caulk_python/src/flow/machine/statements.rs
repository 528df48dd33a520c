//! Statements.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, ExceptHandler, Expr, Pattern, Stmt};

use crate::flow::event::Guards;
use crate::flow::heap::Shape;
use crate::flow::ids::ObjectId;
use crate::flow::machine::Machine;
use crate::flow::machine::binding::counted;
use crate::flow::machine::frame::Frame;
use crate::flow::machine::guards::{beside_turn, end_of, guard, is_latched, is_main_guard, negated};
use crate::flow::scopes::located;
use crate::flow::syntax::last_name;
use crate::flow::value::{Kinds, Literal, Value};

impl<'p> Machine<'p> {
    pub(crate) fn suite(&mut self, f: &mut Frame, body: &'p [Stmt]) {
        let guards = f.guards;
        for (number, stmt) in body.iter().enumerate() {
            if !f.live {
                break;
            }
            f.statement = located(f.file, stmt);
            let rest = &body[number + 1..];
            stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.statement(f, stmt, rest));
        }
        f.guards = guards;
    }

    fn statement(&mut self, f: &mut Frame, stmt: &'p Stmt, rest: &'p [Stmt]) {
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
                    if self.lengthen_by_slice(f, target, &assign.value, &value) {
                        continue;
                    }
                    let value = self.named_role(f, target, value, &assign.value);
                    let value = counted(f, target, &assign.value, value);
                    self.relength(f, target, &assign.value, &value);
                    self.assign(f, target, value, false);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(expr) = &assign.value {
                    let value = self.eval(f, expr);
                    let value = self.named_role(f, &assign.target, value, expr);
                    self.relength(f, &assign.target, expr, &value);
                    self.assign(f, &assign.target, value, false);
                }
            }
            Stmt::AugAssign(assign) => self.augment(f, assign),
            Stmt::For(stmt) => self.for_loop(f, stmt),
            Stmt::While(stmt) => self.while_loop(f, stmt),
            Stmt::If(stmt) => self.branch(f, stmt, rest),
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
                self.enter_context(f, &stmt.value);
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

    fn branch(&mut self, f: &mut Frame, stmt: &'p ast::StmtIf, rest: &'p [Stmt]) {
        let test = self.eval(f, &stmt.test);
        let outer = f.guards;
        let mut otherwise = f.slots.clone();
        let mut ends: Vec<(Vec<Value>, bool)> = Vec::new();
        let mut falls_through = true;
        let recording = f.recording;
        let (under, beside) = recording_asked(&stmt.test, recording);
        let latch = self.latch(&stmt.test, true, &stmt.body);
        let repeating = self.repeating(f, &stmt.test);
        let condition = if repeating.is_some() { beside_turn(&stmt.test) } else { guard(&stmt.test) };
        f.guards = outer.with(condition).with(latch).with(end_of(&stmt.body));
        self.narrow(f, &stmt.test, true);
        f.live = !self.is_switched(f, &stmt.test, &test, false);
        f.recording = under;
        let inside = repeating.map(|outside| f.loops.split_off(outside));
        self.suite(f, &stmt.body);
        f.loops.extend(inside.into_iter().flatten());
        ends.push((std::mem::replace(&mut f.slots, otherwise.clone()), f.live));
        let comes_by = !self.is_switched(f, &stmt.test, &test, true);
        f.live = comes_by;
        f.recording = beside;
        self.narrow(f, &stmt.test, false);
        otherwise.clone_from(&f.slots);
        for clause in &stmt.elif_else_clauses {
            if let Some(test) = &clause.test {
                f.guards = outer;
                self.eval(f, test);
                f.guards = outer.with(guard(test));
                otherwise.clone_from(&f.slots);
                self.narrow(f, test, true);
            } else {
                falls_through = false;
                f.guards = outer.with(negated(&stmt.test));
            }
            f.guards = f.guards.with(end_of(&clause.body));
            self.suite(f, &clause.body);
            ends.push((std::mem::replace(&mut f.slots, otherwise.clone()), f.live));
            f.live = comes_by;
            if let Some(test) = &clause.test {
                self.narrow(f, test, false);
                otherwise.clone_from(&f.slots);
            }
        }
        // `if len(x) > most: return` guards what follows.
        let left = ends.first().is_some_and(|(_, live)| !live);
        let limits = left && guard(&stmt.test).has(Guards::LENGTH);
        f.guards = if limits { outer.with(negated(&stmt.test)) } else { outer };
        if left {
            f.guards = f.guards.with(self.latch(&stmt.test, false, rest));
        }
        // What follows an `if torch.is_grad_enabled(): ... return` records nothing.
        f.recording = if left { beside } else { recording };
        f.live = falls_through && comes_by && !is_main_guard(&stmt.test);
        for (slots, live) in ends {
            f.join(&slots, live);
        }
    }

    /// What it says of statements that they run while a condition holds, or does not.
    fn latch(&self, test: &Expr, holds: bool, body: &[Stmt]) -> Guards {
        let raised =
            |name: &str| self.symbols.find(name).is_some_and(|name| self.scopes.raised.contains(&name));
        if is_latched(test, holds, body, &raised) { Guards::ONCE } else { Guards::default() }
    }

    /// A parameter that is `on` in this call: `plot(x, show=False)`; or an attribute of the object itself, not one that its
    /// class declares, as settings do, and that is never switched on.
    fn is_switched(&mut self, f: &Frame, test: &Expr, value: &Value, on: bool) -> bool {
        if value.literal != Literal::Bool(on) || !value.only(Kinds::NUMBER) {
            return false;
        }
        let Some(parameters) = self.scopes.function(f.function).parameters() else { return false };
        match test {
            Expr::Name(name) => parameters.includes(&name.id),
            Expr::Attribute(switch) if !on => {
                let itself = parameters.iter().next().map(|first| first.name().as_str());
                if itself.is_none_or(|name| last_name(&switch.value) != Some(name)) {
                    return false;
                }
                let Some(name) = self.symbols.find(switch.attr.as_str()) else { return false };
                let own = f.receiver.map(|receiver| self.heap.shape(receiver));
                let Some(Shape::Instance(class)) = own else { return false };
                !self.scopes.raised.contains(&name) && self.class_member(class, name).is_none()
            }
            _ => false,
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
                    // A generator under `contextmanager`: what it yields, as it yields it.
                    Shape::Iterator => {
                        entered = self.heap.get(object).elements;
                        f.recording &= !self.yields_without_recording(object);
                    }
                    _ => {}
                }
            }
            self.library_event(f, "with", value, Value::NOTHING, entered, &item.context_expr);
            if let Some(target) = &item.optional_vars {
                self.assign(f, target, entered, false);
            }
        }
        self.suite(f, &stmt.body);
        // It is left in order, too, where its body returns.
        let live = std::mem::replace(&mut f.live, true);
        for (object, expr) in exits {
            let class = Value::of(Kinds::NONE.with(Kinds::LIBRARY));
            let raised = Value::of(Kinds::NONE.with(Kinds::EXCEPTION));
            self.call_method(f, object, self.names.exit, &[class, raised, raised], expr);
        }
        f.live = live;
        f.recording = recording;
    }

    /// Whether the function of a generator yields inside `with torch.no_grad()`.
    fn yields_without_recording(&self, generator: ObjectId) -> bool {
        let call = self.generators.get(&generator).map(|call| &self.activations[call.0 as usize]);
        let definition = call.and_then(|call| self.scopes.function(call.function).definition());
        definition.is_some_and(|definition| {
            let mut yields = Unrecorded { off: false, found: false };
            yields.visit_body(&definition.body);
            yields.found
        })
    }

    /// `stack.enter_context(torch.no_grad())`: until the stack's own `with` ends.
    fn enter_context(&mut self, f: &mut Frame, expr: &'p Expr) {
        let Expr::Call(call) = expr else { return };
        if let (Some("enter_context"), [context]) = (last_name(&call.func), &*call.arguments.args)
            && let Some(on) = self.recording_switch(f, context)
        {
            f.recording = on;
        }
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
            f.guards = outer.with(Guards::CAUGHT).with(end_of(&handler.body));
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
}

/// Whether graphs are recorded where a condition holds and where it does not: `torch.is_grad_enabled()` is asked.
fn recording_asked(test: &Expr, recording: bool) -> (bool, bool) {
    match test {
        Expr::UnaryOp(not) if not.op == ast::UnaryOp::Not => {
            let (under, beside) = recording_asked(&not.operand, recording);
            (beside, under)
        }
        Expr::Call(call) if last_name(&call.func) == Some("is_grad_enabled") => (recording, false),
        _ => (recording, recording),
    }
}

/// Looks for `yield` inside `with torch.no_grad()`.
struct Unrecorded {
    off: bool,
    found: bool,
}

impl<'a> Visitor<'a> for Unrecorded {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let outer = self.off;
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::With(with) => {
                let off = |item: &ast::WithItem| matches!(&item.context_expr, Expr::Call(call) if matches!(last_name(&call.func), Some("no_grad" | "inference_mode")));
                self.off |= with.items.iter().any(off);
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
        self.off = outer;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.found |= self.off && expr.is_yield_expr();
        visitor::walk_expr(self, expr);
    }
}
