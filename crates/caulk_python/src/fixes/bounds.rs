//! Limits and releases: `maxlen`, a `del` behind the growth, `clear()` where the contents have been used.

use caulk_core::{Edit, Fix};
use ruff_text_size::TextRange;

use super::{advice, change};
use crate::edit::{import, insert, line_after, line_before, replace, starts_line};
use crate::facts::{Window, assignments, facts, owner};
use crate::index::{Action, Nature, ScopeKind};
use crate::module::Module;
use crate::path::{Path, Step};
use crate::query::{answers, function_of_statement, last_name, ops_of, owned};
use crate::sites::{GrowKind, GrowSite, Owner};

pub(crate) fn bound(module: &Module, site: &GrowSite) -> Option<Fix> {
    let name = last_name(&site.container);
    let owner = owner(module, &site.container, &site.spot.function);
    let facts = facts(module, name, &owner);
    if facts.bounded() || !gathers(site) {
        return None;
    }
    let Some(window) = facts.windows.first() else {
        let kept = &site.container;
        return advice(match site.kind {
            GrowKind::Subscript | GrowKind::SetDefault | GrowKind::Update => {
                format!("Drop the oldest entry when `{kept}` holds enough: `{kept}.pop(next(iter({kept})))`.")
            }
            _ => format!("Bound `{kept}`: `collections.deque(maxlen=...)`, or drop old entries."),
        });
    };
    let ring = || as_deque(module, name, &owner, window);
    ring().or_else(|| cut_behind(module, name, &owner, window)).or_else(|| {
        advice(format!(
            "Keep at most `{}` entries in `{}`; nothing reads that limit.",
            window.expression, site.container
        ))
    })
}

/// Whether a site puts elements into a container, rather than adding up.
fn gathers(site: &GrowSite) -> bool {
    match site.kind {
        GrowKind::AugAdd | GrowKind::Rebind => site.adds_elements(),
        GrowKind::Assign | GrowKind::Register | GrowKind::Write | GrowKind::Put => false,
        _ => true,
    }
}

/// The limit as a line of code next to `container` would write it.
fn limit_beside(container: &str, window: &Window) -> Option<String> {
    let Some((_, attribute)) = window.expression.rsplit_once('.') else {
        return Some(window.expression.clone());
    };
    let (object, _) = container.rsplit_once('.')?;
    Some(format!("{object}.{attribute}"))
}

/// `deque(maxlen=..)` where the container is made, if nothing but appends and iterations use it.
fn as_deque(module: &Module, name: &str, owner: &Owner, window: &Window) -> Option<Fix> {
    let simple = ops_of(module, name, owner).all(|(_, op, _, element)| match op.action {
        Action::Grow(GrowKind::Append | GrowKind::Assign) | Action::LengthTest => !element,
        Action::Reset | Action::Clear => true,
        _ => false,
    });
    if !simple || !only_iterated(module, name, owner) {
        return None;
    }
    let made: Vec<_> = assignments(module, name, owner).collect();
    let (deque, needed) = deque_name(module);
    let mut edits: Vec<Edit> = Vec::new();
    for assignment in &made {
        let range = assignment.value?;
        let text = module.source.slice(range).replace([' ', '\n', '\r'], "");
        let empty = matches!(text.as_str(), "[]" | "list()" | "deque()" | "collections.deque()");
        let target = module.source.inline(assignment.target_range);
        // The limit must be there before the container.
        let function = function_of_statement(module, assignment.place);
        let set_before = window.spot.line < module.source.line_of(range.start());
        let visible = function != window.spot.function || set_before;
        if !empty || !visible || assignment.nature != Nature::Empty {
            return None;
        }
        edits.push(replace(module, range, format!("{deque}(maxlen={})", limit_beside(&target, window)?)));
    }
    let first = edits.first()?.content.clone();
    if needed {
        edits.extend(import(module, "deque", "from collections import deque"));
    }
    change(format!("Keep the last `{}` entries: `{first}`.", window.expression), edits)
}

/// The name of `collections.deque` here, and whether it must be imported.
fn deque_name(module: &Module) -> (String, bool) {
    let named = |wanted: &str| {
        module.index.imports.iter().find(|(_, from)| *from == wanted).map(|(name, _)| name.clone())
    };
    match (named("collections.deque"), named("collections")) {
        (Some(deque), _) => (deque, false),
        (None, Some(collections)) => (format!("{collections}.deque"), false),
        (None, None) => ("deque".to_owned(), true),
    }
}

