//! Edits that may end a leak and may do harm: only a run with one shows which. Bold where the other fixes are careful.

use caulk_core::Edit;
use ruff_text_size::{TextRange, TextSize};

use super::bounds::{cut_behind, limit_beside};
use super::{
    bound, clear, clone, close_figure, detach, float, grad_none, remove_handle, traceback, uncache, zero_grad,
};
use crate::edit::{import, line_before, replace, starts_line};
use crate::facts::{Window, owner};
use crate::index::CallRecord;
use crate::lines::Lines;
use crate::path::Step;
use crate::query::{grows_at, last_name, spot};
use crate::sites::{EditTry, GrowKind, GrowSite, Holder, TryKind};
use crate::value::{Shape, Value};

/// Calls whose result has to be given back, and the method that does it.
const RELEASES: [(&str, &str); 14] = [
    ("open", "close"),
    ("fdopen", "close"),
    ("TemporaryFile", "close"),
    ("NamedTemporaryFile", "close"),
    ("socket", "close"),
    ("SharedMemory", "close"),
    ("SummaryWriter", "close"),
    ("StringIO", "close"),
    ("BytesIO", "close"),
    ("Timer", "cancel"),
    ("Popen", "wait"),
    ("ThreadPoolExecutor", "shutdown"),
    ("ProcessPoolExecutor", "shutdown"),
    ("TemporaryDirectory", "cleanup"),
];

/// Edits to try for growth at a line, the most promising of each kind first.
pub(crate) fn tries(file: &Lines<'_>, line: u32, function: &str) -> Vec<EditTry> {
    let mut found = Vec::new();
    for site in grows_at(file, line) {
        let careful = [
            (TryKind::Value, detach(file, &site)),
            (TryKind::Value, traceback(file, &site)),
            (TryKind::Value, clone(file, &site, false)),
            (TryKind::Value, float(file, &site)),
            (TryKind::Bound, bound(file, &site)),
            (TryKind::Clear, clear(file, &site)),
        ];
        let careful = careful.into_iter().filter_map(|(kind, fix)| Some((kind, fix?)));
        found.extend(careful.map(|(kind, fix)| EditTry {
            kind,
            description: fix.description,
            edits: fix.edits,
        }));
        found.extend(values(file, &site));
        found.extend(limits(file, &site));
        found.extend(clears_after_reading(file, &site));
        found.extend(clears(file, &site));
    }
    let careful = [
        close_figure(file, line),
        remove_handle(file, line),
        grad_none(file, line),
        zero_grad(file, line),
        uncache(file, function),
    ];
    let of_fix = |fix: caulk_core::Fix| EditTry {
        kind: TryKind::Release,
        description: fix.description,
        edits: fix.edits,
    };
    found.extend(careful.into_iter().flatten().map(of_fix));
    found.extend(releases(file, line));
    found.extend(without_grad(file, function));
    found.retain(|one| !one.edits.is_empty());
    let mut seen: Vec<Vec<Edit>> = Vec::new();
    found.retain(|one| {
        let new = !seen.contains(&one.edits);
        seen.push(one.edits.clone());
        new
    });
    found
}

/// What is stored, in a form that keeps less.
fn values(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let whole = !matches!(
        site.kind,
        GrowKind::Register | GrowKind::Write | GrowKind::Extend | GrowKind::Update | GrowKind::Heap
    );
    let Some(value) = site.value.as_ref().filter(|_| whole) else { return Vec::new() };
    if let Shape::Members(members) = &value.shape {
        return of_members(file, site, members);
    }
    if site.collection {
        return Vec::new();
    }
    if matches!(value.shape, Shape::Each(_) | Shape::Spread | Shape::Callable | Shape::Guarded) {
        return Vec::new();
    }
    let callable = value.callable_text();
    let forms = [
        format!("{callable}.detach()"),
        format!("{callable}.detach().clone()"),
        format!("float({})", value.text),
    ];
    let known = |form: &String| value.text.ends_with(".detach()") && form.ends_with(".detach()");
    let forms = forms.into_iter().filter(|form| !known(form));
    let fix = |form: String| EditTry {
        kind: TryKind::Value,
        description: format!("Store `{form}` in `{}`.", site.container),
        edits: vec![replace(file, value.range, form)],
    };
    forms.map(fix).collect()
}

/// The variables of a tuple, list or dict, each without its graph.
fn of_members(file: &Lines<'_>, site: &GrowSite, members: &[Value]) -> Vec<EditTry> {
    let variables: Vec<&Value> = members.iter().filter(|member| member.shape == Shape::Variable).collect();
    let detached = |value: &&Value| replace(file, value.range, format!("{}.detach()", value.text));
    let all = variables.iter().map(detached).collect();
    let together = EditTry {
        kind: TryKind::Value,
        description: format!("Store what goes into `{}` without graphs.", site.container),
        edits: all,
    };
    let each = variables.iter().map(|value| EditTry {
        kind: TryKind::Value,
        description: format!("Store `{}.detach()` in `{}`.", value.text, site.container),
        edits: vec![detached(value)],
    });
    std::iter::once(together).chain(each).collect()
}

