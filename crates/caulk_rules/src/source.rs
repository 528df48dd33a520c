//! Syntax trees around what the analysis tells: bodies of functions and loops.

use caulk_python::Project;
use caulk_python::{FileId, Location};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// The smallest function's body around a place, else the module's.
pub(crate) fn body_around(project: &Project, at: Location) -> &[Stmt] {
    struct Around<'a> {
        at: TextRange,
        body: &'a [Stmt],
    }
    impl<'a> Visitor<'a> for Around<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if !stmt.range().contains_range(self.at) {
                return;
            }
            if let Stmt::FunctionDef(function) = stmt {
                self.body = &function.body;
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let body = &project.file(at.file).tree().body;
    let mut around = Around { at: at.range.into(), body };
    around.visit_body(body);
    around.body
}

/// The statement that begins and ends at a place.
pub(crate) fn statement_at(project: &Project, at: Location) -> Option<&Stmt> {
    struct At<'a> {
        at: TextRange,
        found: Option<&'a Stmt>,
    }
    impl<'a> Visitor<'a> for At<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if stmt.range() == self.at {
                self.found = self.found.or(Some(stmt));
            } else if stmt.range().contains_range(self.at) {
                visitor::walk_stmt(self, stmt);
            }
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut search = At { at: at.range.into(), found: None };
    search.visit_body(&project.file(at.file).tree().body);
    search.found
}

/// The statements that follow one in the same body.
pub(crate) fn statements_after(project: &Project, at: Location) -> &[Stmt] {
    struct After<'a> {
        at: TextRange,
        found: &'a [Stmt],
    }
    impl<'a> Visitor<'a> for After<'a> {
        fn visit_body(&mut self, body: &'a [Stmt]) {
            for (index, stmt) in body.iter().enumerate() {
                if stmt.range() == self.at {
                    self.found = &body[index + 1..];
                } else if stmt.range().contains_range(self.at) {
                    visitor::walk_stmt(self, stmt);
                }
            }
        }
    }
    let mut search = After { at: at.range.into(), found: &[] };
    search.visit_body(&project.file(at.file).tree().body);
    search.found
}

/// Whether a statement makes one tensor, array or table of all that an expression holds.
pub(crate) fn joins(project: &Project, file: FileId, stmt: &Stmt, wanted: &str) -> bool {
    const JOINS: &[&str] =
        &["cat", "concat", "concatenate", "stack", "vstack", "hstack", "pad_sequence", "array", "DataFrame"];
    struct Joins<'a> {
        project: &'a Project,
        file: FileId,
        wanted: &'a str,
        inside: bool,
        found: bool,
    }
    impl<'a> Visitor<'a> for Joins<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            let at = Location { file: self.file, range: expr.range().into() };
            let is_wanted = self.inside && expr.range().len() == TextSize::of(self.wanted);
            self.found |= is_wanted && self.project.text(at) == self.wanted;
            let outer = self.inside;
            let call = expr.as_call_expr().and_then(|call| last_name(&call.func));
            self.inside |= call.is_some_and(|name| JOINS.contains(&name));
            visitor::walk_expr(self, expr);
            self.inside = outer;
        }
    }
    let mut search = Joins { project, file, wanted, inside: false, found: false };
    search.visit_stmt(stmt);
    search.found
}

/// The expression that begins and ends at a place.
pub(crate) fn expression_at(project: &Project, at: Location) -> Option<&Expr> {
    struct At<'a> {
        at: TextRange,
        found: Option<&'a Expr>,
    }
    impl<'a> Visitor<'a> for At<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if stmt.range().contains_range(self.at) {
                visitor::walk_stmt(self, stmt);
            }
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            if expr.range() == self.at {
                self.found = self.found.or(Some(expr));
            } else if expr.range().contains_range(self.at) {
                visitor::walk_expr(self, expr);
            }
        }
    }
    let mut search = At { at: at.range.into(), found: None };
    search.visit_body(&project.file(at.file).tree().body);
    search.found
}

/// Whether the project reads no more of the attribute that a list is than its last elements and its length: `self.rows[-4:]`,
/// `len(log.rows)`.
pub(crate) fn is_read_at_its_end(project: &Project, list: Location) -> bool {
    struct Reads<'a> {
        name: &'a str,
        ends: bool,
        others: bool,
    }
    impl Reads<'_> {
        fn is_list(&self, expr: &Expr) -> bool {
            matches!(expr, Expr::Attribute(attribute) if attribute.attr.as_str() == self.name)
        }
    }
    impl<'a> Visitor<'a> for Reads<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            match expr {
                Expr::Subscript(part) if self.is_list(&part.value) => match &*part.slice {
                    Expr::Slice(slice)
                        if slice.upper.is_none()
                            && slice.lower.as_deref().is_some_and(Expr::is_unary_op_expr) =>
                    {
                        self.ends = true;
                    }
                    _ => self.others = true,
                },
                Expr::Call(call) => {
                    let counts = last_name(&call.func) == Some("len");
                    let adds = matches!(last_name(&call.func), Some("append" | "extend"))
                        && call.func.as_attribute_expr().is_some_and(|method| self.is_list(&method.value));
                    if !adds {
                        self.visit_expr(&call.func);
                    }
                    let given = call.arguments.args.iter().filter(|given| !(counts && self.is_list(given)));
                    given.collect::<Vec<_>>().into_iter().for_each(|given| self.visit_expr(given));
                    call.arguments.keywords.iter().for_each(|given| self.visit_expr(&given.value));
                }
                Expr::Attribute(attribute) if self.is_list(expr) => self.others |= attribute.ctx.is_load(),
                _ => visitor::walk_expr(self, expr),
            }
        }
    }
    let Some(Expr::Attribute(attribute)) = expression_at(project, list) else { return false };
    let mut reads = Reads { name: attribute.attr.as_str(), ends: false, others: false };
    for file in project.ids() {
        reads.visit_body(&project.file(file).tree().body);
    }
    reads.ends && !reads.others
}