/// Whether the container is read by iteration and builtins alone, as which a deque serves as well as a list.
fn only_iterated(module: &Module, name: &str, owner: &Owner) -> bool {
    const FINE: &[&str] =
        &["len", "list", "sum", "max", "min", "sorted", "tuple", "enumerate", "iter", "set", "bool"];
    let given = |path: &Path| {
        path.last_name() == Some(name)
            && module.index.calls.iter().any(|call| {
                call.arguments.iter().any(|argument| argument.path == *path)
                    && !call.callee.plain().is_some_and(|callee| FINE.contains(&callee))
            })
    };
    let returned = module.index.scopes.iter().flat_map(|scope| &scope.returns).any(|(path, place)| {
        let meanings = module.resolver.meanings(&module.index, path, *place, false);
        meanings.iter().any(|meaning| answers(meaning, name) == Some(false) && owned(module, meaning, owner))
    });
    !returned && !module.index.reads.iter().any(|(path, _)| given(path))
}

/// A cut behind every statement that grows it.
fn cut_behind(module: &Module, name: &str, owner: &Owner, window: &Window) -> Option<Fix> {
    let mut edits = Vec::new();
    let mut shown = String::new();
    for (_, op, meaning, element) in ops_of(module, name, owner) {
        let Action::Grow(kind) = op.action else { continue };
        if !kind.grows() {
            continue;
        }
        if element || !meaning.via.is_empty() {
            return None;
        }
        let container = module.source.inline(op.container);
        let limit = limit_beside(&container, window)?;
        let line = match kind {
            // Nothing can be taken out of a tuple.
            GrowKind::AugAdd if !is_made_by(module, name, owner, "list") => return None,
            GrowKind::Append | GrowKind::Extend | GrowKind::AugAdd
                if !is_made_by(module, name, owner, "deque") =>
            {
                format!("del {container}[:-{limit}]")
            }
            GrowKind::Subscript | GrowKind::SetDefault => {
                format!("while len({container}) > {limit}:\n    {container}.pop(next(iter({container})))")
            }
            _ => return None,
        };
        edits.push(line_after(module, module.index.statements[op.place.statement].range, &line)?);
        shown = line.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    }
    (!edits.is_empty()).then_some(())?;
    change(format!("Drop what is older than `{}` entries: `{shown}`.", window.expression), edits)
}

/// Is it a list (by a display, too) or a deque?
fn is_made_by(module: &Module, name: &str, owner: &Owner, kind: &str) -> bool {
    assignments(module, name, owner).any(|assignment| {
        let displayed = assignment.value.is_some_and(|range| module.source.slice(range).starts_with('['));
        let called = assignment.callee.as_ref().is_some_and(|callee| callee.last_name() == Some(kind));
        called || kind == "list" && displayed
    })
}

pub(crate) fn clear(module: &Module, site: &GrowSite) -> Option<Fix> {
    let name = last_name(&site.container);
    let owner = owner(module, &site.container, &site.spot.function);
    let facts = facts(module, name, &owner);
    // A tuple is bound anew, and cannot be emptied.
    let emptied = |kind| is_made_by(module, name, &owner, kind);
    let stays = !matches!(site.kind, GrowKind::AugAdd | GrowKind::Rebind);
    if facts.bounded() || !gathers(site) || !(stays || emptied("list") || emptied("deque")) {
        return None;
    }
    let hook = facts.step_hook.as_deref().and_then(epoch_end);
    let place = match (&owner, hook) {
        (Owner::Class(class), Some(hook)) => method(module, class, hook),
        _ => consumer(module, name, &owner, &site.spot.function),
    };
    let text = |container: &str| format!("{container}.clear()");
    let Some(scope) = place else {
        let at = hook
            .map_or("once its contents have been used".to_owned(), |hook| format!("at the end of `{hook}`"));
        return advice(format!("Empty it {at}: `{}`.", text(&site.container)));
    };
    let container = written_in(module, name, scope).unwrap_or_else(|| site.container.clone());
    let description =
        format!("Empty it at the end of `{}`: `{}`.", module.index.scopes[scope].name, text(&container));
    match at_end(module, scope, &text(&container), name) {
        Some(edit) => change(description, vec![edit]),
        None => advice(description),
    }
}

