//! The line: what the armed trace saw, joined with the places in source that grow the name.

use caulk_core::Place;
use caulk_core::wire::{ContainerKind, Holder, PathStep, StepKind, TraceHit};
use caulk_python::{GrowKind, GrowSite, Owner, Spot};

mod called;
mod located;

pub(crate) use located::Located;

use called::{made_by, registered_at_exit, started_thread};
use located::{REGISTERING, add_place};

use crate::claim::Witness;
use crate::files::{Files, Source};
use crate::heap;
use crate::name::{self, Name};
use crate::process::Process;
use crate::reached::{Reached, blamed};
use crate::units::Scale;

/// Names that torch gives to registries of hooks.
pub(crate) fn is_hook_registry(name: &str) -> bool {
    name.starts_with('_') && name.ends_with("_hooks")
}

/// Part of a thing's growth that the lines which grow it must allocate, before they are ranked by that.
const ALLOCATED: f64 = 0.25;

/// What is looked for: the thing that grows, as it was seen to.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    pub(crate) id: u32,
    pub(crate) kind: ContainerKind,
    /// Its growth.
    pub(crate) bytes_per_unit: f64,
}

/// Finds the line of the thing: of several that were seen to grow it, the one that allocates most itself, else the one that
/// adds most elements.
pub(crate) fn locate(
    files: &Files<'_>,
    process: &Process<'_>,
    scale: Scale,
    sought: Sought,
) -> Option<Located> {
    let Sought { id, kind, bytes_per_unit } = sought;
    let holder = process.holders.get(&id)?;
    if kind == ContainerKind::LruCache {
        return decorator(files, process, holder);
    }
    if holder.name == "grad" && kind == ContainerKind::Graph {
        return recorded_backward(files, process);
    }
    if is_optimizer_state(holder)
        && let Some(located) = added_parameters(files, process, scale)
    {
        return Some(located);
    }
    if is_at_exit(holder) {
        return registered_at_exit(files, process);
    }
    if is_active_threads(holder) {
        return started_thread(files, process, id);
    }
    if is_tee(holder) {
        return made_by(files, process, holder, "tee");
    }
    if is_cycle(holder)
        && let Some(located) = made_by(files, process, holder, "cycle")
        && located.witness == Witness::OnlyLine
    {
        return Some(located);
    }
    let names = name::names(holder);
    let empty = Vec::new();
    let mut hits: Vec<&TraceHit> = process.hits.get(&id).unwrap_or(&empty).clone();
    hits.retain(|hit| hit.line > 0 && !heap::is_of_caulk(&hit.file));
    hits.sort_by_key(|hit| std::cmp::Reverse((hit.growth, hit.count)));
    by_allocation(files, process, scale, bytes_per_unit, &mut hits);
    let traced = hits.iter().find_map(|hit| at_hit(files, hit, holder, &names));
    let mut located = traced.or_else(|| in_source(files, process, &names, kind))?;
    let also: Vec<Place> = hits.iter().filter_map(|hit| elsewhere(files, hit, &located)).collect();
    for place in also {
        add_place(&mut located.also_at, place);
    }
    let collection = binds_collection(holder, &located);
    if let Some(grow) = &mut located.grow {
        grow.collection |= collection;
    }
    Some(located)
}

/// Puts those first whose statements allocate most, where that is a part of the thing's growth that matters.
fn by_allocation(
    files: &Files<'_>,
    process: &Process<'_>,
    scale: Scale,
    bytes_per_unit: f64,
    hits: &mut Vec<&TraceHit>,
) {
    let place = |hit: &TraceHit| (blamed(hit).0.to_owned(), blamed(hit).1);
    if bytes_per_unit <= 0.0 || hits.iter().all(|hit| place(hit) == place(hits[0])) {
        return;
    }
    let lines = heap::by_line(process);
    let allocated = |hit: &TraceHit| {
        let (path, number) = blamed(hit);
        let statement = files.source(path).and_then(|source| source.lines().statement_at(number));
        let is_there =
            |line: u32| statement.as_ref().map_or(line == number, |statement| statement.spot.covers(line));
        let of_statement = lines.iter().filter(|((file, line), _)| *file == path && is_there(*line));
        let stacks: Vec<u32> = of_statement.flat_map(|(_, ids)| ids.iter().copied()).collect();
        heap::gained(process, scale, &stacks)
    };
    let mut ranked: Vec<(f64, &TraceHit)> = hits.iter().map(|hit| (allocated(hit), *hit)).collect();
    if ranked.iter().any(|(bytes, _)| *bytes > ALLOCATED * bytes_per_unit) {
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        *hits = ranked.into_iter().map(|(_, hit)| hit).collect();
    }
}