/// What a call is a call of, as it is written.
pub(crate) fn callee(project: &Project, call: Location) -> String {
    match expression_at(project, call) {
        Some(Expr::Call(expr)) => project.text(located(call.file, &*expr.func)).to_owned(),
        _ => project.text(call).to_owned(),
    }
}

pub(crate) fn located(file: FileId, node: &impl Ranged) -> Location {
    Location { file, range: node.range().into() }
}

/// The last name of an expression: `c` of `a.b.c`, of `a.c()` and of `c`.
pub(crate) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}

/// Whether a loop's body has a way out of it.
pub(crate) fn leaves(body: &[Stmt]) -> bool {
    #[derive(Default)]
    struct Exits {
        found: bool,
        /// Loops inside of the body, which a `break` leaves.
        inner: usize,
    }
    impl<'a> Visitor<'a> for Exits {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            match stmt {
                Stmt::Break(_) => self.found |= self.inner == 0,
                Stmt::Return(_) | Stmt::Raise(_) => self.found = true,
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
                Stmt::For(_) | Stmt::While(_) => {
                    self.inner += 1;
                    visitor::walk_stmt(self, stmt);
                    self.inner -= 1;
                }
                _ => visitor::walk_stmt(self, stmt),
            }
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Call(call) = expr {
                self.found |= matches!(last_name(&call.func), Some("exit" | "_exit"));
            }
            visitor::walk_expr(self, expr);
        }
    }
    let mut exits = Exits::default();
    exits.visit_body(body);
    exits.found
}

/// `while True:` without a way out.
pub(crate) fn never_left(stmt: &Stmt) -> bool {
    let Stmt::While(repeated) = stmt else { return false };
    let forever = match &*repeated.test {
        Expr::BooleanLiteral(literal) => literal.value,
        Expr::NumberLiteral(_) => true,
        _ => false,
    };
    forever && !leaves(&repeated.body)
}

/// `while time.monotonic() < until:`, `while not stop.is_set():`: as long as a clock or somebody else lets it.
pub(crate) fn is_ended_from_outside(stmt: &Stmt) -> bool {
    const ASKED: &[&str] = &["is_set", "monotonic", "now", "perf_counter", "process_time", "time"];
    struct Asks(bool);
    impl<'a> Visitor<'a> for Asks {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Call(call) = expr {
                self.0 |= last_name(&call.func).is_some_and(|name| ASKED.contains(&name));
            }
            visitor::walk_expr(self, expr);
        }
    }
    let Stmt::While(repeated) = stmt else { return false };
    let mut asks = Asks(false);
    asks.visit_expr(&repeated.test);
    asks.0
}

/// Whether what an expression gives is unpacked: `loss, shown = criterion(x)`.
pub(crate) fn is_unpacked(project: &Project, at: Location) -> bool {
    struct Unpacked {
        at: TextRange,
        found: bool,
    }
    impl<'a> Visitor<'a> for Unpacked {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::Assign(assign) = stmt {
                let several = |target: &Expr| matches!(target, Expr::Tuple(_) | Expr::List(_));
                self.found |= assign.value.range() == self.at && assign.targets.iter().any(several);
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut unpacked = Unpacked { at: at.range.into(), found: false };
    unpacked.visit_body(body_around(project, at));
    unpacked.found
}

/// Whether a file imports another framework for training, and not torch.
pub(crate) fn is_of_another_framework(project: &Project, file: FileId) -> bool {
    const OTHERS: [&str; 7] = ["flax", "jax", "keras", "mindspore", "mxnet", "paddle", "tensorflow"];
    const TORCH: [&str; 8] = [
        "accelerate",
        "ignite",
        "lightning",
        "pytorch_lightning",
        "timm",
        "torch",
        "torchvision",
        "transformers",
    ];
    struct Imports {
        others: bool,
        torch: bool,
    }
    impl Imports {
        fn meet(&mut self, module: &str) {
            let root = module.split('.').next().unwrap_or_default();
            self.others |= OTHERS.contains(&root);
            self.torch |= TORCH.contains(&root);
        }
    }
    impl<'a> Visitor<'a> for Imports {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            match stmt {
                Stmt::Import(import) => import.names.iter().for_each(|alias| self.meet(&alias.name)),
                Stmt::ImportFrom(import) => self.meet(import.module.as_deref().unwrap_or_default()),
                _ => {}
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut imports = Imports { others: false, torch: false };
    imports.visit_body(&project.file(file).tree().body);
    imports.others && !imports.torch
}
