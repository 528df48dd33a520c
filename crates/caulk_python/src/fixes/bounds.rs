//! Limits and releases: `maxlen`, a `del` behind the growth, `clear()` where the contents have been used.

use caulk_core::{Edit, Fix};
use ruff_text_size::TextRange;

use super::{advice, change};
use crate::edit::{import, insert, line_after, line_before, replace, starts_line};
use crate::facts::{Window, assignments, facts, owner};
use crate::index::{Action, Nature, ScopeKind};
use crate::lines::Lines;
use crate::path::{Path, Step};
use crate::query::{answers, function_of_statement, last_name, ops_of, owned};
use crate::sites::{GrowKind, GrowSite, Owner};

pub(crate) fn bound(file: &Lines<'_>, site: &GrowSite) -> Option<Fix> {
    let name = last_name(&site.container);
    let owner = owner(file, &site.container, &site.spot.function);
    let facts = facts(file, name, &owner);
    if facts.bounded() || !gathers(site) {
        return None;
    }
    let Some(window) = facts.windows.first() else {
        let kept = &site.container;
        return advice(match site.kind {
            GrowKind::Subscript | GrowKind::SetDefault | GrowKind::Update => {
                format!("Drop the oldest entry when `{kept}` holds enough: `{kept}.pop(next(iter({kept})))`.")
            }
            GrowKind::Add => {
                format!("Take each element out of `{kept}` when it is done with: `{kept}.discard(...)`.")
            }
            _ if is_sliced(file, last_name(whole(kept)), usize::from(whole(kept) != kept.as_str())) => {
                let whole = whole(kept);
                format!(
                    "Empty `{whole}` once its contents have been used: `{whole}.clear()`, or drop old entries with `del`."
                )
            }
            _ => format!("Bound `{kept}`: `collections.deque(maxlen=...)`, or drop old entries."),
        });
    };
    let ring = || as_deque(file, name, &owner, window);
    ring().or_else(|| cut_behind(file, name, &owner, window)).or_else(|| {
        advice(format!(
            "Keep at most `{}` entries in `{}`; nothing reads that limit.",
            window.expression, site.container
        ))
    })
}

/// The dict of whose elements an expression is one: `self.rows` of `self.rows.setdefault(key, [])` and of `self.rows[key]`.
fn whole(container: &str) -> &str {
    let outer = container.split_once(".setdefault(").map_or(container, |(outer, _)| outer);
    outer.split_once('[').map_or(outer, |(outer, _)| outer)
}

/// Whether a slice of what is so many subscripts below a name is taken somewhere in the file: a deque cannot be sliced.
fn is_sliced(file: &Lines<'_>, name: &str, below: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let subscript = |rest: &str| -> Option<(String, usize)> {
        let inner = rest.strip_prefix('[')?;
        let mut depth = 1;
        let end = inner.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0
        })?;
        Some((inner[..end].to_owned(), end + 2))
    };
    let slices = |line: &str| {
        line.match_indices(name).any(|(at, _)| {
            let (before, mut rest) = (&line[..at], &line[at + name.len()..]);
            let (mut found, mut level) = (false, 0);
            while let Some((inner, length)) = subscript(rest) {
                found |= level == below && inner.contains(':') && !inner.contains(['{', '\'', '"']);
                (rest, level) = (&rest[length..], level + 1);
            }
            found && !before.ends_with(word) && !before.trim_start().starts_with("del ")
        })
    };
    !name.is_empty() && (1..).map_while(|line| file.line(line)).any(slices)
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
pub(super) fn limit_beside(container: &str, window: &Window) -> Option<String> {
    let Some((_, last)) = window.expression.rsplit_once('.') else {
        return Some(window.expression.clone());
    };
    let (object, _) = container.rsplit_once('.')?;
    // Of an object that the container's own object has: `self.settings.window`.
    match window.expression.strip_prefix("self.") {
        Some(_) if container.starts_with("self.") => Some(window.expression.clone()),
        Some(attribute) => Some(format!("{object}.{attribute}")),
        None => Some(format!("{object}.{last}")),
    }
}