/// The hook at the end of the epoch to which a step hook belongs.
fn epoch_end(step: &str) -> Option<&'static str> {
    let known = [
        ("validation", "on_validation_epoch_end"),
        ("test", "on_test_epoch_end"),
        ("predict", "on_predict_epoch_end"),
        ("train", "on_train_epoch_end"),
    ];
    known.iter().find(|(part, _)| step.contains(part)).map(|(_, hook)| *hook)
}

fn method(module: &Module, class: &str, name: &str) -> Option<usize> {
    let wanted = format!("{class}.{name}");
    module.index.scopes.iter().position(|scope| scope.kind == ScopeKind::Function && scope.name == wanted)
}

/// The one function that reads what another gathers.
fn consumer(module: &Module, name: &str, owner: &Owner, grower: &str) -> Option<usize> {
    let touching: Vec<usize> =
        ops_of(module, name, owner).map(|(_, op, ..)| op.container.start().to_usize()).collect();
    let mut readers: Vec<usize> = Vec::new();
    for (path, place) in module.index.reads.iter().filter(|(path, _)| path.last_name() == Some(name)) {
        let meanings = module.resolver.meanings(&module.index, path, *place, false);
        let mine = meanings.iter().any(|meaning| meaning.keys.is_empty() && owned(module, meaning, owner));
        let Some(scope) = module.index.function_scope(place.scope) else { continue };
        if mine && !touching.contains(&place.offset.to_usize()) && !readers.contains(&scope) {
            readers.push(scope);
        }
    }
    let elsewhere = |scope: &usize| {
        let function = &module.index.scopes[*scope].name;
        function != grower && !function.ends_with("__init__") && !function.ends_with("__len__")
    };
    // Emptied once after everything, it would have grown all the same.
    let repeated = |scope: &usize| {
        let name = module.index.scopes[*scope].name.rsplit('.').next().unwrap_or("");
        module.index.calls.iter().any(|call| {
            call.callee.last_name() == Some(name)
                && module.index.loops_around(call.place.block).next().is_some()
        })
    };
    match readers.iter().filter(|scope| elsewhere(scope) && repeated(scope)).collect::<Vec<_>>().as_slice() {
        [only] => Some(**only),
        _ => None,
    }
}

/// The container as a function writes it.
fn written_in(module: &Module, name: &str, scope: usize) -> Option<String> {
    let (path, _) = module.index.reads.iter().find(|(path, place)| {
        path.last_name() == Some(name) && module.index.function_scope(place.scope) == Some(scope)
    })?;
    let mut text = path.root_name()?.to_owned();
    for step in &path.steps {
        match step {
            Step::Attr(attribute) => {
                text.push('.');
                text.push_str(attribute);
            }
            _ => return None,
        }
    }
    Some(text)
}

/// A line at the end of a function, in front of a `return` that does not use the container.
fn at_end(module: &Module, scope: usize, line: &str, name: &str) -> Option<Edit> {
    let record = &module.index.scopes[scope];
    let first = module.index.statements[record.first?].range;
    starts_line(module, first)?;
    if let Some(tail) = record.tail {
        let range = module.index.statements[tail].range;
        let uses = module.index.reads.iter().any(|(path, place)| {
            let named = path.root_name() == Some(name) || path.steps.contains(&Step::Attr(name.to_owned()));
            place.statement == tail && named
        });
        return if uses { None } else { line_before(module, range, line) };
    }
    // The function's range ends with its last statement, however deep.
    let last_line = module.source.line_of(record.range.end());
    let end = module.source.line(last_line)?.chars().count() as u32 + 1;
    let at = module.source.offset(caulk_core::Position { line: last_line, column: end })?;
    let rest = module.source.slice(TextRange::new(record.range.end(), at.max(record.range.end()))).trim();
    if !rest.is_empty() && !rest.starts_with('#') {
        return None;
    }
    let newline = module.source.newline();
    Some(insert(module, at, format!("{newline}{}{line}", module.source.indentation(first.start()))))
}
