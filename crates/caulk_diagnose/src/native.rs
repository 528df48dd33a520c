//! Growth that no container accounts for: the lines that allocate what is never given back, by the heap profile.

use std::collections::BTreeMap;

use caulk_core::wire::{HeapFrame, HeapStack};
use caulk_core::{
    Advice, Cause, Evidence, Group, Growth, LeakClass, Link, LinkEvent, Rate, Series, Site, SiteRole, State,
    first_places, rank,
};
use caulk_growth::Judgement;
use caulk_python::{GrowKind, GrowSite};

use crate::claim::{Claim, Observed, Standing, Witness};
use crate::files::Files;
use crate::heap::{self, Line, is_of_user};
use crate::judged::Judged;
use crate::makers;
use crate::noted::is_noted;
use crate::process::Process;
use crate::units::{self, Scale};

/// Part of the process's growth that must be open before lines are named for it, and part of what is open that a line
/// must account for.
const OPEN: f64 = 0.25;
/// The same where graphs are found to grow.
const OPEN_BESIDE_GRAPHS: f64 = 0.5;
/// Lines that grow faster than what is open by this factor belong to what is explained: a container pins what other lines
/// have allocated.
const MOST: f64 = 1.5;
/// Blocks of a line for each object that more are alive of, from which on they are not those objects'. An array that no
/// collector knows has two, and a view of it a third; sampling misses by some.
const MORE: f64 = 4.0;
/// Blocks that a single one which gets longer adds per unit, at most: samples come and go.
const ONE_BLOCK: f64 = 0.5;
/// Lines that are named, but where more cannot be told apart.
const LINES: usize = 3;

/// Growth of a process, in bytes per unit, that `found` and what fills up leave open; `None` where it does not grow, or
/// most is explained.
pub(crate) fn open(judged: &Judged, found: &[Claim], filling: f64) -> Option<f64> {
    let in_use = judged.in_use().filter(|verdict| verdict.state == State::Grows)?;
    let grows = |series| judged.series(series).is_some_and(|verdict| verdict.state == State::Grows);
    let become_more = grows(Series::Threads) || grows(Series::Children);
    let counts = |finding: &&Claim| {
        let weighs = finding.weighs() && !is_nameless(finding);
        // What is noted of each thread is not why the thread holds anything.
        (weighs || finding.witness <= Witness::TracedLine) && !(become_more && is_noted(finding))
    };
    let weighing = found.iter().filter(counts);
    let here: Vec<(LeakClass, &Growth)> = weighing
        .filter_map(|finding| Some((finding.class(), finding.growth.as_ref()?)))
        .filter(|(_, growth)| growth.series == Series::InUse)
        .collect();
    let explained: f64 = here.iter().map(|(_, growth)| growth.bytes_per_unit).sum();
    let open = in_use.bytes_per_unit - explained - filling;
    // What a graph pins is the least that it does: the rest is likely the same graph's.
    let graphs = here.iter().any(|(class, _)| class.group() == Group::Graph);
    let part = if graphs { OPEN_BESIDE_GRAPHS } else { OPEN };
    (open >= judged.least && open >= part * in_use.bytes_per_unit).then_some(open)
}

/// A container that neither a name nor a line leads to: the buffer within a stream, say. It explains nothing to anybody.
pub(crate) fn is_nameless(finding: &Claim) -> bool {
    finding.sites.is_empty() && finding.holder.is_empty()
}

