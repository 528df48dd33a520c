//! Whether an expression gives one tensor, and nothing else.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, Stmt, UnaryOp};
use ruff_text_size::Ranged;

use crate::library::numbers;
use crate::proof::scope::Scope;

/// Steps from one name to the next that are taken.
const MAX_STEPS: usize = 8;

pub(super) fn is_tensor(scope: &Scope<'_>, expr: &Expr) -> bool {
    proved(scope, expr, MAX_STEPS)
}

fn proved(scope: &Scope<'_>, expr: &Expr, steps: usize) -> bool {
    let Some(steps) = steps.checked_sub(1) else { return false };
    let tensor = |expr: &Expr| proved(scope, expr, steps);
    match expr {
        Expr::Name(name) => {
            let values = scope.values(name.id.as_str());
            values.is_some_and(|values| values.iter().all(|value| tensor(value)))
                || differentiated(scope, name)
        }
        // Objects of other classes may make of a tensor what they like.
        Expr::BinOp(both) => match (tensor(&both.left), tensor(&both.right)) {
            (true, true) => true,
            (true, false) => is_number(scope, &both.right),
            (false, true) => is_number(scope, &both.left),
            (false, false) => false,
        },
        Expr::UnaryOp(unary) => unary.op != UnaryOp::Not && tensor(&unary.operand),
        Expr::If(either) => tensor(&either.body) && tensor(&either.orelse),
        Expr::Subscript(part) => tensor(&part.value),
        Expr::Attribute(attribute) => {
            matches!(attribute.attr.as_str(), "data" | "T" | "mT") && tensor(&attribute.value)
        }
        Expr::Call(call) => gives_tensor(scope, call, steps),
        _ => false,
    }
}

fn is_number(scope: &Scope<'_>, expr: &Expr) -> bool {
    match expr {
        Expr::NumberLiteral(_) => true,
        Expr::UnaryOp(unary) => is_number(scope, &unary.operand),
        Expr::Call(call) => {
            scope.builtin(&call.func).is_some_and(|name| matches!(name, "float" | "int" | "len"))
        }
        _ => false,
    }
}

fn gives_tensor(scope: &Scope<'_>, call: &ast::ExprCall, steps: usize) -> bool {
    if let Some(name) = scope.canonical(&call.func) {
        return numbers::FUNCTIONS.contains(&name.as_str());
    }
    match &*call.func {
        Expr::Attribute(method) => {
            numbers::METHODS.contains(&method.attr.as_str()) && proved(scope, &method.value, steps)
        }
        Expr::Name(name) => match scope.values(name.id.as_str()) {
            Some(values) => values.iter().all(|value| is_loss(scope, value)),
            None => scope.function(&call.func).is_some_and(|function| returns_tensor(scope, function, steps)),
        },
        _ => false,
    }
}

/// `nn.MSELoss()`, which gives a tensor when it is called.
fn is_loss(scope: &Scope<'_>, made: &Expr) -> bool {
    let Expr::Call(call) = made else { return false };
    scope.canonical(&call.func).is_some_and(|class| numbers::LOSSES.contains(&class.as_str()))
}

/// A function of the same file whose every way out gives a tensor.
fn returns_tensor(scope: &Scope<'_>, function: &ast::StmtFunctionDef, steps: usize) -> bool {
    struct Returns<'a>(Vec<Option<&'a Expr>>, bool);
    impl<'a> Visitor<'a> for Returns<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            match stmt {
                Stmt::Return(stmt) => self.0.push(stmt.value.as_deref()),
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
                _ => {}
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.1 |= matches!(expr, Expr::Yield(_) | Expr::YieldFrom(_));
            visitor::walk_expr(self, expr);
        }
    }
    let mut returns = Returns(Vec::new(), false);
    returns.visit_body(&function.body);
    let plain = function.decorator_list.is_empty() && !function.is_async && !returns.1;
    let ends = matches!(function.body.last(), Some(Stmt::Return(_)));
    let inner = Scope::of(scope.file, function);
    plain && ends && returns.0.iter().all(|value| value.is_some_and(|value| proved(&inner, value, steps)))
}

/// `loss.backward()` beside the use, with nothing in between that binds `loss` anew.
fn differentiated(scope: &Scope<'_>, name: &ast::ExprName) -> bool {
    struct Search<'n> {
        name: &'n ast::ExprName,
        /// Bindings of the name.
        places: &'n [ruff_text_size::TextSize],
        found: bool,
    }
    impl<'v> Visitor<'v> for Search<'_> {
        fn visit_body(&mut self, body: &'v [Stmt]) {
            if let Some(used) = body.iter().find(|stmt| stmt.range().contains_range(self.name.range())) {
                let calls = body.iter().filter(|stmt| is_backward(stmt, self.name.id.as_str()));
                for call in calls {
                    let (from, to) = (call.start().min(used.start()), call.start().max(used.start()));
                    self.found |= !self.places.iter().any(|place| (from..to).contains(place));
                }
            }
            visitor::walk_body(self, body);
        }
        fn visit_expr(&mut self, _: &'v Expr) {}
    }
    if !scope.only_tensors_differentiate {
        return false;
    }
    let Some(binding) = scope.variables.get(name.id.as_str()) else { return false };
    let mut search = Search { name, places: &binding.places, found: false };
    search.visit_body(scope.body);
    search.found
}

fn is_backward(stmt: &Stmt, name: &str) -> bool {
    let Stmt::Expr(stmt) = stmt else { return false };
    let Expr::Call(call) = &*stmt.value else { return false };
    let Expr::Attribute(method) = &*call.func else { return false };
    method.attr.as_str() == "backward" && matches!(&*method.value, Expr::Name(of) if of.id.as_str() == name)
}
