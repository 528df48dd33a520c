//! Tensors that a custom autograd function stores as attributes of its context.

use std::collections::BTreeSet;

use caulk_core::{Certainty, LeakClass, Proof, Scope};
use caulk_python::Location;
use caulk_python::program::FunctionId;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprName, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::context::Context;
use crate::rule::Rule;
use crate::source::{last_name, located, statement_at};

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::ContextAttributeTensor,
    default: true,
    explanation: include_str!("context_attribute_tensor.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for (function, at) in forwards(cx) {
        let Some(Stmt::FunctionDef(definition)) = statement_at(cx.project(), at) else { continue };
        let Some(context) = definition.parameters.iter_non_variadic_params().next() else { continue };
        let mut forward = Forward { context: context.name().as_str(), ..Forward::default() };
        forward.visit_body(&definition.body);
        let inputs = inputs(definition);
        let is_output = |stored: &&Stored<'_>| forward.returned.contains(stored.value.id.as_str());
        let (outputs, others): (Vec<_>, Vec<_>) = forward.stored.iter().partition(is_output);
        for stored in &outputs {
            report(cx, function, at, stored, true);
        }
        for stored in others {
            let name = stored.value.id.as_str();
            // One finding for each attribute.
            let known = outputs.iter().any(|output| output.target.range() == stored.target.range());
            if !known && inputs.contains(name) && forward.tensors.contains(name) {
                report(cx, function, at, stored, false);
            }
        }
    }
}

/// `forward` of every custom autograd function.
fn forwards(cx: &Context<'_>) -> Vec<(FunctionId, Location)> {
    let Some(forward) = cx.analysis.symbol("forward") else { return Vec::new() };
    let is_function = |base: &String| base.starts_with("torch.autograd.") && base.ends_with("Function");
    let classes = cx.analysis.classes().filter(|(_, class)| class.libraries.iter().any(is_function));
    let methods = classes.filter_map(|(_, class)| class.methods.get(&forward).copied());
    methods.map(|id| (id, cx.analysis.function(id).at)).collect()
}

fn inputs(definition: &StmtFunctionDef) -> BTreeSet<&str> {
    let parameters = definition.parameters.iter_non_variadic_params().skip(1);
    parameters.map(|parameter| parameter.name().as_str()).collect()
}

/// `ctx.name = value`.
struct Stored<'a> {
    target: &'a Expr,
    value: &'a ExprName,
}

/// What happens in a `forward`.
#[derive(Default)]
struct Forward<'a> {
    context: &'a str,
    stored: Vec<Stored<'a>>,
    /// Names that are used as only tensors are.
    tensors: BTreeSet<&'a str>,
    returned: BTreeSet<&'a str>,
}

impl<'a> Forward<'a> {
    /// `ctx.name = value`, `ctx.name, ctx.other = value, more`.
    fn store(&mut self, target: &'a Expr, value: &'a Expr) {
        match (target, value) {
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
                targets.iter().zip(values).for_each(|(target, value)| self.store(target, value));
            }
            (Expr::Attribute(attribute), _)
                if attribute.value.as_name_expr().is_some_and(|name| name.id == self.context) =>
            {
                self.stored.extend(names_behind(value).into_iter().map(|value| Stored { target, value }));
            }
            _ => {}
        }
    }
}

impl<'a> Visitor<'a> for Forward<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.store(target, &assign.value));
            }
            Stmt::Return(returned) => {
                let names = returned.value.as_deref().map(names_in).unwrap_or_default();
                self.returned.extend(names.into_iter().map(|name| name.id.as_str()));
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => {
                let root = match &*call.func {
                    Expr::Attribute(attribute) => name(&attribute.value),
                    _ => None,
                };
                let saves = last_name(&call.func) == Some("save_for_backward");
                // The first argument of a function is what it is about; others may be numbers.
                let most = match root {
                    _ if saves => usize::MAX,
                    Some("torch" | "F") => 1,
                    _ => 0,
                };
                self.tensors.extend(call.arguments.args.iter().take(most).filter_map(name));
            }
            Expr::Attribute(attribute) => {
                const OF_TENSORS: &[&str] = &[
                    "shape",
                    "device",
                    "dtype",
                    "size",
                    "detach",
                    "clone",
                    "contiguous",
                    "view",
                    "reshape",
                    "new_zeros",
                    "new_empty",
                    "matmul",
                    "sum",
                    "mean",
                    "permute",
                    "transpose",
                    "requires_grad",
                ];
                if OF_TENSORS.contains(&attribute.attr.as_str()) {
                    self.tensors.extend(name(&attribute.value));
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

/// Methods of a tensor that give a view of it, which keeps it (the tutorial "Tensor Views" of torch); `detach` lets go of the
/// graph.
const VIEWS: &[&str] = &[
    "T",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "movedim",
    "mT",
    "narrow",
    "permute",
    "select",
    "squeeze",
    "swapaxes",
    "t",
    "transpose",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
];

/// The variable that an expression is, or those that a tuple, list or dict is made of.
fn names_in(expr: &Expr) -> Vec<&ExprName> {
    match expr {
        Expr::Name(name) => vec![name],
        Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
            elts.iter().flat_map(names_in).collect()
        }
        Expr::Dict(dict) => dict.items.iter().flat_map(|item| names_in(&item.value)).collect(),
        _ => Vec::new(),
    }
}

/// The same, and what a view is of.
fn names_behind(expr: &Expr) -> Vec<&ExprName> {
    let viewed = match expr {
        Expr::Call(call) => call.func.as_attribute_expr(),
        other => other.as_attribute_expr(),
    };
    match viewed.filter(|viewed| VIEWS.contains(&viewed.attr.as_str())) {
        Some(viewed) => names_behind(&viewed.value),
        None => names_in(expr),
    }
}

fn name(expr: &Expr) -> Option<&str> {
    expr.as_name_expr().map(|name| name.id.as_str())
}

fn report(cx: &mut Context<'_>, function: FunctionId, at: Location, stored: &Stored<'_>, output: bool) {
    let value = stored.value.id.as_str();
    let target = located(at.file, stored.target);
    let written = cx.text(target);
    let (message, note) = if output {
        (
            format!(
                "`{written}` keeps the output `{value}`, which keeps the context: neither goes before the collector runs"
            ),
            "the output's `grad_fn` is the context, and the context keeps the output",
        )
    } else {
        (
            format!(
                "`{written}` keeps the input `{value}` as long as the graph lives: no backward pass frees it"
            ),
            "`save_for_backward` frees it with the backward pass, and notices changes in place",
        )
    };
    let chain = vec![cx.link(target, note)];
    let function = cx.function(function).to_owned();
    let diagnostic = cx.report(target, &function, message);
    diagnostic.scope = if output { Scope::Run } else { Scope::Peak };
    // An input goes with its graph.
    let kept = Certainty::proven_if(output, Certainty::Assumed);
    diagnostic.proof = Proof { repeats: Certainty::Likely, unreleased: kept, ..Proof::FULL };
    diagnostic.chain = chain;
}
