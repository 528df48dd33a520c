//! A whole video in memory of which a few frames are used.

use caulk_core::{LeakClass, Scope};
use caulk_python::Location;
use caulk_python::program::{CallFact, GrowthFact, Guards, Root, Traits, Value};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use crate::context::Context;
use crate::rule::Rule;
use crate::source::{body_around, expression_at, last_name, located, statement_at};

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::WholeVideoLoad,
    default: true,
    explanation: include_str!("whole_video_load.md"),
    check,
};

/// Frames that are taken, and where all of them came into memory.
struct Sampled {
    taken: Location,
    blamed: Location,
    container: String,
    function: String,
}

fn check(cx: &mut Context<'_>) {
    let growths = cx.analysis.growths();
    let mut found: Vec<Sampled> = Vec::new();
    for taken in cx.analysis.calls(&["taken from frames"]) {
        if taken.root == Root::Test || taken.argument.traits.has(Traits::FRAME.with(Traits::FRAMES)) {
            continue;
        }
        if let Some(sampled) = sampled(cx, &taken, growths)
            && found.iter().all(|known| known.blamed != sampled.blamed)
        {
            found.push(sampled);
        }
    }
    for sampled in &found {
        report(cx, sampled);
    }
}

/// `frames[picks]` where nothing else looks at `frames`.
fn sampled(cx: &Context<'_>, taken: &CallFact, growths: &[GrowthFact]) -> Option<Sampled> {
    let Some(Expr::Subscript(subscript)) = expression_at(cx.project(), taken.at) else { return None };
    if takes_all(&subscript.slice) {
        return None;
    }
    let function = cx.function(taken.function).to_owned();
    let Some(name) = subscript.value.as_name_expr() else {
        // Nobody else can look at what has no name. A list of what was made of one frame is no video.
        if !taken.receiver.traits.has(Traits::WHOLE) {
            return None;
        }
        let blamed = located(taken.at.file, &*subscript.value);
        let container = made_by(cx, blamed)?;
        return Some(Sampled { taken: taken.at, blamed, container, function });
    };
    let (name, body) = (name.id.as_str(), body_around(cx.project(), taken.at));
    if !only_sampled(body, name) {
        return None;
    }
    if let Some(growth) = filled(cx, &taken.receiver, growths) {
        if growth.function == taken.function {
            let container = cx.text(growth.container);
            return Some(Sampled { taken: taken.at, blamed: growth.container, container, function });
        }
    } else if !taken.receiver.traits.has(Traits::WHOLE) {
        return None;
    }
    let bound = located(taken.at.file, &binding(body, name, subscript.range())?);
    let decoded = cx.analysis.origin(&taken.receiver).filter(|decoded| decoded.is_in(bound));
    let container = match decoded {
        Some(decoded) => cx.text(decoded),
        None => made_by(cx, bound)?,
    };
    Some(Sampled { taken: taken.at, blamed: decoded.unwrap_or(bound), container, function })
}

/// `[:]`.
fn takes_all(slice: &Expr) -> bool {
    matches!(slice, Expr::Slice(slice) if slice.lower.is_none() && slice.upper.is_none() && slice.step.is_none())
}

/// Where a list gets every frame: nothing is skipped, and reading goes on to the end.
fn filled<'g>(cx: &Context<'_>, frames: &Value, growths: &'g [GrowthFact]) -> Option<&'g GrowthFact> {
    const CHOOSES: Guards = Guards::CONDITION.with(Guards::LENGTH).with(Guards::MODULO).with(Guards::MISSING);
    let mut of_frames = growths.iter().filter(|growth| {
        growth
            .cases
            .iter()
            .any(|case| frames.objects.contains(case.object) && case.value.traits.has(Traits::FRAME))
    });
    let growth = of_frames.next()?;
    if of_frames.next().is_some() {
        return None;
    }
    let chosen = growth.cases.iter().any(|case| case.duration.guards.has(CHOOSES));
    let inner = *growth.cases.first()?.duration.growing.last()?;
    let a_loop = statement_at(cx.project(), cx.analysis.a_loop(inner).at?)?;
    (!chosen && reads_to_the_end(a_loop)).then_some(growth)
}

