//! Answers about places and names: what stands at a line, where a name grows, where it is made, who calls what.

use ruff_text_size::{TextRange, TextSize};

use crate::hint::Hint;
use crate::index::Base;
use crate::index::{Action, CallRecord, Nature, Op, Place, ScopeKind};
use crate::lines::Lines;
use crate::path::{Path, Root, Step};
use crate::resolve::Meaning;
use crate::sites::{Call, Creation, Decorated, GrowKind, GrowSite, Holder, Loop, Owner, Statement};
use crate::spot::Spot;

/// The name without what the interpreter puts into qualified names: `f.<locals>.g.<lambda>` is `f.g`.
pub(crate) fn plain_function(name: &str) -> String {
    let kept: Vec<&str> =
        name.split('.').filter(|part| !part.starts_with('<') || *part == "<module>").collect();
    kept.join(".")
}

/// The name by which an expression's end is known: `val` of `self.meters["val"]`.
pub(crate) fn last_name(expression: &str) -> &str {
    let trimmed = expression.trim();
    if let Some(inner) = trimmed.strip_suffix(']')
        && let Some(open) = inner.rfind('[')
    {
        let key = inner[open + 1..].trim();
        let text = key.trim_matches(['\'', '"']);
        return if text.len() == key.len() { last_name(&inner[..open]) } else { text };
    }
    trimmed.trim_matches(['\'', '"']).rsplit('.').next().unwrap_or(trimmed)
}

/// Anybody's `self.x` is an attribute.
pub(crate) fn narrowed(expression: &str, owner: &Owner) -> Owner {
    if *owner == Owner::Any && expression.contains('.') && !expression.trim_end().ends_with(']') {
        Owner::Attribute
    } else {
        owner.clone()
    }
}

/// The spot of a statement.
pub(crate) fn spot(file: &Lines<'_>, statement: usize) -> Spot {
    let record = &file.index.statements[statement];
    file.source.spot(record.range, file.index.function_name(record.scope))
}

fn lines(file: &Lines<'_>, range: TextRange) -> (u32, u32) {
    (file.source.line_of(range.start()), file.source.line_of(range.end()))
}

pub(crate) fn function_at(file: &Lines<'_>, line: u32) -> String {
    let covers = |range| {
        let (first, last) = lines(file, range);
        (first..=last).contains(&line)
    };
    let inner = (file.index.scopes.iter().enumerate())
        .filter(|(_, scope)| scope.kind == ScopeKind::Function && covers(scope.range))
        .min_by_key(|(_, scope)| scope.range.len());
    inner.map_or_else(|| "<module>".to_owned(), |(_, scope)| scope.name.clone())
}

/// Statements that cover a line, the innermost first.
pub(crate) fn statements_at(file: &Lines<'_>, line: u32) -> Vec<usize> {
    let mut found: Vec<usize> = (0..file.index.statements.len())
        .filter(|&id| {
            let (first, last) = lines(file, file.index.statements[id].range);
            (first..=last).contains(&line)
        })
        .collect();
    // A header that shares its line with its body (`for x in xs: out.append(x)`) comes after it.
    found.sort_by_key(|&id| (file.index.statements[id].header, id));
    found
}

pub(crate) fn statement_at(file: &Lines<'_>, line: u32) -> Option<Statement> {
    let covering = statements_at(file, line);
    let sites: Vec<GrowSite> = covering.iter().flat_map(|&id| grown_by(file, id)).collect();
    // Of several statements on one line, the one that grows something; of several sites, growth before binding.
    let grow = sites.iter().find(|site| site.kind.grows()).or(sites.first()).cloned();
    let grown = grow.as_ref().map(|site| file.index.ops[site.op].place.statement);
    let id = grown.or(covering.first().copied())?;
    Some(Statement { spot: spot(file, id), grow, binds: binds(file, id) })
}

/// Names and attributes that a statement binds.
fn binds(file: &Lines<'_>, statement: usize) -> Vec<String> {
    let here = file.index.assignments.iter().filter(|bound| bound.place.statement == statement);
    let whole = here.filter(|bound| {
        !matches!(bound.nature, Nature::Definition | Nature::Caught)
            && !matches!(bound.target.steps.last(), Some(Step::Key(_)))
    });
    whole.map(|bound| file.source.inline(bound.target_range)).collect()
}

