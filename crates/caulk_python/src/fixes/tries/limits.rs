//! A cut to a length: one with which the program reads the container, or one that it names.

use caulk_core::Edit;

use super::super::bounds::{cut_behind, limit_beside};
use crate::edit::replace;
use crate::facts::{Window, owner};
use crate::lines::Lines;
use crate::query::{grows_at, last_name, of_one_family};
use crate::sites::{EditTry, GrowKind, GrowSite, TryKind};
use crate::value::Value;

/// Words in the names of sizes.
const SIZES: [&str; 10] =
    ["size", "capacity", "window", "limit", "max", "maxlen", "maxsize", "keep", "horizon", "length"];

/// So many of the sizes that a program names are tried.
const MOST_SIZES: usize = 2;

/// Cuts to the last entries, the most promising length first.
pub(super) fn limits(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let name = last_name(&site.container);
    let owner = owner(file, &site.container, &site.spot.function);
    let cut = |expression: String| -> Vec<EditTry> {
        let window = Window { spot: site.spot.clone(), expression, value: String::new() };
        let behind = || cut_behind(file, name, &owner, &window).map(|fix| (fix.description, fix.edits));
        let made = || {
            let limit = limit_beside(&site.container, &window);
            limit.map_or_else(Vec::new, |limit| {
                [ring_of_all(file, site, &limit), ring(file, site, &limit)].into_iter().flatten().collect()
            })
        };
        let all = behind().map_or_else(made, |cut| vec![cut]);
        all.into_iter().map(bound).collect()
    };
    let lengths = read_lengths(file, name);
    let sizes = sizes(file, site);
    let mut all: Vec<EditTry> = lengths.into_iter().chain(sizes).flat_map(cut).collect();
    all.extend(newest(file, site).and_then(|length| ring(file, site, &length)).map(bound));
    all
}

fn bound((description, edits): (String, Vec<Edit>)) -> EditTry {
    EditTry { kind: TryKind::Bound, description, edits }
}

/// What a name is bound to, cut to a length: `torch.cat([self.bank, k])[-size:]`.
fn ring(file: &Lines<'_>, site: &GrowSite, limit: &str) -> Option<(String, Vec<Edit>)> {
    let rebinds = matches!(site.kind, GrowKind::Rebind | GrowKind::Assign);
    let value = site.value.as_ref().filter(|value| rebinds && !value.text.starts_with('{'))?;
    let form = format!("{}[{}]", value.callable_text(), slice(file, site, value, limit)?);
    let description = format!("Keep the last `{limit}` entries: `{form}`.");
    Some((description, vec![replace(file, value.range, form)]))
}

/// The same for all that a function joins at each call: entries of one belong to entries of the others.
fn ring_of_all(file: &Lines<'_>, site: &GrowSite, limit: &str) -> Option<(String, Vec<Edit>)> {
    let (description, mut edits) = ring(file, site, limit)?;
    let function = file.index.scopes.iter().find(|scope| scope.name == site.spot.function)?;
    let (first, last) =
        (file.source.line_of(function.range.start()), file.source.line_of(function.range.end()));
    let own = site.spot.line;
    for other in (first..=last).filter(|line| *line != own).flat_map(|line| grows_at(file, line)) {
        let beside = other.spot.function == site.spot.function && joins_like(file, &other, site);
        if let Some((_, more)) = ring(file, &other, limit).filter(|_| beside) {
            edits.extend(more.into_iter().filter(|edit| !edits.contains(edit)).collect::<Vec<_>>());
        }
    }
    let (one, all) = (edits.len(), format!("{description} The same for what is joined beside it."));
    (one > 1).then_some((all, edits))
}

/// Whether a statement joins what it binds to more of it, by the call that another joins with: `x = torch.cat([x, y])`.
fn joins_like(file: &Lines<'_>, one: &GrowSite, other: &GrowSite) -> bool {
    let call = |site: &GrowSite| {
        let range = site.value.as_ref()?.range;
        file.index.calls.iter().find(|call| call.range == range)
    };
    let (Some(own), Some(like)) = (call(one), call(other)) else { return false };
    let joined = |path| own.arguments.first().is_some_and(|parts| parts.members.contains(path));
    own.callee == like.callee && file.index.ops.get(one.op).is_some_and(|op| joined(&op.path))
}

/// The subscript that keeps the newest entries of what is joined.
fn slice(file: &Lines<'_>, site: &GrowSite, value: &Value, limit: &str) -> Option<String> {
    let Some(call) = file.index.calls.iter().find(|call| call.range == value.range) else {
        return Some(format!("-{limit}:"));
    };
    let by_name = |name: &str| call.arguments.iter().find(|argument| argument.name.as_deref() == Some(name));
    let second = call.arguments.get(1).filter(|argument| argument.name.is_none());
    let along = by_name("dim").or_else(|| by_name("axis")).or(second);
    let parts = call.arguments.first().map_or(&[][..], |argument| &argument.members);
    let oldest_last = parts.len() > 1 && parts.last() == file.index.ops.get(site.op).map(|op| &op.path);
    let tail = if oldest_last { format!(":{limit}") } else { format!("-{limit}:") };
    match along.map_or("0", |argument| argument.value.text.trim()) {
        "0" => Some(tail),
        "1" => Some(format!(":, {tail}")),
        "-1" => Some(format!("..., {tail}")),
        _ => None,
    }
}

/// The length of the newest part of what is joined, if it is a variable beside the container itself: a program that reads no
/// more than that prints the same.
fn newest(file: &Lines<'_>, site: &GrowSite) -> Option<String> {
    let (value, op) = (site.value.as_ref()?, file.index.ops.get(site.op)?);
    let call = file.index.calls.iter().find(|call| call.range == value.range)?;
    let [one, other] = call.arguments.first()?.members.as_slice() else { return None };
    let part = if *one == op.path { other } else { one };
    (one == &op.path || other == &op.path).then_some(())?;
    Some(format!("len({})", part.plain()?))
}

/// Sizes that code beside the growth can name, those that share a word with the container first.
fn sizes(file: &Lines<'_>, site: &GrowSite) -> Vec<String> {
    let words =
        |name: &str| -> Vec<String> { name.to_ascii_lowercase().split('_').map(str::to_owned).collect() };
    let about = words(last_name(&site.container));
    let shared = |name: &str| words(last_name(name)).iter().filter(|word| about.contains(word)).count();
    let is_size = |name: &str| words(name).iter().any(|word| SIZES.contains(&word.as_str()));
    let parameters = file
        .index
        .scopes
        .iter()
        .filter(|scope| scope.name == site.spot.function)
        .flat_map(|scope| &scope.parameters)
        .map(|parameter| parameter.name.clone());
    let assigned = file.index.assignments.iter().filter_map(|assignment| {
        let name = assignment.target.last_name().filter(|name| is_size(name))?;
        let text = file.source.inline(assignment.target_range);
        let function = file.index.function_name(assignment.place.scope);
        let at_hand = match assignment.target.plain() {
            Some(_) => name.chars().all(|c| !c.is_lowercase()),
            None => {
                of_one_family(file, &function, &site.spot.function)
                    && text.starts_with("self.")
                    && site.container.starts_with("self.")
            }
        };
        at_hand.then_some(text)
    });
    let mut found: Vec<String> = Vec::new();
    for size in parameters.filter(|name| is_size(name)).chain(assigned) {
        if !found.contains(&size) && size != site.container {
            found.push(size);
        }
    }
    found.sort_by_key(|size| std::cmp::Reverse(shared(size)));
    found.truncate(MOST_SIZES);
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