/// `clear()` behind the value that a function returns from a container that another function fills.
fn clears_after_reading(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let name = last_name(&site.container);
    let reader = |scope: &crate::index::Scope| {
        let tail = scope.tail.filter(|_| scope.name != site.spot.function)?;
        let range = file.index.statements[tail].range;
        starts_line(file, range)?;
        let read = file
            .index
            .reads
            .iter()
            .find(|(path, place)| place.statement == tail && path.last_name() == Some(name));
        let (path, _) = read?;
        let value = file.source.slice(range).strip_prefix("return ")?.trim();
        let container = match path.steps.as_slice() {
            [] => name.to_owned(),
            [Step::Attr(_)] => format!("{}.{name}", path.root_name()?),
            _ => return None,
        };
        let indentation = file.source.indentation(range.start());
        let separator = format!("{}{indentation}", file.source.newline());
        let clear = format!("{container}.clear()");
        let lines = [format!("result = {value}"), clear.clone(), "return result".to_owned()];
        let description = format!("Empty it once `{}` has used it: `{clear}`.", scope.name);
        let edits = vec![replace(file, range, lines.join(&separator))];
        Some(EditTry { kind: TryKind::Clear, description, edits })
    };
    file.index.scopes.iter().filter_map(reader).collect()
}

/// A cut to a length that the program itself reads the container with: `self.values[-self.window :]`.
fn limits(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let name = last_name(&site.container);
    let owner = owner(file, &site.container, &site.spot.function);
    let mut found = Vec::new();
    for expression in read_lengths(file, name) {
        let window = Window { spot: site.spot.clone(), expression: expression.clone(), value: String::new() };
        let rebound = || {
            let value =
                site.value.as_ref().filter(|_| matches!(site.kind, GrowKind::Rebind | GrowKind::Assign))?;
            let limit = limit_beside(&site.container, &window)?;
            let form = format!("{}[-{limit}:]", value.callable_text());
            let description = format!("Keep the last `{limit}` entries: `{form}`.");
            Some((description, vec![replace(file, value.range, form)]))
        };
        let cut = cut_behind(file, name, &owner, &window).map(|fix| (fix.description, fix.edits));
        let made = cut.or_else(rebound).into_iter();
        found.extend(made.map(|(description, edits)| EditTry { kind: TryKind::Bound, description, edits }));
    }
    found
}

/// Lengths of the tails of a container that the file reads, as written: `WINDOW` of `values[-WINDOW:]`.
fn read_lengths(file: &Lines<'_>, name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in file.source.text().split(&format!("{name}[-")).skip(1) {
        let Some((expression, rest)) = part.split_once(':') else { continue };
        let expression = expression.trim();
        let plain = !expression.is_empty()
            && expression.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        if plain && rest.trim_start().starts_with(']') && !found.iter().any(|known| known == expression) {
            found.push(expression.to_owned());
        }
    }
    found.extend(last_read(file.source.text(), name).map(|last| last.to_string()));
    found
}

/// The entry that is read farthest from the end, if entries are read from the end: 2 of `values[-2]`.
fn last_read(text: &str, name: &str) -> Option<u32> {
    let index = |part: &str| part.split_once(']').and_then(|(index, _)| index.trim().parse::<u32>().ok());
    text.split(&format!("{name}[-")).skip(1).filter_map(index).max()
}

/// `clear()` at the end of the loops around the growth, or around calls of the function that makes it.
fn clears(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let Some(op) = file.index.ops.get(site.op).filter(|_| !site.element) else { return Vec::new() };
    if matches!(site.kind, GrowKind::Register | GrowKind::Rebind | GrowKind::Assign | GrowKind::AugAdd) {
        return Vec::new();
    }
    let around: Vec<usize> = file.index.loops_around(op.place.block).collect();
    let mut places: Vec<(usize, String)> =
        around.into_iter().rev().map(|at| (at, site.container.clone())).collect();
    let function = site.spot.function.rsplit('.').next().unwrap_or_default().to_owned();
    for call in file.index.calls.iter().filter(|call| call.callee.last_name() == Some(function.as_str())) {
        let text = file.source.inline(call.callee_range);
        let container = match (site.holder, site.container.strip_prefix("self."), text.rsplit_once('.')) {
            (Holder::Attribute, Some(rest), Some((receiver, _))) => format!("{receiver}.{rest}"),
            (Holder::Global, ..) => site.container.clone(),
            _ => continue,
        };
        let loops: Vec<usize> = file.index.loops_around(call.place.block).collect();
        places.extend(loops.into_iter().rev().map(|at| (at, container.clone())));
    }
    let fix = |(at, container): (usize, String)| {
        let line = format!("{container}.clear()");
        let header = spot(file, file.index.loops[at].statement);
        let edit = at_loop_end(file, at, &line)?;
        let description = format!("Empty it at the end of the loop of line {}: `{line}`.", header.line);
        Some(EditTry { kind: TryKind::Clear, description, edits: vec![edit] })
    };
    places.into_iter().filter_map(fix).collect()
}