/// Libraries that the statement at a line names: the first part of where the names come from.
pub(crate) fn libraries_at(file: &Lines<'_>, line: u32) -> Vec<String> {
    let here = statements_at(file, line);
    let of_calls = file.index.calls.iter().map(|call| (&call.callee, &call.place));
    let of_reads = file.index.reads.iter().map(|(path, place)| (path, place));
    let mut found = Vec::new();
    for (path, _) in of_calls.chain(of_reads).filter(|(_, place)| here.contains(&place.statement)) {
        // An expression of more than one name: `torch.zeros`, `F.relu`.
        let Some(root) = path.root_name().filter(|_| !path.steps.is_empty()) else { continue };
        let from = file.index.imports.get(root).map_or(root, String::as_str);
        let library = from.split('.').next().unwrap_or(from).to_owned();
        if !found.contains(&library) {
            found.push(library);
        }
    }
    found
}

/// Last names of what the statement at a line calls.
pub(crate) fn called_at(file: &Lines<'_>, line: u32) -> Vec<String> {
    let here = statements_at(file, line);
    let calls = file.index.calls.iter().filter(|call| here.contains(&call.place.statement));
    calls.filter_map(|call| call.callee.last_name().map(str::to_owned)).collect()
}

fn grown_by(file: &Lines<'_>, statement: usize) -> Vec<GrowSite> {
    let ops = file.index.ops.iter().enumerate().filter(|(_, op)| op.place.statement == statement);
    ops.filter_map(|(id, _)| grow_site(file, id, &file.meanings[id][0], false)).collect()
}

pub(crate) fn grows_at(file: &Lines<'_>, line: u32) -> Vec<GrowSite> {
    statements_at(file, line).into_iter().flat_map(|id| grown_by(file, id)).collect()
}

/// The site of an operation, if it grows or binds.
fn grow_site(file: &Lines<'_>, id: usize, meaning: &Meaning, element: bool) -> Option<GrowSite> {
    let op = &file.index.ops[id];
    let Action::Grow(kind) = op.action else { return None };
    Some(GrowSite {
        spot: spot(file, op.place.statement),
        container: file.source.inline(op.container),
        kind,
        holder: holder(file, &file.meanings[id][0].base),
        value: op.value.clone(),
        key: op.key.as_ref().map(|key| key.text.clone()),
        element,
        aliased: meaning.aliased,
        via: meaning.via.iter().map(|&statement| spot(file, statement)).collect(),
        names: names_in(&op.path),
        keyed: matches!(op.path.steps.last(), Some(Step::Key(_))),
        conditions: file.index.conditions(op.place.block),
        accumulates: op.accumulates(),
        collection: binds_collection(file, op),
        no_grad: file.index.without_grad(op.place),
        op: id,
    })
}

/// Names and constant keys in a path.
fn names_in(path: &Path) -> Vec<String> {
    let steps = path.steps.iter().filter_map(|step| match step {
        Step::Attr(name) | Step::Key(name) => Some(name.as_str()),
        Step::Item | Step::Slice | Step::Call => None,
    });
    path.root_name().into_iter().chain(steps).map(str::to_owned).collect()
}

/// Is what an operation binds anew a list, tuple, set or dict?
fn binds_collection(file: &Lines<'_>, op: &Op) -> bool {
    let of_itself = matches!(op.action, Action::Grow(GrowKind::AugAdd | GrowKind::Rebind | GrowKind::Assign));
    let written = op.value.as_ref().is_some_and(|value| value.hint == Hint::Display);
    of_itself && (written || file.resolver.is_collection(file.index, &op.path, op.place))
}

fn holder(file: &Lines<'_>, base: &Base) -> Holder {
    match base {
        Base::Attribute(..) => Holder::Attribute,
        Base::Global(_) => Holder::Global,
        Base::Local(scope, name) => {
            let parameters = &file.index.scopes[*scope].parameters;
            if parameters.iter().any(|parameter| parameter.name == *name) {
                Holder::Parameter
            } else {
                Holder::Local
            }
        }
        Base::Other => Holder::Other,
    }
}

/// How a meaning answers to a name: `Some(true)` where only an element of the named thing is meant.
pub(crate) fn answers(meaning: &Meaning, name: &str) -> Option<bool> {
    let base = match &meaning.base {
        Base::Local(_, base) | Base::Global(base) | Base::Attribute(_, base) => base == name,
        Base::Other => false,
    };
    let key = meaning.keys.iter().rposition(|key| key.as_deref() == Some(name));
    match key {
        Some(at) => Some(at + 1 < meaning.keys.len()),
        None => base.then_some(!meaning.keys.is_empty()),
    }
}

