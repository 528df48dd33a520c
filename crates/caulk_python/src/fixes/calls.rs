//! Calls that lack their counterpart: figures, hooks, gradients, queues, caches.

use caulk_core::Fix;

use super::{advice, change};
use crate::edit::{line_after, line_before, remove_lines, replace};
use crate::index::{Argument, CallRecord, Nature};
use crate::lines::Lines;
use crate::path::{Path, Step};
use crate::query::spot;

/// Calls with this last name in a statement that covers a line, or that start on it.
fn calls_at<'m>(file: &'m Lines<'_>, line: u32, names: &'m [&str]) -> impl Iterator<Item = &'m CallRecord> {
    file.index.calls.iter().filter(move |call| {
        call.callee.last_name().is_some_and(|name| names.contains(&name))
            && spot(file, call.place.statement).covers(line)
    })
}

/// Calls in the function of a place.
fn calls_beside<'m>(file: &'m Lines<'_>, of: &'m CallRecord) -> impl Iterator<Item = &'m CallRecord> {
    let function = file.index.function_scope(of.place.scope);
    file.index.calls.iter().filter(move |call| file.index.function_scope(call.place.scope) == function)
}

/// What a call is called on.
fn receiver(call: &CallRecord) -> Option<Path> {
    let (Step::Attr(_), before) = call.callee.steps.split_last()? else { return None };
    Some(Path { root: call.callee.root.clone(), steps: before.to_vec() })
}

fn receiver_text(file: &Lines<'_>, call: &CallRecord) -> Option<String> {
    let text = file.source.inline(call.callee_range);
    text.rsplit_once('.').map(|(receiver, _)| receiver.trim_end().to_owned())
}

/// Whether a call is a statement by itself.
fn is_statement(file: &Lines<'_>, call: &CallRecord) -> bool {
    file.index.statements[call.place.statement].range == call.range
}

pub(crate) fn queue(file: &Lines<'_>, line: u32) -> Option<Fix> {
    const QUEUES: &[&str] = &["Queue", "LifoQueue", "PriorityQueue", "SimpleQueue", "JoinableQueue"];
    let call = calls_at(file, line, QUEUES).next()?;
    let bounded = file
        .index
        .assignments
        .iter()
        .any(|assignment| assignment.capacity.is_some() && assignment.value == Some(call.range));
    let made = file.source.inline(call.callee_range).replace("SimpleQueue", "Queue");
    let from = call.callee.root_name().map(|root| file.index.imports.get(root).map_or(root, String::as_str));
    let full = match from {
        Some(from) if from.split('.').next() == Some("asyncio") => "asyncio.QueueFull",
        _ => "queue.Full",
    };
    (!bounded).then(|| {
        advice(format!(
            "Give the queue a limit, `{made}(maxsize=...)`: `put` then waits for the reader, `put_nowait` raises `{full}`."
        ))
    })?
}

pub(crate) fn close_figure(file: &Lines<'_>, line: u32) -> Option<Fix> {
    let figure = calls_at(file, line, &["figure", "subplots", "subplot_mosaic"]).next()?;
    let pyplot = receiver_text(file, figure).unwrap_or_else(|| "plt".to_owned());
    let bound = file.index.assignments.iter().find(|assignment| {
        assignment.place.statement == figure.place.statement && assignment.place.offset <= figure.place.offset
    });
    let handle = bound.and_then(|assignment| assignment.target.plain().map(str::to_owned));
    let closes = |call: &CallRecord| matches!(call.callee.last_name(), Some("close" | "close_all_figures"));
    if calls_beside(file, figure).any(closes) {
        return None;
    }
    let close =
        handle.as_ref().map_or_else(|| format!("{pyplot}.close()"), |name| format!("{pyplot}.close({name})"));
    let description = format!("Close the figure when it is saved: `{close}`.");
    if bound.is_some() && handle.is_none() || handle.as_ref().is_some_and(|name| escapes(file, figure, name))
    {
        return advice(format!("Close the figure where it is used last: `{pyplot}.close(fig)`."));
    }
    let saved = calls_beside(file, figure)
        .filter(|call| {
            matches!(call.callee.last_name(), Some("savefig" | "print_figure" | "show"))
                && call.place.offset > figure.place.offset
                && is_statement(file, call)
                && file.index.encloses(call.place.block, figure.place.block)
                || call.callee.last_name() == Some("savefig") && call.place.block == figure.place.block
        })
        .max_by_key(|call| call.place.offset);
    let behind = saved.map(|call| file.index.statements[call.place.statement].range);
    match behind.and_then(|range| line_after(file, range, &close)) {
        Some(edit) => change(description, vec![edit]),
        None => advice(description),
    }
}