/// The lines that account for the `open` part of the growth, those of `found` left out.
pub(crate) fn findings(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    open: f64,
    found: &[Claim],
) -> Vec<Observed> {
    let (Some(scale), Some(in_use)) = (judged.scale, judged.in_use()) else { return Vec::new() };
    let nothing_else = open >= in_use.bytes_per_unit;
    let mut lines = heap::of_process(process, scale);
    lines.retain(|line| {
        let slope = line.judgement.slope;
        let grows = line.grows() && slope >= judged.least;
        let fits = nothing_else || slope <= MOST * open;
        // What a container keeps that is found to grow at the line, its line has allocated.
        let is_told = found.iter().any(|finding| {
            let at =
                |site: &Site| site.line == line.frame.line && files.display(&line.frame.file) == site.file;
            finding.weighs() && MOST * finding.bytes_per_unit() >= slope && finding.sites.iter().any(at)
        });
        grows && fits && !is_told && slope >= OPEN * open
    });
    let keepers = makers::keepers(files, process, found);
    lines.retain(|line| !keepers.iter().any(|keeper| keeper.is_at(files, line)));
    let objects = objects_per_unit(process, scale);
    let is_native = |line: &Line<'_>| line.blocks_per_unit > MORE * objects;
    if lines.iter().any(is_native) {
        lines.retain(is_native);
        let fastest = fastest(lines, LINES);
        let told = |line: &Line<'_>| {
            let found = finding(files, process, scale, line);
            if is_of_layers(line) { suspected(found, scale, line, Advice::PadShapes) } else { found }
        };
        return fastest.iter().map(told).collect();
    }
    // What a container keeps that was found is its matter, as far as that can be.
    lines.retain(|line| !keepers.iter().any(|keeper| keeper.keeps(line)));
    // Objects may hold it, in a way that was not found: the line is all that there is to go on.
    let fastest = fastest(lines, 1);
    let told = |line: &Line<'_>| {
        let found = finding(files, process, scale, line);
        match lengthened(files, line) {
            Some(target) => getting_longer(found, scale, line, target),
            None => suspected(found, scale, line, Advice::FindHolders),
        }
    };
    fastest.iter().map(told).collect()
}

/// What a line `text += more` allocates and what stays, though its blocks do not become more, is its target: a string that
/// gets longer. What is extended where it stands is a container, which would have been seen.
fn lengthened(files: &Files<'_>, line: &Line<'_>) -> Option<String> {
    let source = files.source(&line.frame.file)?;
    let lengthens = |site: &GrowSite| site.kind == GrowKind::AugAdd && !site.container.contains('[');
    let target = source.lines().grows_at(line.frame.line).into_iter().find(lengthens)?.container;
    (line.blocks_per_unit <= ONE_BLOCK).then_some(target)
}

fn getting_longer(found: Observed, scale: Scale, line: &Line<'_>, target: String) -> Observed {
    let rate = Rate::new(line.judgement.slope, scale.verdict_unit());
    Observed {
        cause: Cause::Lengthened { target: target.clone(), rate },
        container: target,
        remedy: Some(Advice::WriteParts.into()),
        ..found
    }
}

/// Is it all allocated in torch's own layers, which keep kernels beside what they return?
fn is_of_layers(line: &Line<'_>) -> bool {
    let inner = |stack: &&HeapStack| {
        stack.frames.first().is_some_and(|frame| frame.file.contains("-packages/torch/nn/"))
    };
    line.stacks.iter().all(inner)
}