/// Whether a meaning is the owner's.
pub(crate) fn owned(file: &Lines<'_>, meaning: &Meaning, owner: &Owner) -> bool {
    // A key says nothing about who owns the dict that it is in.
    let keyed = meaning.keys.iter().any(Option::is_some);
    match (owner, &meaning.base) {
        (Owner::Any, _) | (Owner::Attribute, Base::Attribute(..)) => true,
        (Owner::Module, base) => keyed || matches!(base, Base::Global(_)),
        (Owner::Function(function), Base::Local(scope, _)) => {
            file.index.function_name(*scope) == plain_function(function)
        }
        (Owner::Class(name), Base::Attribute(class, _)) => {
            match (class, file.resolver.class_by_name(file.index, name)) {
                (Some(class), Some(wanted)) => file.resolver.related(*class, wanted),
                _ => true,
            }
        }
        _ => keyed,
    }
}

/// Operations on a name, each with the meaning that answers to it and whether only an element is meant.
pub(crate) fn ops_of<'m>(
    file: &'m Lines<'_>,
    name: &'m str,
    owner: &'m Owner,
) -> impl Iterator<Item = (usize, &'m Op, &'m Meaning, bool)> {
    let name = last_name(name);
    file.index.ops.iter().enumerate().flat_map(move |(id, op)| {
        let mut seen: Vec<&[usize]> = Vec::new();
        // One answer per way through callers; the most literal first.
        file.meanings[id].iter().filter_map(move |meaning| {
            let element = answers(meaning, name)?;
            if !owned(file, meaning, owner) || seen.contains(&meaning.via.as_slice()) {
                return None;
            }
            seen.push(&meaning.via);
            Some((id, op, meaning, element))
        })
    })
}

pub(crate) fn grow_sites(file: &Lines<'_>, name: &str, owner: &Owner) -> Vec<GrowSite> {
    let mut found: Vec<GrowSite> = ops_of(file, name, owner)
        .filter_map(|(id, _, meaning, element)| grow_site(file, id, meaning, element))
        .collect();
    found.sort_by(|a, b| {
        let key = |site: &GrowSite| (site.spot.line, site.spot.column, site.op);
        key(a).cmp(&key(b)).then(a.via.len().cmp(&b.via.len()))
    });
    found
}

pub(crate) fn creations(file: &Lines<'_>, name: &str, owner: &Owner) -> Vec<Creation> {
    let name = last_name(name);
    let mut found: Vec<(bool, TextSize, Creation)> = Vec::new();
    for assignment in &file.index.assignments {
        let made = !matches!(assignment.nature, Nature::Itself { .. } | Nature::Part | Nature::Definition);
        let Some(value) = assignment.value.filter(|_| made) else { continue };
        let meaning = file.resolver.meanings(file.index, &assignment.target, assignment.place, true);
        let named = |meaning: &Meaning| answers(meaning, name) == Some(false) && owned(file, meaning, owner);
        if !meaning.first().is_some_and(named) {
            continue;
        }
        let place = spot(file, assignment.place.statement);
        if found.iter().any(|(_, _, known)| known.spot.function == place.function) {
            continue;
        }
        let scope = file.index.function_scope(assignment.place.scope);
        let initial = scope.is_none_or(|scope| file.index.scopes[scope].name.ends_with("__init__"));
        let creation = Creation {
            spot: place,
            target: file.source.inline(assignment.target_range),
            value: file.source.inline(value),
            bound: assignment.capacity.clone(),
        };
        found.push((!initial, assignment.place.offset, creation));
    }
    found.sort_by_key(|(late, offset, _)| (*late, *offset));
    found.into_iter().map(|(_, _, creation)| creation).collect()
}

pub(crate) fn calls(file: &Lines<'_>, name: &str) -> Vec<Call> {
    let mut found: Vec<(TextSize, Call)> = Vec::new();
    for call in file.index.calls.iter().filter(|call| call.callee.last_name() == Some(name)) {
        let mut answer = Call {
            spot: spot(file, call.place.statement),
            callee: file.source.inline(call.callee_range),
            arguments: Vec::new(),
            keywords: Vec::new(),
            bound_to: bound_to(file, call.range),
            mentions: mentions(call),
            texts: call.texts.clone(),
            managed: is_managed(file, call),
        };
        for argument in &call.arguments {
            let text = file.source.inline(argument.value.range);
            match &argument.name {
                Some(key) => answer.keywords.push((key.clone(), text)),
                None => answer.arguments.push(text),
            }
        }
        found.push((call.range.start(), answer));
    }
    found.sort_by_key(|(offset, _)| *offset);
    found.into_iter().map(|(_, call)| call).collect()
}

