//! What is stored, changed: without graph, as a number, as a copy, without traceback.

use caulk_core::{Edit, Fix};

use super::{advice, backward_needs, change, clear};
use crate::edit::{import, replace};
use crate::hint::Hint;
use crate::index::{Action, Nature, Op};
use crate::likely::Likely;
use crate::lines::Lines;
use crate::path::Step;
use crate::sites::{GrowKind, GrowSite};
use crate::value::{Shape, Value};

fn op_of<'m>(file: &'m Lines<'_>, site: &GrowSite) -> Option<&'m Op> {
    file.index.ops.get(site.op)
}

/// Whether the value of this kind of growth is the thing that is kept.
fn stores_whole(kind: GrowKind) -> bool {
    !matches!(kind, GrowKind::Register | GrowKind::Write | GrowKind::Extend | GrowKind::Update)
}

pub(crate) fn detach(file: &Lines<'_>, site: &GrowSite) -> Option<Fix> {
    let (op, value) = (op_of(file, site)?, site.value.as_ref()?);
    if likely(file, op, value) == Likely::Plain {
        return None;
    }
    if let Some(line) = backward_needs(file, site) {
        let kept = &site.container;
        let emptied =
            clear(file, site).or_else(|| advice(format!("Empty `{kept}` once its contents have been used.")));
        return emptied.map(|fix| Fix {
            description: format!(
                "{} The pass at line {line} needs their graphs: `.detach()` would end the training of what made them.",
                fix.description
            ),
            ..fix
        });
    }
    match &value.shape {
        Shape::Callable | Shape::Guarded | Shape::Spread => return None,
        Shape::Members(members) => return members_without_graph(file, op, members),
        Shape::Each(element) => {
            return match &element.shape {
                Shape::Members(members) => members_without_graph(file, op, members),
                _ => without_graph(file, op, element),
            };
        }
        _ => {}
    }
    if matches!(site.kind, GrowKind::Register | GrowKind::Write) {
        return None;
    }
    let elements = site.collection || !stores_whole(site.kind);
    if elements && !matches!(likely(file, op, value), Likely::Plain | Likely::Detached) {
        let (named, kept) = (&value.text, &site.container);
        return advice(match site.kind {
            GrowKind::Rebind if site.accumulates => {
                format!(
                    "Detach the tensors that are added to `{kept}`: it is a container, and has no `.detach()`."
                )
            }
            GrowKind::Rebind | GrowKind::Assign => {
                format!("Detach the tensors in `{named}` before it is stored.")
            }
            _ => format!("Store the elements of `{named}` detached: `x.detach() for x in {named}`."),
        });
    }
    if elements { None } else { without_graph(file, op, value) }
}

fn likely(file: &Lines<'_>, op: &Op, value: &Value) -> Likely {
    file.resolver.likely(file.index, &value.hint, at(op, value), 0)
}

/// The place of a value inside its statement.
fn at(op: &Op, value: &Value) -> crate::index::Place {
    crate::index::Place { offset: value.range.start(), ..op.place }
}

fn without_graph(file: &Lines<'_>, op: &Op, value: &Value) -> Option<Fix> {
    match likely(file, op, value) {
        Likely::Plain | Likely::Detached => None,
        Likely::Container => advice(format!("Detach the tensors in `{}` before it is stored.", value.text)),
        Likely::Mixed => guarded(file, value),
        Likely::Tensor | Likely::Unknown => {
            let again = differentiated(file, op);
            let method = if again { ".detach().requires_grad_()" } else { ".detach()" };
            let content = format!("{}{method}", value.callable_text());
            let kept = file.source.inline(op.container);
            let description = if again {
                format!("Start each round from a value without history: `{content}`.")
            } else {
                format!("Store the value without its graph: `{content}` in `{kept}`.")
            };
            change(description, vec![replace(file, value.range, content)])
        }
    }
}

/// Whether gradients are taken with respect to the variable that is bound: `autograd.grad(err, q)`.
fn differentiated(file: &Lines<'_>, op: &Op) -> bool {
    let Action::Grow(GrowKind::Rebind | GrowKind::Assign) = op.action else { return false };
    let function = file.index.function_scope(op.place.scope);
    file.index.calls.iter().any(|call| {
        call.callee.last_name() == Some("grad")
            && file.index.function_scope(call.place.scope) == function
            && call
                .arguments
                .iter()
                .skip(1)
                .any(|argument| argument.path == op.path || argument.members.contains(&op.path))
    })
}

/// Leaves of nested displays.
fn leaves<'v>(members: &'v [Value], found: &mut Vec<&'v Value>) {
    for member in members {
        match &member.shape {
            Shape::Members(inner) => leaves(inner, found),
            Shape::Each(element) => leaves(std::slice::from_ref(&**element), found),
            _ => found.push(member),
        }
    }
}