/// A loop that leaves only when nothing more can be read, and does not look for places in the video.
fn reads_to_the_end(a_loop: &Stmt) -> bool {
    struct Exits {
        early: bool,
    }
    impl<'a> Visitor<'a> for Exits {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::If(branch) = stmt {
                let leaves = branch
                    .body
                    .iter()
                    .any(|inner| matches!(inner, Stmt::Break(_) | Stmt::Return(_) | Stmt::Continue(_)));
                let failed = match &*branch.test {
                    Expr::UnaryOp(not) => not.operand.is_name_expr(),
                    Expr::Compare(compare) => compare.comparators.iter().any(Expr::is_none_literal_expr),
                    _ => false,
                };
                self.early |= leaves && !failed;
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Call(call) = expr {
                self.early |= matches!(last_name(&call.func), Some("set" | "grab" | "seek"));
            }
            visitor::walk_expr(self, expr);
        }
    }
    let mut exits = Exits { early: false };
    visitor::walk_stmt(&mut exits, a_loop);
    !exits.early
}

/// Whether all that a body does with a variable is to fill it, measure it and take parts of it.
fn only_sampled(body: &[Stmt], name: &str) -> bool {
    let mut uses = Uses { name, others: 0 };
    uses.visit_body(body);
    uses.others == 0
}

struct Uses<'n> {
    name: &'n str,
    others: usize,
}

impl Uses<'_> {
    fn is_it(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Name(name) if name.id.as_str() == self.name)
    }
}

impl<'a> Visitor<'a> for Uses<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        // `frames = np.stack(frames)`, `del frames`.
        if let Stmt::Assign(assign) = stmt
            && let [target] = &*assign.targets
            && self.is_it(target)
            && let Expr::Call(call) = &*assign.value
            && call.arguments.args.iter().any(|argument| self.is_it(argument))
        {
            return;
        }
        if matches!(stmt, Stmt::Delete(_)) {
            return;
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Subscript(subscript) if self.is_it(&subscript.value) => {
                self.others += usize::from(takes_all(&subscript.slice));
                self.visit_expr(&subscript.slice);
            }
            Expr::Attribute(attribute) if self.is_it(&attribute.value) => {
                let harmless = ["shape", "append", "ndim", "dtype", "size"];
                self.others += usize::from(!harmless.contains(&attribute.attr.as_str()));
            }
            Expr::Call(call)
                if last_name(&call.func) == Some("len")
                    && call.arguments.args.iter().any(|argument| self.is_it(argument)) => {}
            Expr::UnaryOp(not) if not.op == ruff_python_ast::UnaryOp::Not && self.is_it(&not.operand) => {}
            Expr::Name(name) if name.ctx.is_load() && self.is_it(expr) => self.others += 1,
            _ => visitor::walk_expr(self, expr),
        }
    }
}

/// The last assignment to a variable before a place.
fn binding(body: &[Stmt], name: &str, before: TextRange) -> Option<TextRange> {
    struct Last<'n> {
        name: &'n str,
        before: TextRange,
        found: Option<TextRange>,
    }
    impl<'a> Visitor<'a> for Last<'_> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::Assign(assign) = stmt
                && assign.range().end() <= self.before.start()
                && assign.targets.iter().any(|target| binds(target, self.name))
            {
                self.found = Some(assign.value.range());
            }
            visitor::walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut last = Last { name, before, found: None };
    last.visit_body(body);
    last.found
}

fn binds(target: &Expr, name: &str) -> bool {
    match target {
        Expr::Name(bound) => bound.id.as_str() == name,
        Expr::Tuple(tuple) => tuple.elts.iter().any(|part| binds(part, name)),
        _ => false,
    }
}

/// What is called or cut there.
fn made_by(cx: &Context<'_>, at: Location) -> Option<String> {
    match expression_at(cx.project(), at)? {
        Expr::Call(call) => Some(cx.text(located(at.file, &*call.func))),
        Expr::Subscript(subscript) => Some(cx.text(located(at.file, &*subscript.value))),
        _ => None,
    }
}

fn report(cx: &mut Context<'_>, sampled: &Sampled) {
    let taken = cx.text(sampled.taken);
    let message = format!(
        "`{}` puts every frame of the video into memory, and only `{taken}` is used of them",
        sampled.container
    );
    let chain = vec![
        cx.link(sampled.blamed, "all frames are decoded here"),
        cx.link(sampled.taken, "these frames are used"),
    ];
    let diagnostic = cx.report(sampled.blamed, &sampled.function, message);
    diagnostic.container.clone_from(&sampled.container);
    diagnostic.scope = Scope::Peak;
    diagnostic.chain = chain;
}
