//! Hooks that are registered again and again on a model that stays, and never removed.

mod finalizers;
mod handlers;

use caulk_core::{Certainty, LeakClass, Proof, Scope};
use caulk_python::Lines;
use caulk_python::program::{CallFact, ClassId, Guards, Kinds, Root, Traits};
use ruff_python_ast::comparable::ComparableExpr;
use ruff_python_ast::{Expr, Stmt};

use crate::context::Context;
use crate::exposure::Exposure;
use crate::fixes;
use crate::offered::{Offered, definition, is_given};
use crate::proven::of_call;
use crate::rule::Rule;
use crate::source::{body_around, callee, expression_at, last_name, located, statement_at};
use crate::twins::Cause;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::HookNeverRemoved,
    default: true,
    explanation: include_str!("hook_never_removed.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let removed = cx.analysis.releasing_calls(&["torch.utils.hooks.RemovableHandle.remove"]);
    let offered = Offered::new(cx);
    let mut classes = Vec::new();
    for call in cx.analysis.calls_giving(Kinds::HANDLE) {
        if call.root == Root::Test || call.guards.has(Guards::ONCE) {
            continue;
        }
        let duration = cx.analysis.piling(&call, std::iter::empty());
        let Some(exposure) = Exposure::outside(cx.analysis, &duration) else {
            if let Some(class) = offered.class_of(cx, call.function)
                && !classes.contains(&class)
                && is_dropped(cx, &call)
                && is_on_anothers_model(cx, &call, class)
            {
                classes.push(class);
                report_offered(cx, &call);
            }
            continue;
        };
        if !goes_with_its_model(cx, &call, exposure) && !is_removed(&call, &removed) {
            report(cx, &call, exposure);
        }
    }
    finalizers::check(cx);
    handlers::check(cx);
}

/// Whether nobody has the handle: the call is a whole statement.
fn is_dropped(cx: &Context<'_>, call: &CallFact) -> bool {
    match statement_at(cx.project(), call.statement) {
        Some(Stmt::Expr(stmt)) => located(call.at.file, &*stmt.value) == call.at,
        _ => false,
    }
}

/// Whether an object registers a hook on what it is given. A module's constructor wraps what it is given: both go together.
fn is_on_anothers_model(cx: &Context<'_>, call: &CallFact, class: ClassId) -> bool {
    let module = cx.analysis.class(class).libraries.iter().any(|base| base.starts_with("torch.nn."));
    // A tensor that is given, or computed from what is, goes with its hooks.
    if !cx.analysis.name(call.name).starts_with("torch.nn.") {
        return false;
    }
    let Some(method) = definition(cx, call.function) else { return false };
    let Some(Expr::Call(registers)) = expression_at(cx.project(), call.at) else { return false };
    let Expr::Attribute(register) = &*registers.func else { return false };
    is_given(cx, class, method, &register.value) && !(module && method.name.as_str() == "__init__")
}

/// The model, or tensor, that has the hook is made anew as often as the hook is.
fn goes_with_its_model(cx: &Context<'_>, call: &CallFact, exposure: Exposure) -> bool {
    let receiver = &call.receiver;
    if receiver.kinds.has(Kinds::TENSOR) && !receiver.kinds.has(Kinds::MODULE) {
        return !receiver.traits.has(Traits::LEAF) || is_made_here(cx, call);
    }
    match receiver.objects.iter().next() {
        Some(_) => receiver.objects.iter().all(|object| cx.analysis.made_in(object, exposure.through)),
        None => cx.analysis.makes_models(exposure.through),
    }
}

/// A leaf that the same call of the function has made is another one each time: `loss.detach().requires_grad_()`, the
/// parameter of a module in its constructor.
fn is_made_here(cx: &Context<'_>, call: &CallFact) -> bool {
    let Some(Expr::Call(registers)) = expression_at(cx.project(), call.at) else { return false };
    let Expr::Attribute(method) = &*registers.func else { return false };
    let hooked = ComparableExpr::from(&*method.value);
    let made = body_around(cx.project(), call.at).iter().any(|stmt| match stmt {
        Stmt::Assign(assign) => {
            let bound = |target: &Expr| ComparableExpr::from(target) == hooked;
            let made = makes_a_leaf(&assign.value) || last_name(&assign.value) == Some("Parameter");
            assign.targets.iter().any(bound) && made
        }
        _ => false,
    });
    made || makes_a_leaf(&method.value)
}

/// A chain of calls that copies a tensor, or cuts it off its graph.
fn makes_a_leaf(expr: &Expr) -> bool {
    match expr {
        Expr::Call(call) => {
            matches!(last_name(&call.func), Some("detach" | "clone")) || makes_a_leaf(&call.func)
        }
        Expr::Attribute(attribute) => makes_a_leaf(&attribute.value),
        _ => false,
    }
}

/// Whether its handle is removed in one of the loops around it.
fn is_removed(call: &CallFact, removed: &[CallFact]) -> bool {
    removed.iter().any(|remove| {
        let same = remove.receiver.objects.iter().any(|handle| call.result.objects.contains(handle));
        same && remove.around.first() == call.around.first()
    })
}

/// Reports a hook of a class whose objects somebody else makes.
fn report_offered(cx: &mut Context<'_>, call: &CallFact) {
    let registered = callee(cx.project(), call.at);
    let function = cx.function(call.function).to_owned();
    let often = if function.ends_with("__init__") { "by every object" } else { "at every call" };
    let message = format!(
        "`{function}` registers a hook {often} and drops its handle: all of them stay on the model, and run"
    );
    let chain = vec![cx.link(call.statement, "registered here; nobody can `remove()` it")];
    let fix = fixes::at_line(cx.analysis, call.at, Lines::remove_handle_fix);
    let diagnostic = cx.report(call.at, &function, message);
    diagnostic.container = registered;
    diagnostic.scope = Scope::Object;
    diagnostic.proof = Proof { repeats: Certainty::Likely, ..Proof::FULL };
    diagnostic.chain = chain;
    diagnostic.fix = fix;
}

fn report(cx: &mut Context<'_>, call: &CallFact, exposure: Exposure) {
    let registered = callee(cx.project(), call.at);
    let message = format!(
        "a hook is registered {} and never removed: all of them stay, and run",
        exposure.pace.words()
    );
    let mut chain = vec![cx.link(call.statement, "registered here; its handle is never told to `remove()`")];
    chain.extend(cx.through(exposure));
    let fix = fixes::at_line(cx.analysis, call.at, Lines::remove_handle_fix);
    let proof = of_call(cx.analysis, call, exposure);
    let diagnostic =
        cx.report_due_to(Some(Cause::Called(call.name)), call.at, cx.function(call.function), message);
    diagnostic.proof = proof;
    diagnostic.container = registered;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
}