/// Whether a figure leaves its function: returned, stored, handed to something that may keep it.
fn escapes(file: &Lines<'_>, figure: &CallRecord, name: &str) -> bool {
    let function = file.index.function_scope(figure.place.scope);
    let is_it = |path: &Path| path.plain() == Some(name);
    let returned =
        function.is_some_and(|scope| file.index.scopes[scope].returns.iter().any(|(path, _)| is_it(path)));
    let stored = file.index.assignments.iter().any(|assignment| {
        assignment.source.as_ref().is_some_and(is_it)
            && file.index.function_scope(assignment.place.scope) == function
    });
    let kept = file.index.ops.iter().any(|op| {
        file.index.function_scope(op.place.scope) == function
            && op.value.as_ref().is_some_and(|value| value.reads.iter().any(is_it))
            && op.place.statement != figure.place.statement
    });
    returned || stored || kept
}

pub(crate) fn remove_handle(file: &Lines<'_>, line: u32) -> Option<Fix> {
    let call = file.index.calls.iter().find(|call| {
        call.callee.last_name().is_some_and(|name| name.starts_with("register_") && name.ends_with("hook"))
            && spot(file, call.place.statement).covers(line)
    })?;
    let bound = file.index.assignments.iter().find(|assignment| assignment.value == Some(call.range));
    let handle = bound.map(|assignment| file.source.inline(assignment.target_range));
    let gathered = file.index.ops.iter().find(|op| {
        op.place.statement == call.place.statement
            && op.value.as_ref().is_some_and(|value| value.range.contains_range(call.range))
    });
    advice(match (handle, gathered) {
        (Some(handle), _) => format!("Remove the hook when it is no longer needed: `{handle}.remove()`."),
        (None, Some(op)) => {
            let handles = file.source.inline(op.container);
            format!(
                "Remove the hooks when they are no longer needed: `for handle in {handles}: handle.remove()`."
            )
        }
        (None, None) => {
            let made = file.source.inline(call.callee_range);
            format!(
                "Keep the handle, `handle = {made}(...)`, and call `handle.remove()` when it is no longer needed."
            )
        }
    })
}

pub(crate) fn grad_none(file: &Lines<'_>, line: u32) -> Option<Fix> {
    let at = calls_at(file, line, &["backward", "zero_", "zero_grad", "grad"]).next()?;
    let differentiable = |call: &CallRecord| {
        let told = |argument: &Argument| {
            argument.name.as_deref() == Some("create_graph") && argument.value.text != "False"
        };
        call.arguments.iter().any(told)
    };
    if !calls_beside(file, at).any(differentiable) {
        return None;
    }
    let ends = |path: &Path, attributes: &[&str]| {
        path.steps.len() >= attributes.len()
            && path.steps[path.steps.len() - attributes.len()..]
                .iter()
                .zip(attributes)
                .all(|(step, name)| matches!(step, Step::Attr(known) if known == name))
    };
    let set = file
        .index
        .assignments
        .iter()
        .any(|assignment| ends(&assignment.target, &["grad"]) && assignment.nature == Nature::Empty);
    if set {
        return None;
    }
    let mut edits = Vec::new();
    let mut shown = String::new();
    for call in calls_beside(file, at) {
        let object = [["grad", "zero_"].as_slice(), &["grad", "data", "zero_"]]
            .into_iter()
            .find(|attributes| ends(&call.callee, attributes))
            .and_then(|attributes| {
                let text = file.source.inline(call.callee_range);
                let parts: Vec<&str> = text.rsplitn(attributes.len() + 1, '.').collect();
                parts.last().map(|object| (*object).to_owned())
            });
        if let Some(object) = object.filter(|_| is_statement(file, call)) {
            shown = format!("{object}.grad = None");
            edits.push(replace(file, call.range, shown.clone()));
        }
        let keeps = |argument: &&Argument| {
            argument.name.as_deref() == Some("set_to_none") && argument.value.text == "False"
        };
        if call.callee.last_name() == Some("zero_grad")
            && let Some(argument) = call.arguments.iter().find(keeps)
        {
            shown = String::from("zero_grad(set_to_none=True)");
            edits.push(replace(file, argument.value.range, "True"));
        }
    }
    if edits.is_empty() {
        return advice(
            "Drop the gradients after the update, `p.grad = None`: they hold the graph that `create_graph=True` made.",
        );
    }
    change(
        format!(
            "Drop the gradients instead of zeroing them: `{shown}`; they hold the graph of the backward pass."
        ),
        edits,
    )
}