/// `deque(maxlen=..)` where the container is made, if nothing but appends and iterations use it.
fn as_deque(file: &Lines<'_>, name: &str, owner: &Owner, window: &Window) -> Option<Fix> {
    let simple = ops_of(file, name, owner).all(|(_, op, _, element)| match op.action {
        Action::Grow(GrowKind::Append | GrowKind::Assign) | Action::LengthTest => !element,
        Action::Reset | Action::Clear => true,
        _ => false,
    });
    if !simple || !only_iterated(file, name, owner) {
        return None;
    }
    let made: Vec<_> = assignments(file, name, owner).collect();
    let (deque, needed) = deque_name(file);
    let mut edits: Vec<Edit> = Vec::new();
    for assignment in &made {
        let range = assignment.value?;
        let text = file.source.slice(range).replace([' ', '\n', '\r'], "");
        let empty = matches!(text.as_str(), "[]" | "list()" | "deque()" | "collections.deque()");
        let target = file.source.inline(assignment.target_range);
        // The limit must be there before the container.
        let function = function_of_statement(file, assignment.place);
        let set_before = window.spot.line < file.source.line_of(range.start());
        let visible = function != window.spot.function || set_before;
        if !empty || !visible || assignment.nature != Nature::Empty {
            return None;
        }
        edits.push(replace(file, range, format!("{deque}(maxlen={})", limit_beside(&target, window)?)));
    }
    let first = edits.first()?.content.clone();
    if needed {
        edits.extend(import(file, "deque", "from collections import deque"));
    }
    change(format!("Keep the last `{}` entries: `{first}`.", window.expression), edits)
}

/// The name of `collections.deque` here, and whether it must be imported.
fn deque_name(file: &Lines<'_>) -> (String, bool) {
    let named = |wanted: &str| {
        file.index.imports.iter().find(|(_, from)| *from == wanted).map(|(name, _)| name.clone())
    };
    match (named("collections.deque"), named("collections")) {
        (Some(deque), _) => (deque, false),
        (None, Some(collections)) => (format!("{collections}.deque"), false),
        (None, None) => ("deque".to_owned(), true),
    }
}

/// Whether the container is read by iteration and builtins alone, as which a deque serves as well as a list.
fn only_iterated(file: &Lines<'_>, name: &str, owner: &Owner) -> bool {
    const FINE: &[&str] =
        &["len", "list", "sum", "max", "min", "sorted", "tuple", "enumerate", "iter", "set", "bool"];
    let given = |path: &Path| {
        path.last_name() == Some(name)
            && file.index.calls.iter().any(|call| {
                call.arguments.iter().any(|argument| argument.path == *path)
                    && !call.callee.plain().is_some_and(|callee| FINE.contains(&callee))
            })
    };
    let returned = file.index.scopes.iter().flat_map(|scope| &scope.returns).any(|(path, place)| {
        let meanings = file.resolver.meanings(file.index, path, *place, false);
        meanings.iter().any(|meaning| answers(meaning, name) == Some(false) && owned(file, meaning, owner))
    });
    !returned && !file.index.reads.iter().any(|(path, _)| given(path))
}

/// A cut behind every statement that grows it.
pub(super) fn cut_behind(file: &Lines<'_>, name: &str, owner: &Owner, window: &Window) -> Option<Fix> {
    let mut edits = Vec::new();
    let mut shown = String::new();
    for (_, op, meaning, element) in ops_of(file, name, owner) {
        let Action::Grow(kind) = op.action else { continue };
        if !kind.grows() {
            continue;
        }
        if element || !meaning.via.is_empty() {
            return None;
        }
        let container = file.source.inline(op.container);
        let limit = limit_beside(&container, window)?;
        let line = match kind {
            // Nothing can be taken out of a tuple.
            GrowKind::AugAdd if !is_made_by(file, name, owner, "list") => return None,
            GrowKind::Append | GrowKind::Extend | GrowKind::AugAdd
                if !is_made_by(file, name, owner, "deque") =>
            {
                format!("del {container}[:-{limit}]")
            }
            GrowKind::Subscript | GrowKind::SetDefault => {
                format!("while len({container}) > {limit}:\n    {container}.pop(next(iter({container})))")
            }
            _ => return None,
        };
        edits.push(line_after(file, file.index.statements[op.place.statement].range, &line)?);
        shown = line.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    }
    (!edits.is_empty()).then_some(())?;
    change(format!("Drop what is older than `{}` entries: `{shown}`.", window.expression), edits)
}

/// Is it a list (by a display, too) or a deque?
fn is_made_by(file: &Lines<'_>, name: &str, owner: &Owner, kind: &str) -> bool {
    assignments(file, name, owner).any(|assignment| {
        let displayed = assignment.value.is_some_and(|range| file.source.slice(range).starts_with('['));
        let called = assignment.callee.as_ref().is_some_and(|callee| callee.last_name() == Some(kind));
        called || kind == "list" && displayed
    })
}