fn members_without_graph(file: &Lines<'_>, op: &Op, members: &[Value]) -> Option<Fix> {
    let mut all = Vec::new();
    leaves(members, &mut all);
    let (mut edits, mut detached, mut doubtful): (Vec<Edit>, Vec<String>, Vec<String>) = Default::default();
    // What was there before is no news.
    for value in
        all.into_iter().filter(|value| value.shape != Shape::Spread || value.reads != [op.path.clone()])
    {
        match (likely(file, op, value), &value.shape) {
            (_, Shape::Callable | Shape::Guarded) | (Likely::Plain | Likely::Detached, _) => {}
            (_, Shape::Spread) => doubtful.push(format!("the elements of `{}`", value.text)),
            (Likely::Tensor, _) => {
                edits.push(replace(file, value.range, format!("{}.detach()", value.callable_text())));
                detached.push(format!("`{}`", value.text));
            }
            _ => doubtful.push(format!("`{}`", value.text)),
        }
    }
    if edits.is_empty() {
        if doubtful.is_empty() {
            return None;
        }
        return advice(format!("Detach what is a tensor among {} before it is stored.", doubtful.join(", ")));
    }
    let detached = detached.join(", ");
    change(
        match doubtful.as_slice() {
            [] => format!("Store {detached} detached."),
            doubtful => {
                format!("Store {detached} detached; detach {} too if it is a tensor.", doubtful.join(", "))
            }
        },
        edits,
    )
}

pub(crate) fn float(file: &Lines<'_>, site: &GrowSite) -> Option<Fix> {
    let (op, value) = (op_of(file, site)?, site.value.as_ref()?);
    let value = match &value.shape {
        Shape::Each(element) => element,
        _ if !stores_whole(site.kind) || matches!(site.kind, GrowKind::Assign | GrowKind::Rebind) => {
            return None;
        }
        _ => value,
    };
    if site.collection
        || matches!(likely(file, op, value), Likely::Plain | Likely::Container)
        || matches!(value.shape, Shape::Guarded | Shape::Callable)
    {
        return None;
    }
    guarded(file, value)
}

/// A number where it is a tensor, else what it is.
fn guarded(file: &Lines<'_>, value: &Value) -> Option<Fix> {
    let text = &value.text;
    let from_torch =
        file.index.imports.iter().find(|(_, from)| *from == "torch").map(|(name, _)| name.clone());
    let torch = from_torch.as_deref().unwrap_or("torch");
    if value.shape != Shape::Variable {
        return advice(format!(
            "Store numbers: `float(x) if isinstance(x, {torch}.Tensor) else x` with x = `{text}`."
        ));
    }
    let content = format!("float({text}) if isinstance({text}, {torch}.Tensor) else {text}");
    let description = format!("Store a number instead of the tensor: `{content}`.");
    let mut edits = vec![replace(file, value.range, content)];
    if from_torch.is_none() {
        edits.extend(import(file, "torch", "import torch"));
    }
    change(description, edits)
}

/// `arrays`: what is stored is known to be arrays of numpy.
pub(crate) fn clone(file: &Lines<'_>, site: &GrowSite, arrays: bool) -> Option<Fix> {
    let (op, value) = (op_of(file, site)?, site.value.as_ref()?);
    let copies = |value: &Value| value.text.ends_with(".clone()") || value.text.ends_with(".copy()");
    match &value.shape {
        Shape::Members(_) | Shape::Each(_) => {
            return advice("Store copies (`.clone()` of a tensor, `.copy()` of an array) instead of views.");
        }
        Shape::Callable | Shape::Guarded | Shape::Spread => return None,
        _ if copies(value) || site.collection || !stores_whole(site.kind) => return None,
        _ => {}
    }
    let method = match (&value.hint, likely(file, op, value)) {
        _ if arrays => "copy",
        (Hint::Object, _) => "copy",
        (_, Likely::Plain | Likely::Container) => return None,
        _ => "clone",
    };
    let content = format!("{}.{method}()", value.callable_text());
    let description = format!("Store a copy, so that the storage behind the view goes: `{content}`.");
    change(description, vec![replace(file, value.range, content)])
}

pub(crate) fn traceback(file: &Lines<'_>, site: &GrowSite) -> Option<Fix> {
    let (op, value) = (op_of(file, site)?, site.value.as_ref()?);
    let mut all = Vec::new();
    leaves(std::slice::from_ref(value), &mut all);
    let caught = |value: &&&Value| {
        value.shape == Shape::Variable && {
            let bound = |name: &str| {
                let base = file.index.lookup(name, op.place.scope);
                let mut reaching = file.resolver.reaching(file.index, &base, at(op, value));
                reaching.any(|assignment| assignment.nature == Nature::Caught)
            };
            value.reads.first().and_then(|read| read.plain()).is_some_and(bound)
        }
    };
    let edits: Vec<Edit> = all
        .iter()
        .filter(caught)
        .map(|value| replace(file, value.range, format!("{}.with_traceback(None)", value.text)))
        .collect();
    if edits.is_empty() {
        let trimmed = value.reads.iter().any(|read| {
            read.steps.iter().any(|step| matches!(step, Step::Attr(name) if name == "with_traceback"))
        });
        let handling = site.conditions.iter().any(|condition| condition.starts_with("except"));
        let keep = "Store the exception's type and text: its traceback keeps the variables of every frame.";
        return if handling && !trimmed { advice(keep) } else { None };
    }
    change("Store the exception without its traceback, which keeps the variables of every frame.", edits)
}