/// Names and attributes in the arguments of a call.
fn mentions(call: &CallRecord) -> Vec<String> {
    call.arguments.iter().flat_map(|argument| &argument.value.reads).flat_map(names_in).collect()
}

/// Is what a call gives handed to a `with` statement, or to an exit stack?
fn is_managed(file: &Lines<'_>, call: &CallRecord) -> bool {
    let stack = |other: &&CallRecord| {
        matches!(other.callee.last_name(), Some("enter_context" | "enter_async_context"))
            && other.range != call.range
    };
    let stacks = file.index.calls.iter().filter(stack).map(|other| other.range);
    file.index.managed.iter().copied().chain(stacks).any(|around| around.contains_range(call.range))
}

/// What the value of an expression is bound to, where it is the whole of an assignment's value.
fn bound_to(file: &Lines<'_>, range: TextRange) -> Option<String> {
    let assignment = file.index.assignments.iter().find(|assignment| assignment.value == Some(range))?;
    Some(file.source.inline(assignment.target_range))
}

/// Names of decorators that keep results for arguments.
const CACHES: &[&str] =
    &["lru_cache", "cache", "cached", "cachedmethod", "memoize", "memoized", "alru_cache"];

/// Whether two functions, by their qualified names, belong to one class, or one class inherits from the other.
pub(crate) fn of_one_family(file: &Lines<'_>, one: &str, other: &str) -> bool {
    let class = |function: &str| {
        let holds = |name: &str| function.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let around = file.index.classes.iter().enumerate().filter(|(_, class)| holds(&class.name));
        around.max_by_key(|(_, class)| class.name.len()).map(|(at, _)| at)
    };
    class(one).zip(class(other)).is_some_and(|(one, other)| file.resolver.related(one, other))
}

pub(crate) fn decorated(file: &Lines<'_>, function: &str) -> Option<Decorated> {
    let wanted = plain_function(function);
    let functions = || file.index.scopes.iter().filter(|scope| scope.kind == ScopeKind::Function);
    let plain = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let exact = functions().filter(|scope| scope.name == wanted);
    let by_last = functions().filter(|scope| plain(&scope.name) == plain(&wanted));
    exact.chain(by_last).find_map(|scope| {
        let decorator = scope.decorators.iter().find(|decorator| {
            let name = decorator.path.steps.iter().rev().find_map(|step| match step {
                Step::Attr(name) => Some(name.as_str()),
                _ => None,
            });
            let root = match &decorator.path.root {
                Root::Name(root) => {
                    file.index.imports.get(root).map_or(root.as_str(), |from| last_name(from))
                }
                _ => "",
            };
            CACHES.contains(&name.unwrap_or(root))
        })?;
        let text = file.source.inline(decorator.range);
        let positional = decorator.arguments.first().cloned();
        let named =
            decorator.keywords.iter().find(|(key, _)| key == "maxsize").map(|(_, value)| value.clone());
        Some(Decorated {
            spot: file.source.spot(decorator.range, scope.name.clone()),
            decorator: text.trim_start_matches('@').trim().to_owned(),
            maxsize: named.or(positional),
            parameters: scope.parameters.iter().map(|parameter| parameter.name.clone()).collect(),
            method: scope.class.is_some() && !scope.is_static,
        })
    })
}

pub(crate) fn loops_at(file: &Lines<'_>, line: u32) -> Vec<Loop> {
    let function = function_at(file, line);
    let mut found: Vec<(TextSize, Loop)> = Vec::new();
    for record in &file.index.loops {
        let (first, last) = lines(file, record.range);
        let scope = file.index.statements[record.statement].scope;
        if (first..=last).contains(&line) && file.index.function_name(scope) == function {
            let header = spot(file, record.statement);
            found.push((
                record.range.len(),
                Loop { spot: header, target: record.target.clone(), iter: record.iter.clone() },
            ));
        }
    }
    found.sort_by_key(|(length, _)| *length);
    found.into_iter().map(|(_, found)| found).collect()
}

/// Qualified name of the function in which a statement stands.
pub(crate) fn function_of_statement(file: &Lines<'_>, place: Place) -> String {
    file.index.function_name(file.index.statements[place.statement].scope)
}
