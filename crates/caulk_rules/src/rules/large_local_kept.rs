//! Checkpoints that a variable keeps through the training after them.

use caulk_core::{LeakClass, Scope};
use caulk_python::Location;
use caulk_python::program::Root;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::advice::advice;
use crate::context::Context;
use crate::rule::Rule;
use crate::source::{body_around, located, statement_at};

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::LargeLocalKept,
    default: false,
    explanation: include_str!("large_local_kept.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let mut seen = Vec::new();
    for loaded in cx.analysis.calls(&["torch.load"]) {
        if loaded.root == Root::Test || seen.contains(&loaded.at) {
            continue;
        }
        seen.push(loaded.at);
        if let Some((name, training)) = outlived(cx, loaded.statement) {
            let message = format!(
                "`{name}` keeps a whole checkpoint in memory while the training after its last use runs"
            );
            let chain = vec![
                cx.link(loaded.at, "the checkpoint: weights, and often the optimizer's state"),
                cx.link(training, "it is not used any more, and still there"),
            ];
            let function = cx.function(loaded.function).to_owned();
            let diagnostic = cx.report(loaded.at, &function, message);
            diagnostic.container.clone_from(&name);
            diagnostic.scope = Scope::Peak;
            diagnostic.chain = chain;
            diagnostic.fix = advice(&format!("`del {name}` after its last use, or load it in a function."));
        }
    }
}

/// The variable that an assignment binds, and a training loop after the last use of it.
fn outlived(cx: &Context<'_>, statement: Location) -> Option<(String, Location)> {
    let Stmt::Assign(assign) = statement_at(cx.project(), statement)? else { return None };
    let [Expr::Name(name)] = &*assign.targets else { return None };
    let body = body_around(cx.project(), statement);
    let mut uses = Uses { name: name.id.as_str(), last: assign.range().end(), gone: false };
    uses.visit_body(body);
    let training = body.iter().find(|stmt| {
        let at = located(statement.file, *stmt);
        stmt.range().start() > uses.last && cx.analysis.training_loops_in(at).next().is_some()
    })?;
    (!uses.gone).then(|| (name.id.to_string(), located(statement.file, training)))
}

struct Uses<'n> {
    name: &'n str,
    last: TextSize,
    gone: bool,
}

impl<'a> Visitor<'a> for Uses<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && name.id.as_str() == self.name
        {
            // Deleted, or bound to something else.
            self.gone |= !name.ctx.is_load() && expr.range().start() > self.last;
            self.last = self.last.max(expr.range().end());
        }
        visitor::walk_expr(self, expr);
    }
}