/// The statement at a hit, where it is another one than what was located.
fn elsewhere(files: &Files<'_>, hit: &TraceHit, located: &Located) -> Option<Place> {
    let (path, number) = blamed(hit);
    if path == located.path && located.spot.covers(number) {
        return None;
    }
    let spot = files.source(path)?.lines().statement_at(number)?.spot;
    Some(Place { file: files.display(path), line: spot.line, text: spot.text })
}

/// Was what the line binds anew seen to be a list, tuple or dict: is what it leads to an element of that?
fn binds_collection(holder: &Holder, located: &Located) -> bool {
    let [.., collection, last] = holder.path.as_slice() else { return false };
    let of_element = match last.kind {
        StepKind::Index => located.grow.as_ref().is_some_and(|grow| grow.element),
        // The line may name the key, `totals["loss"] += loss`, or store under any: `totals[kind] = total`.
        StepKind::Key => {
            let stores = |grow: &GrowSite| grow.key.is_some() && grow.kind == GrowKind::Subscript;
            located.name == holder.name || located.grow.as_ref().is_some_and(stores)
        }
        _ => return false,
    };
    let builtin = matches!(collection.type_name.as_str(), "list" | "tuple" | "dict" | "set");
    (builtin || collection.type_name.starts_with("collections.")) && !of_element
}

/// Parameters of an optimizer, or what it keeps for them.
pub(crate) fn is_of_optimizer(holder: &Holder) -> bool {
    is_optimizer_state(holder)
        || (holder.name == "param_groups" && holder.owner_type.starts_with("torch.optim."))
}

/// What an optimizer keeps for each of its parameters: a step fills it, but it goes on growing only where parameters are
/// added.
pub(crate) fn is_optimizer_state(holder: &Holder) -> bool {
    holder.name == "state" && holder.owner_type.starts_with("torch.optim.")
}

/// Does matplotlib keep it for a figure, or for Axes, that are drawn on?
pub(crate) fn is_of_drawing(holder: &Holder) -> bool {
    let Some((_, before)) = holder.path.split_last() else { return false };
    let drawn_on = |step: &PathStep| {
        ["matplotlib.axes.", "matplotlib.figure."].iter().any(|home| step.type_name.starts_with(home))
    };
    holder.owner_type.starts_with("matplotlib.")
        && !holder.owner_type.ends_with("CallbackRegistry")
        && before.iter().any(drawn_on)
}

/// Is it pyplot's list of open figures, or kept by that alone?
pub(crate) fn is_figure_registry(holder: &Holder) -> bool {
    holder.path.iter().any(|step| step.name == "Gcf" || step.type_name.ends_with("Gcf"))
}

/// Does pyplot keep it, until it is closed?
pub(crate) fn is_of_pyplot(holder: &Holder) -> bool {
    let of_matplotlib =
        |step: &PathStep| step.kind == StepKind::Module && step.name.starts_with("matplotlib.");
    is_figure_registry(holder) || holder.path.iter().any(of_matplotlib)
}

/// Does the interpreter keep it, to run it at exit?
pub(crate) fn is_at_exit(holder: &Holder) -> bool {
    matches!(holder.path.as_slice(), [module] if module.kind == StepKind::Module && module.name == "atexit")
}

/// Is it an iterator of `itertools.tee`?
pub(crate) fn is_tee(holder: &Holder) -> bool {
    holder.path.last().is_some_and(|step| step.type_name == "itertools._tee")
}

/// Is it what an `itertools.cycle` has saved of its first pass?
fn is_cycle(holder: &Holder) -> bool {
    let [.., cycle, saved] = holder.path.as_slice() else { return false };
    cycle.type_name == "itertools.cycle" && saved.kind == StepKind::Internal
}

/// Is it the table of running threads of `threading`?
pub(crate) fn is_active_threads(holder: &Holder) -> bool {
    let in_threading = holder.path.first().is_some_and(|step| step.name == "threading");
    holder.name == "_active" && in_threading
}