pub(crate) fn zero_grad(file: &Lines<'_>, line: u32) -> Option<Fix> {
    let backward = calls_at(file, line, &["backward"]).next()?;
    // The optimizer that steps next; another one's gradients are another matter.
    let stepped = calls_beside(file, backward)
        .filter(|call| call.callee.last_name() == Some("step"))
        .filter_map(|call| Some((call, receiver(call)?)))
        .filter(|(_, path)| {
            path.last_name().is_some_and(|name| name.contains("opt")) || is_optimizer(file, path)
        })
        .min_by_key(|(call, _)| (call.place.offset < backward.place.offset, call.place.offset));
    let optimizer = stepped.as_ref().map(|(_, path)| path);
    let cleared = calls_beside(file, backward)
        .filter(|call| call.callee.last_name() == Some("zero_grad"))
        .any(|call| {
            let by = receiver(call);
            // A model clears the gradients of whatever trains it.
            by.as_ref() == optimizer
                || !by.is_some_and(|by| by.last_name().is_some_and(|name| name.contains("opt")))
        });
    if cleared {
        return None;
    }
    let Some((step, _)) = stepped else {
        return advice("Clear the gradients before each backward pass: `optimizer.zero_grad()`.");
    };
    let line = format!("{}.zero_grad()", receiver_text(file, step)?);
    let description = format!("Clear the gradients before each backward pass: `{line}`.");
    // A step that runs only sometimes accumulates gradients on purpose.
    let every = step.place.block == backward.place.block;
    let statement = file.index.statements[backward.place.statement].range;
    match line_before(file, statement, &line).filter(|_| every && is_statement(file, backward)) {
        Some(edit) => change(description, vec![edit]),
        None => advice(description),
    }
}

fn is_optimizer(file: &Lines<'_>, path: &Path) -> bool {
    const OPTIMIZERS: &[&str] =
        &["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adamax", "NAdam", "RAdam", "LBFGS", "Adadelta"];
    file.index.assignments.iter().any(|assignment| {
        assignment.target == *path
            && assignment
                .callee
                .as_ref()
                .and_then(Path::last_name)
                .is_some_and(|name| OPTIMIZERS.contains(&name))
    })
}

pub(crate) fn uncache(file: &Lines<'_>, function: &str) -> Option<Fix> {
    let decorated = file.decorated(function)?;
    let decorator = file
        .index
        .scopes
        .iter()
        .flat_map(|scope| &scope.decorators)
        .find(|decorator| file.source.line_of(decorator.range.start()) == decorated.spot.line)?;
    let description = format!(
        "Take the cache off `{}`: it keeps every argument and every result.",
        decorated.spot.function.rsplit('.').next().unwrap_or(function)
    );
    match remove_lines(file, decorator.range) {
        Some(edit) => change(description, vec![edit]),
        None => advice(description),
    }
}