pub(crate) fn clear(file: &Lines<'_>, site: &GrowSite) -> Option<Fix> {
    let name = last_name(&site.container);
    let owner = owner(file, &site.container, &site.spot.function);
    let facts = facts(file, name, &owner);
    // A tuple is bound anew, and cannot be emptied.
    let emptied = |kind| is_made_by(file, name, &owner, kind);
    let stays = !matches!(site.kind, GrowKind::AugAdd | GrowKind::Rebind);
    if facts.bounded() || !gathers(site) || !(stays || emptied("list") || emptied("deque")) {
        return None;
    }
    let hook = facts.step_hook.as_deref().and_then(epoch_end);
    let place = match (&owner, hook) {
        (Owner::Class(class), Some(hook)) => method(file, class, hook),
        _ => consumer(file, name, &owner, &site.spot.function),
    };
    let text = |container: &str| format!("{container}.clear()");
    let Some(scope) = place else {
        let at = hook
            .map_or("once its contents have been used".to_owned(), |hook| format!("at the end of `{hook}`"));
        return advice(format!("Empty it {at}: `{}`.", text(&site.container)));
    };
    let container = written_in(file, name, scope).unwrap_or_else(|| site.container.clone());
    let description =
        format!("Empty it at the end of `{}`: `{}`.", file.index.scopes[scope].name, text(&container));
    match at_end(file, scope, &text(&container), name) {
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

fn method(file: &Lines<'_>, class: &str, name: &str) -> Option<usize> {
    let wanted = format!("{class}.{name}");
    file.index.scopes.iter().position(|scope| scope.kind == ScopeKind::Function && scope.name == wanted)
}

/// The one function that reads what another gathers.
fn consumer(file: &Lines<'_>, name: &str, owner: &Owner, grower: &str) -> Option<usize> {
    let touching: Vec<usize> =
        ops_of(file, name, owner).map(|(_, op, ..)| op.container.start().to_usize()).collect();
    let mut readers: Vec<usize> = Vec::new();
    for (path, place) in file.index.reads.iter().filter(|(path, _)| path.last_name() == Some(name)) {
        let meanings = file.resolver.meanings(file.index, path, *place, false);
        let mine = meanings.iter().any(|meaning| meaning.keys.is_empty() && owned(file, meaning, owner));
        let Some(scope) = file.index.function_scope(place.scope) else { continue };
        if mine && !touching.contains(&place.offset.to_usize()) && !readers.contains(&scope) {
            readers.push(scope);
        }
    }
    let elsewhere = |scope: &usize| {
        let function = &file.index.scopes[*scope].name;
        function != grower && !function.ends_with("__init__") && !function.ends_with("__len__")
    };
    // Emptied once after everything, it would have grown all the same.
    let repeated = |scope: &usize| {
        let name = file.index.scopes[*scope].name.rsplit('.').next().unwrap_or("");
        file.index.calls.iter().any(|call| {
            call.callee.last_name() == Some(name)
                && file.index.loops_around(call.place.block).next().is_some()
        })
    };
    match readers.iter().filter(|scope| elsewhere(scope) && repeated(scope)).collect::<Vec<_>>().as_slice() {
        [only] => Some(**only),
        _ => None,
    }
}

/// The container as a function writes it.
fn written_in(file: &Lines<'_>, name: &str, scope: usize) -> Option<String> {
    let (path, _) = file.index.reads.iter().find(|(path, place)| {
        path.last_name() == Some(name) && file.index.function_scope(place.scope) == Some(scope)
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
fn at_end(file: &Lines<'_>, scope: usize, line: &str, name: &str) -> Option<Edit> {
    let record = &file.index.scopes[scope];
    let first = file.index.statements[record.first?].range;
    starts_line(file, first)?;
    if let Some(tail) = record.tail {
        let range = file.index.statements[tail].range;
        let uses = file.index.reads.iter().any(|(path, place)| {
            let named = path.root_name() == Some(name) || path.steps.contains(&Step::Attr(name.to_owned()));
            place.statement == tail && named
        });
        return if uses { None } else { line_before(file, range, line) };
    }
    // The function's range ends with its last statement, however deep.
    let last_line = file.source.line_of(record.range.end());
    let end = file.source.line(last_line)?.chars().count() as u32 + 1;
    let at = file.source.offset(caulk_core::Position { line: last_line, column: end })?;
    let rest = file.source.slice(TextRange::new(record.range.end(), at.max(record.range.end()))).trim();
    if !rest.is_empty() && !rest.starts_with('#') {
        return None;
    }
    let newline = file.source.newline();
    Some(insert(file, at, format!("{newline}{}{line}", file.source.indentation(first.start()))))
}
