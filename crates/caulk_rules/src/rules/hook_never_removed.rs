//! Hooks that are registered again and again on a model that stays, and never removed.

use caulk_core::{LeakClass, Severity};
use caulk_python::Lines;
use caulk_python::program::{CallFact, Guards, Kinds, Root, Traits};
use ruff_python_ast::{Expr, Stmt};

use crate::context::Context;
use crate::exposure::Exposure;
use crate::fixes;
use crate::rule::Rule;
use crate::source::{body_around, callee, expression_at, last_name};
use crate::twins::Cause;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::HookNeverRemoved,
    severity: Severity::Error,
    default: true,
    explanation: include_str!("hook_never_removed.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let removed = cx.analysis.calls(&["torch.utils.hooks.RemovableHandle.remove"]);
    for call in cx.analysis.calls_giving(Kinds::HANDLE) {
        if call.root == Root::Test || call.guards.has(Guards::ONCE) {
            continue;
        }
        let duration = cx.analysis.piling(&call, std::iter::empty());
        let Some(exposure) = Exposure::outside(cx.analysis, &duration) else { continue };
        if !goes_with_its_model(cx, &call, exposure) && !is_removed(&call, &removed) {
            report(cx, &call, exposure);
        }
    }
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

/// A leaf that the same call of the function has made is another one each time: `loss.detach().requires_grad_()`.
fn is_made_here(cx: &Context<'_>, call: &CallFact) -> bool {
    let Some(Expr::Call(registers)) = expression_at(cx.project(), call.at) else { return false };
    let Expr::Attribute(method) = &*registers.func else { return false };
    let Expr::Name(name) = &*method.value else { return makes_a_leaf(&method.value) };
    body_around(cx.project(), call.at).iter().any(|stmt| match stmt {
        Stmt::Assign(assign) => {
            let bound = |target: &Expr| target.as_name_expr().is_some_and(|target| target.id == name.id);
            assign.targets.iter().any(bound) && makes_a_leaf(&assign.value)
        }
        _ => false,
    })
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

fn report(cx: &mut Context<'_>, call: &CallFact, exposure: Exposure) {
    let registered = callee(cx.project(), call.at);
    let message = format!(
        "a hook is registered {} and never removed: all of them stay, and run",
        exposure.pace.words()
    );
    let mut chain = vec![cx.link(call.statement, "registered here; its handle is never told to `remove()`")];
    chain.extend(cx.through(exposure));
    let fix = fixes::at_line(cx.analysis, call.at, Lines::remove_handle_fix);
    let diagnostic =
        cx.report_due_to(Some(Cause::Called(call.name)), call.at, cx.function(call.function), message);
    diagnostic.container = registered;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
}