/// The line that adds parameters to an optimizer: as it was traced, else what does so in the source.
fn added_parameters(files: &Files<'_>, process: &Process<'_>, scale: Scale) -> Option<Located> {
    let groups = process.holders.iter().filter(|(_, holder)| holder.name == "param_groups");
    let are_more = groups.clone().next().is_some();
    let mut traced = groups.filter(|(id, _)| process.hits.contains_key(id));
    let groups_of = |id| Sought { id, kind: ContainerKind::List, bytes_per_unit: 0.0 };
    if let Some(located) = traced.find_map(|(id, _)| locate(files, process, scale, groups_of(*id))) {
        let mut calls = located.source.lines().calls("add_param_group").into_iter();
        let call = calls.find(|call| located.spot.covers(call.spot.line));
        let container = call.map_or(located.container, |call| call.callee);
        return Some(Located { container, ..located });
    }
    let called = |source: &Source| {
        let call = source.lines().calls("add_param_group").into_iter().next()?;
        Some((call.spot, call.callee))
    };
    let written = |source: &Source| {
        let sites = source.lines().grow_sites("params");
        let site = sites.into_iter().find(|site| site.keyed && !site.element)?;
        Some((site.spot, site.container))
    };
    process.files().into_iter().find_map(|path| {
        let source = files.source(path)?;
        // Groups that do not become more get other parameters.
        let found = if are_more {
            called(&source).or_else(|| written(&source))
        } else {
            written(&source).or_else(|| called(&source))
        };
        let (spot, container) = found?;
        let grow = source.lines().statement_at(spot.line).and_then(|statement| statement.grow);
        let located = Located::at(source, path.to_owned(), spot, container, Witness::OnlyLine);
        Some(Located { grow, ..located })
    })
}

fn at_hit(files: &Files<'_>, hit: &TraceHit, holder: &Holder, names: &[Name]) -> Option<Located> {
    let (path, number) = blamed(hit);
    let (source, path) = (files.source(path)?, path.to_owned());
    let library = Reached::behind(files, hit);
    let traced = Some((hit.growth, hit.count));
    if let Some((site, name)) = names.iter().find_map(|name| Some((agreed(&source, number, name)?, name))) {
        return Some(Located {
            spot: site.spot.clone(),
            container: site.container.clone(),
            witness: Witness::TracedLine,
            facts: source.lines().facts_of(&name.text, &name.owner),
            name: name.text.clone(),
            owner: name.owner.clone(),
            grow: Some(site),
            traced,
            also_at: Vec::new(),
            library,
            path,
            source,
        });
    }
    let statement = source.lines().statement_at(number)?;
    let called = callee_at(&source, &statement.spot, &REGISTERING)
        .or_else(|| is_of_drawing(holder).then(|| callee_at(&source, &statement.spot, &DRAWING))?);
    // What the line binds or adds to is not what grew: that was grown behind the call that it makes.
    let grow = statement.grow.filter(|grow| !matches!(grow.kind, GrowKind::Assign | GrowKind::Rebind));
    let grow = grow
        .filter(|grow| library.is_none() || !matches!(grow.kind, GrowKind::AugAdd | GrowKind::SliceAssign));
    let registers = grow.as_ref().is_some_and(|grow| matches!(grow.kind, GrowKind::Register | GrowKind::Put));
    let container = match (&called, &grow) {
        (Some(called), _) => called.clone(),
        (None, Some(grow)) => grow.container.clone(),
        (None, None) => holder.expression.clone(),
    };
    // Grown inside a library by a call that source shows: the trace saw the library's line under this one, and that says so.
    let is_its = |inside: &Source| names.iter().any(|name| agreed(inside, hit.line, name).is_some());
    let says_so = || library.is_some() && files.source(&hit.file).is_some_and(|inside| is_its(&inside));
    let proved = registers || called.is_some() || says_so();
    let witness = if proved { Witness::TracedLine } else { Witness::OnlyLine };
    let Name { text, owner, .. } = &names[0];
    Some(Located {
        spot: statement.spot,
        facts: source.lines().facts_of(text, owner),
        name: text.clone(),
        owner: owner.clone(),
        grow,
        container,
        witness,
        traced,
        also_at: Vec::new(),
        library,
        path,
        source,
    })
}

/// The place in source that grows the name at the line that was traced. Of several on the line, what grows the container
/// itself comes before what replaces or fills an element.
fn agreed(source: &Source, line: u32, name: &Name) -> Option<GrowSite> {
    let narrow = source.lines().grow_sites_of(&name.text, &name.owner);
    let sites = if narrow.is_empty() { source.lines().grow_sites(&name.text) } else { narrow };
    let covering = sites.into_iter().filter(|site| site.spot.covers(line));
    covering.min_by_key(|site| (site.element != name.element, !site.kind.grows()))
}

/// Calls that draw on Axes that are there.
const DRAWING: [&str; 19] = [
    "plot",
    "scatter",
    "imshow",
    "hist",
    "bar",
    "barh",
    "errorbar",
    "step",
    "fill_between",
    "contour",
    "contourf",
    "pcolormesh",
    "quiver",
    "text",
    "annotate",
    "axhline",
    "axvline",
    "add_patch",
    "legend",
];