/// A line at the end of a loop's body.
fn at_loop_end(file: &Lines<'_>, at: usize, line: &str) -> Option<Edit> {
    let record = &file.index.loops[at];
    let header = file.index.statements[record.statement].range;
    let inside = |range: &TextRange| range.start() >= header.end() && record.range.contains_range(*range);
    let first = file
        .index
        .statements
        .iter()
        .map(|statement| statement.range)
        .filter(inside)
        .min_by_key(|range| range.start())?;
    starts_line(file, first)?;
    let indentation = file.source.indentation(first.start()).to_owned();
    after_line(file, record.range.end(), &indentation, line)
}

/// A line behind the one in which something ends.
fn after_line(file: &Lines<'_>, end: TextSize, indentation: &str, line: &str) -> Option<Edit> {
    let last = file.source.line_of(end);
    let column = file.source.line(last)?.chars().count() as u32 + 1;
    let at = file.source.offset(caulk_core::Position { line: last, column })?;
    let rest = file.source.slice(TextRange::new(end.min(at), at)).trim();
    let newline = file.source.newline();
    (rest.is_empty() || rest.starts_with('#'))
        .then(|| crate::edit::insert(file, at, format!("{newline}{indentation}{line}")))
}

/// What a line makes, given back where the statements around it end.
fn releases(file: &Lines<'_>, line: u32) -> Vec<EditTry> {
    let made = file.index.calls.iter().filter(|call| spot(file, call.place.statement).covers(line));
    made.filter_map(|call| release(file, call)).collect()
}

fn release(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let name = call.callee.last_name()?;
    let method = match RELEASES.iter().find(|(made, _)| *made == name) {
        Some((_, method)) => *method,
        None if name.starts_with("register_") && name.contains("hook") => "remove",
        None => return None,
    };
    let statement = file.index.statements[call.place.statement].range;
    starts_line(file, statement)?;
    let bound = file.index.assignments.iter().find(|assignment| assignment.value == Some(call.range));
    let (target, mut edits) = match bound {
        Some(assignment) => (file.source.inline(assignment.target_range), Vec::new()),
        None if statement == call.range => {
            let edit = replace(file, TextRange::empty(call.range.start()), "handle = ");
            ("handle".to_owned(), vec![edit])
        }
        None => return None,
    };
    let line = format!("{target}.{method}()");
    let around = file.index.loops_around(call.place.block).next();
    let function = file.index.function_scope(call.place.scope);
    // The loop is nearer if it is in the function.
    let in_function = |at: usize| {
        function.is_none_or(|scope| file.index.scopes[scope].range.contains_range(file.index.loops[at].range))
    };
    let edit = match (around.filter(|at| in_function(*at)), function) {
        (Some(at), _) => at_loop_end(file, at, &line)?,
        (None, Some(scope)) => at_function_end(file, scope, &line)?,
        (None, None) => return None,
    };
    edits.push(edit);
    Some(EditTry {
        kind: TryKind::Release,
        description: format!("Give it back when it has been used: `{line}`."),
        edits,
    })
}

/// A line at the end of a function, before its last `return`.
fn at_function_end(file: &Lines<'_>, scope: usize, line: &str) -> Option<Edit> {
    let record = &file.index.scopes[scope];
    let first = file.index.statements[record.first?].range;
    starts_line(file, first)?;
    if let Some(tail) = record.tail {
        return line_before(file, file.index.statements[tail].range, line);
    }
    let indentation = file.source.indentation(first.start()).to_owned();
    after_line(file, record.range.end(), &indentation, line)
}

/// `no_grad` for a function that makes no backward pass.
fn without_grad(file: &Lines<'_>, function: &str) -> Option<EditTry> {
    let scope =
        file.index.scopes.iter().position(|scope| scope.name == function && scope.name != "<module>")?;
    let record = &file.index.scopes[scope];
    let trains = |call: &CallRecord| {
        file.index.function_scope(call.place.scope) == Some(scope)
            && matches!(call.callee.last_name(), Some("backward" | "step" | "grad"))
    };
    if record.no_grad || file.index.calls.iter().any(trains) || function.is_empty() {
        return None;
    }
    let torch = file.index.imports.iter().find(|(_, from)| *from == "torch").map(|(name, _)| name.clone());
    let decorator = format!("@{}.no_grad()", torch.as_deref().unwrap_or("torch"));
    let mut edits = vec![line_before(file, TextRange::empty(record.range.start()), &decorator)?];
    if torch.is_none() {
        edits.push(import(file, "torch", "import torch")?);
    }
    Some(EditTry {
        kind: TryKind::Value,
        description: format!("Compute without graphs: `{decorator}`."),
        edits,
    })
}