/// The lines that grow fastest, about so many: those that sampling cannot tell apart are named together or not at all, but
/// those in the first place.
fn fastest(lines: Vec<Line<'_>>, most: usize) -> Vec<Line<'_>> {
    let mut placed: Vec<(Line<'_>, u32)> = lines.into_iter().map(|line| (line, 0)).collect();
    rank(&mut placed, |(line, _)| line.growth, |(_, rank), place| *rank = place);
    first_places(placed, |(_, rank)| *rank, 1..=most).into_iter().map(|(line, _)| line).collect()
}

/// The line that allocates, where what holds it may be objects that Python knows, or what fills up.
fn suspected(found: Observed, scale: Scale, line: &Line<'_>, advice: Advice) -> Observed {
    let cause = Cause::Retained(Rate::new(line.judgement.slope, scale.verdict_unit()));
    Observed { witness: Witness::Signs, cause, remedy: Some(advice.into()), ..found }
}

/// Is it but the line that allocates, without what holds the memory?
pub(crate) fn is_suspected(finding: &Claim) -> bool {
    finding.class() == LeakClass::NativeGrowth && finding.witness >= Witness::SourcePattern
}

/// Objects of the type of which most more are alive per unit, by the censuses. Blocks that are as many are theirs: what
/// grows then are objects that Python knows, which wait for the collector, or are held in a way that was not found, but
/// no native memory.
fn objects_per_unit(process: &Process<'_>, scale: Scale) -> f64 {
    let mut counts: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for types in &process.types {
        let boundary = process.boundary(types.boundary);
        let Some(at) = boundary.and_then(|boundary| units::interpolated(process, scale, boundary)) else {
            continue;
        };
        for row in &types.rows {
            counts.entry(&row.name).or_default().push((at, row.count as f64));
        }
    }
    // The first census may see what the first steps alone have made.
    let slope = |counts: &Vec<(f64, f64)>| match (counts.get(1), counts.last()) {
        (Some(first), Some(last)) if last.0 > first.0 => (last.1 - first.1) / (last.0 - first.0),
        _ => 0.0,
    };
    counts.values().map(slope).fold(0.0, f64::max)
}

/// Do some of these lines allocate more blocks that stay than there are more objects?
pub(crate) fn are_native(process: &Process<'_>, scale: Scale, lines: &[Line<'_>]) -> bool {
    let objects = objects_per_unit(process, scale);
    lines.iter().any(|line| line.blocks_per_unit > MORE * objects)
}

fn finding(files: &Files<'_>, process: &Process<'_>, scale: Scale, line: &Line<'_>) -> Observed {
    let Judgement { slope, .. } = line.judgement;
    // Of what grows; sampling alone would leave room below zero.
    let interval = line.growth.interval().map(|bound| bound.max(0.0));
    let HeapFrame { file, line: number, function } = line.frame;
    let site = site(files, file, *number, function);
    let growth = Growth { interval: Some(interval), ..scale.growth(Series::InUse, slope) };
    let cause = Cause::NeverFreed(growth.rate());
    Observed {
        witness: Witness::HeapLine,
        standing: Standing::Whole,
        container: site.text.clone(),
        sites: std::iter::once(site).chain(inner_site(files, process, line)).collect(),
        chain: callers(files, process, line),
        process: process.reference(),
        growth: Some(growth),
        evidence: vec![seen(line)],
        ..Observed::of(cause)
    }
}

/// What the heap profile has of a line.
pub(crate) fn seen(line: &Line<'_>) -> Evidence {
    Evidence::HeapProfile { live_bytes: line.live.bytes as u64, margin_bytes: line.live.margin() as u64 }
}

/// The statement at a line that allocates.
pub(crate) fn site(files: &Files<'_>, file: &str, number: u32, function: &str) -> Site {
    let spot =
        files.source(file).and_then(|source| source.lines().statement_at(number)).map(|found| found.spot);
    let display = files.display(file);
    spot.map_or_else(
        || Site {
            role: SiteRole::Grows,
            file: display.clone(),
            line: number,
            end_line: number,
            column: 1,
            function: function.to_owned(),
            text: String::new(),
            cell: None,
        },
        |spot| spot.site(&display, SiteRole::Grows),
    )
}

/// The stack of a line that holds most.
fn heaviest<'a>(process: &Process<'_>, line: &Line<'a>) -> Option<&'a HeapStack> {
    let last =
        |stack: &HeapStack| heap::held(process, &[stack.id]).last().map_or(0.0, |held| held.live.bytes);
    let most = line.stacks.iter().map(|stack| (*stack, last(stack))).max_by(|a, b| a.1.total_cmp(&b.1));
    most.map(|(stack, _)| stack)
}

/// The line of a library that allocates, where the program's own line calls it.
fn inner_site(files: &Files<'_>, process: &Process<'_>, line: &Line<'_>) -> Option<Site> {
    let inner = heaviest(process, line)?.frames.first().filter(|inner| *inner != line.frame)?;
    let is_library = is_of_user(&line.frame.file) && !is_of_user(&inner.file) && !inner.file.starts_with('<');
    let at = || site(files, &inner.file, inner.line, &inner.function);
    is_library.then(|| Site { role: SiteRole::Allocates, ..at() })
}

/// How the program came there, by the stack that holds most.
fn callers(files: &Files<'_>, process: &Process<'_>, line: &Line<'_>) -> Vec<Link> {
    let Some(stack) = heaviest(process, line) else { return Vec::new() };
    let at = stack.frames.iter().position(|frame| frame == line.frame).unwrap_or(0);
    let inner = stack.frames.get(at.wrapping_sub(1));
    let step = |frame: &HeapFrame, event: LinkEvent| {
        let statement = files.source(&frame.file).and_then(|source| source.lines().statement_at(frame.line));
        let text = statement.map_or_else(|| frame.function.clone(), |statement| statement.spot.text);
        Link { file: files.display(&frame.file), line: frame.line, text, event }
    };
    let inner = inner.map(|frame| step(frame, LinkEvent::Allocates));
    let outer = stack.frames.iter().skip(at + 1).filter(|frame| is_of_user(&frame.file)).take(3);
    inner.into_iter().chain(outer.map(|frame| step(frame, LinkEvent::Calls))).collect()
}