/// The call on the user's line through which a library grew something of its own.
fn callee_at(source: &Source, spot: &Spot, names: &[&str]) -> Option<String> {
    let calls = names.iter().flat_map(|name| source.lines().calls(name));
    calls.into_iter().find(|call| spot.covers(call.spot.line)).map(|call| call.callee)
}

/// Without a trace: the place that grows the closest of the names. A key is mentioned for other containers as well
/// (`sums["loss"] += ...` beside `self.curves["loss"]`): those that name this one come first, then what grows its elements
/// under any key.
fn in_source(
    files: &Files<'_>,
    process: &Process<'_>,
    names: &[Name],
    kind: ContainerKind,
) -> Option<Located> {
    let of = |name: &Name, beside: Option<&Name>| {
        by_source(files, process, name, kind, beside.map(|beside| beside.text.as_str()))
    };
    let both = || match names {
        [key, outer] => of(key, Some(outer)).or_else(|| of(outer, Some(key))),
        _ => None,
    };
    both().or_else(|| names.iter().rev().find_map(|name| of(name, None)))
}

/// The one place in the files that are known to run that grows the name, and mentions another one beside it.
fn by_source(
    files: &Files<'_>,
    process: &Process<'_>,
    name: &Name,
    kind: ContainerKind,
    beside: Option<&str>,
) -> Option<Located> {
    let replaced = matches!(kind, ContainerKind::Graph | ContainerKind::Tensor | ContainerKind::Chain);
    let mut found: Vec<(String, Source, GrowSite)> = Vec::new();
    for path in process.files() {
        let Some(source) = files.source(path) else { continue };
        for site in source.lines().grow_sites_of(&name.text, &name.owner) {
            let fits = beside.is_none_or(|beside| site.names.iter().any(|name| name == beside));
            if fits && (replaced || (site.element == name.element && site.kind.grows())) {
                found.push((path.to_owned(), source.clone(), site));
            }
        }
    }
    if replaced && found.iter().any(|(.., site)| site.kind.grows()) {
        found.retain(|(.., site)| site.kind.grows());
    }
    let initial = |site: &GrowSite| site.spot.function.ends_with("__init__");
    found.retain(|(.., site)| !(replaced && initial(site)));
    let certain = found.len() == 1;
    let (path, source, site) = found.into_iter().next()?;
    let witness = if certain { Witness::OnlyLine } else { Witness::Signs };
    let facts = source.lines().facts_of(&name.text, &name.owner);
    let (spot, container) = (site.spot.clone(), site.container.clone());
    Some(Located {
        source,
        path,
        spot,
        container,
        grow: Some(site),
        witness,
        facts,
        name: name.text.clone(),
        owner: name.owner.clone(),
        traced: None,
        also_at: Vec::new(),
        library: None,
    })
}

/// A cached function: its decorator.
fn decorator(files: &Files<'_>, process: &Process<'_>, holder: &Holder) -> Option<Located> {
    let function = if holder.function.is_empty() { holder.name.clone() } else { holder.function.clone() };
    let known = std::iter::once(holder.file.as_str()).chain(process.files());
    for path in known.filter(|path| !path.is_empty()) {
        let Some(source) = files.source(path) else { continue };
        let Some(found) =
            source.lines().decorated(&function).or_else(|| source.lines().decorated(&holder.name))
        else {
            continue;
        };
        let owner = Owner::Any;
        return Some(Located {
            spot: found.spot,
            path: path.to_owned(),
            container: holder.name.clone(),
            grow: None,
            witness: Witness::Exact,
            facts: source.lines().facts_of(&holder.name, &owner),
            name: holder.name.clone(),
            owner,
            traced: None,
            also_at: Vec::new(),
            library: None,
            source,
        });
    }
    None
}

/// Gradients that carry a graph come from the backward pass that recorded itself.
pub(crate) fn recorded_backward(files: &Files<'_>, process: &Process<'_>) -> Option<Located> {
    let sites = process.backwards.iter().filter(|site| site.create_graph);
    sites.max_by_key(|site| site.count).and_then(|site| {
        let source = files.source(&site.file)?;
        let statement = source.lines().statement_at(site.line)?;
        let called =
            source.lines().calls("backward").into_iter().find(|call| statement.spot.covers(call.spot.line));
        let container = called.map_or_else(|| "backward".into(), |call| call.callee);
        Some(Located::at(source, site.file.clone(), statement.spot, container, Witness::Exact))
    })
}
