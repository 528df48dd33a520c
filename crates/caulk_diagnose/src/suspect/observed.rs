//! What was observed of the things that one line grows: the cause, the evidence, what they pin, what to change.

use caulk_core::wire::{ContainerKind, Contents, Holder, StepKind, Trait};
use caulk_core::{
    Advice, Cause, ElementFacts, Evidence, Group, Grower, Grows, Growth, LeakClass, LibraryHolder, Pinned,
    Rate as PerUnit, Remedy, Series, Site, State, Why,
};

use super::item::{Suspect, adding, bytes, counts_bytes};
use crate::claim::{Observed, Standing};
use crate::class::value_share;
use crate::files::Files;
use crate::growth::counts_often;
use crate::judged::Judged;
use crate::place::{is_at_exit, is_of_drawing, is_of_optimizer, is_of_pyplot, is_tee};
use crate::process::Process;
use crate::units::Scale;
use crate::{pinned, remedy};

/// Resident bytes for one byte of its own from which on the pages are told apart.
const PAGES_TOLD: f64 = 1.1;

/// One line's, or one cause's, as a finding: `cost` is what one byte of it costs the machine.
pub(super) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    scale: Scale,
    group: &[Suspect<'_>],
    cost: f64,
) -> Observed {
    let adding = adding(group);
    let first = adding[0];
    let own = bytes(group);
    let bytes = own * cost;
    // What counts bytes has no elements to tell of.
    let counted: &[&Suspect<'_>] = if counts_bytes(first.kind) { &[] } else { &adding };
    let elements = counted.iter().map(|suspect| suspect.rate.elements_per_unit).sum();
    let intervals: Option<Vec<[f64; 2]>> = adding.iter().map(|suspect| suspect.rate.interval).collect();
    let added = |sum: [f64; 2], one: &[f64; 2]| [sum[0] + cost * one[0], sum[1] + cost * one[1]];
    let interval = intervals.map(|intervals| intervals.iter().fold([0.0, 0.0], added));
    let growth = Growth {
        in_use_per_unit: (bytes > PAGES_TOLD * own).then_some(own),
        elements_per_epoch: scale.per_epoch(elements),
        elements_per_unit: elements,
        interval,
        elements: counted.iter().map(|suspect| suspect.rate.elements).sum(),
        ..scale.growth(first.series, bytes)
    };
    let sites: Vec<Site> = first.located.as_ref().map_or_else(Vec::new, |located| located.sites(files));
    let container = first.container();
    let name = first.located.as_ref().map_or(first.holder.name.as_str(), |located| &located.name);
    let chain = first.located.as_ref().map_or_else(Vec::new, |located| located.chain(files));
    let twins = first.located.as_ref().map_or_else(Vec::new, |located| located.twins(files));
    let all_fill = group.iter().all(|suspect| suspect.units_to_fill().is_some());
    let end = ends(first).filter(|_| all_fill);
    let why = beyond_class(first).map(|(why, _)| why).or(end).unwrap_or(Why::Class);
    let (holder, kind, contents) = (first.holder, first.kind, first.contents);
    let growing = remedy::Growing { holder, kind, contents, located: first.located.as_ref() };
    let remedy = match (beyond_class(first), end) {
        (Some((_, change)), _) => change.into(),
        (None, Some(_)) if first.class().group() != Group::Graph => Advice::Room.into(),
        (None, _) => remedy::of_kind(first.class(), growing, name),
    };
    let remedy = Remedy { values: without_graphs(first, &growth), ..remedy };
    let cause = Cause::Grows(cause(first, &container, adding.len() - 1, &growth, why));
    Observed {
        witness: first.witness,
        standing: group.iter().map(|suspect| suspect.standing).max().unwrap_or(Standing::Light),
        heavy: group.iter().any(|suspect| suspect.contents.is_none() || suspect.is_heavy()),
        sites,
        container,
        holder: first.holder.expression.clone(),
        holder_path: path(first.holder, first.kind),
        chain,
        process: process.reference(),
        pinned: pinned(files, process, group),
        evidence: evidence(judged, group, &growth),
        remedy: Some(remedy),
        twins,
        growth: Some(growth),
        ..Observed::of(cause)
    }
}

/// Share of what a container gains from which on it is told what stays of it without graphs.
const MUCH_STAYS: f64 = 0.25;

/// How fast a container still grows if its elements are stored without their graphs.
fn without_graphs(suspect: &Suspect<'_>, growth: &Growth) -> Option<PerUnit> {
    let contents = suspect.contents.filter(|_| suspect.class().group() == Group::Graph)?;
    let share = value_share(contents);
    let stays = suspect.kind != ContainerKind::Graph && share >= MUCH_STAYS;
    let all = growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit);
    stays.then(|| PerUnit::new(share * all, growth.unit))
}

/// Where its growth ends.
fn ends(suspect: &Suspect<'_>) -> Option<Why> {
    Some(Why::Fills { most: suspect.fills?, bytes: suspect.bytes_when_full().map(|bytes| bytes as u64) })
}

/// Why it grows, and what to do about it, where the class says something else of others.
fn beyond_class(suspect: &Suspect<'_>) -> Option<(Why, Advice)> {
    let (holder, class) = (suspect.holder, suspect.class());
    // A figure that is made at the line is pyplot's, whoever else keeps it.
    let made_here = || {
        let located = suspect.located.as_ref();
        located.is_some_and(|located| located.source.lines().close_figure_fix(located.spot.line).is_some())
    };
    if is_of_optimizer(holder) {
        Some((Why::MoreParameters, Advice::FewerParameters))
    } else if is_at_exit(holder) {
        Some((Why::Class, Advice::FewerAtExit))
    } else if is_tee(holder) {
        Some((Why::Lags, Advice::Release(LibraryHolder::Teed, holder.expression.clone())))
    } else if class != LeakClass::FigureNotClosed {
        None
    } else if is_of_drawing(holder) {
        Some((Why::MoreArtists, Advice::PiledArtists))
    } else if !is_of_pyplot(holder) && !made_here() {
        Some((Why::MoreFigures, Advice::KeptFigures))
    } else {
        None
    }
}

/// `others`: containers that the same line grows.
fn cause(suspect: &Suspect<'_>, container: &str, others: usize, growth: &Growth, why: Why) -> Grows {
    let grower = match suspect.kind {
        ContainerKind::Graph
        | ContainerKind::Tensor
        | ContainerKind::Buffer
        | ContainerKind::LruCache
        | ContainerKind::Chain => Grower::Kind(suspect.kind),
        _ if is_of_drawing(suspect.holder) && suspect.located.is_some() => Grower::Drawn,
        _ if is_at_exit(suspect.holder) => Grower::AtExit,
        kind => Grower::Kind(kind),
    };
    Grows {
        class: suspect.class(),
        grower,
        container: container.to_owned(),
        link: suspect.link().filter(|_| suspect.kind == ContainerKind::Chain).map(str::to_owned),
        others,
        rate: PerUnit::new(growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit), growth.unit),
        elements: growth.elements_per_unit,
        why,
    }
}

/// The holder path in words, as the JSON contract shows it.
pub(crate) fn path(holder: &Holder, kind: ContainerKind) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    for step in &holder.path {
        let text = match step.kind {
            StepKind::Module => format!("module {}", step.name),
            StepKind::Function => format!("function {}()", step.name),
            StepKind::Local => format!("local {}", step.name),
            StepKind::Attribute => format!("attribute {}", step.name),
            StepKind::ClassAttribute => format!("class attribute {}", step.name),
            StepKind::Global => format!("global {}", step.name),
            StepKind::Key => format!("key [{}]", step.name),
            StepKind::Index => format!("index [{}]", step.name),
            StepKind::Closure => format!("closure variable {}", step.name),
            StepKind::Default => format!("default argument {}", step.name),
            StepKind::Internal => step.name.clone(),
            StepKind::Thread => format!("thread {}", step.name),
            StepKind::Native => "held from C".into(),
        };
        match (path.last_mut(), step.kind) {
            // "function main() local trainer" reads as one step.
            (Some(last), StepKind::Local) if last.starts_with("function ") => {
                last.push(' ');
                last.push_str(&text);
            }
            _ => path.push(text),
        }
    }
    path.push(kind.as_str().to_owned());
    path
}

fn pinned(files: &Files<'_>, process: &Process<'_>, group: &[Suspect<'_>]) -> Option<Pinned> {
    // What elements share is counted once, or not at all.
    let counts = |suspect: &&Suspect<'_>| {
        let open = suspect.holds(&Trait::Borrowed) && suspect.beside.is_some();
        !open && (!suspect.shares || suspect.contents.is_some_and(counts_often))
    };
    let parts = group.iter().filter(counts).filter_map(|suspect| {
        let last = suspect.contents?;
        // There may have been no time for all of its graphs the last time; counted once, they tell more than a sample does.
        let looks = process.contents.get(&last.id).map_or(&[][..], Vec::as_slice);
        let contents = looks.iter().rev().find(|look| look.walked > 0).copied().unwrap_or(last);
        let lengths = process.lengths.get(&contents.id).map_or(&[][..], Vec::as_slice);
        let then = lengths.iter().rev().find(|length| length.boundary <= contents.boundary);
        let elements = suspect.rate.elements;
        let elements_then = then.map_or(elements, |length| length.len);
        Some(pinned::Part { kind: suspect.kind, contents, elements, elements_then })
    });
    pinned::of(files, process, parts)
}

fn evidence(judged: &Judged, group: &[Suspect<'_>], growth: &Growth) -> Vec<Evidence> {
    let first = &group[0];
    let per_unit = |bytes: f64| PerUnit::new(bytes, growth.unit);
    let mut evidence = Vec::new();
    if let Some(verdict) = judged.series(first.series).filter(|verdict| verdict.state == State::Grows) {
        let rate = per_unit(verdict.bytes_per_unit);
        let units = f64::from(verdict.boundaries) * verdict.boundary_units;
        evidence.push(match first.series {
            Series::Rss => Evidence::Resident { rate, units },
            series => Evidence::BytesInUse { series, rate, units },
        });
    }
    evidence.extend(growth.in_use_per_unit.map(|own| Evidence::OwnBytes { own: per_unit(own) }));
    evidence.extend(group[1..].iter().map(|other| Evidence::HolderPath {
        holder: other.holder.expression.clone(),
        rate: per_unit(other.rate.bytes_per_unit),
    }));
    let (rate, in_bytes) = (&first.rate, counts_bytes(first.kind));
    evidence.push(Evidence::Census {
        first: rate.first,
        last: rate.elements,
        in_bytes,
        boundaries: rate.points,
        judgement: rate.judgement.text.clone(),
    });
    let located = first.located.as_ref();
    evidence.extend(located.and_then(|located| located.traced).map(|(gained, times)| Evidence::ArmedTrace {
        gained,
        in_bytes,
        times: u64::from(times),
    }));
    evidence.extend(located.filter(|located| located.grow.is_some()).map(|located| {
        Evidence::GrowsInSource { statement: located.spot.text.clone(), container: located.container.clone() }
    }));
    // In a web of references nothing dies with an element: then its bytes show nothing.
    let told = |contents: &&Contents| {
        first.kind == ContainerKind::Graph || (contents.bytes_per_element > 0 && !in_bytes)
    };
    evidence.extend(first.contents.filter(told).map(|contents| contents_of(first.kind, contents)));
    evidence.extend(first.beside.clone());
    evidence
}

fn contents_of(kind: ContainerKind, contents: &Contents) -> Evidence {
    let nodes: Vec<(String, u32)> = contents.node_types.iter().take(4).cloned().collect();
    if kind == ContainerKind::Graph {
        return Evidence::Graph {
            nodes: contents.graph_nodes,
            saved_bytes: contents.saved_bytes,
            types: nodes,
            truncated: contents.truncated,
        };
    }
    let shares = counts_often(contents);
    let (shown, held) = (contents.viewed_bytes_per_element, contents.tensor_bytes_per_element);
    Evidence::Contents(ElementFacts {
        types: contents.element_types.iter().take(3).map(|(name, _)| name.clone()).collect(),
        bytes_per_element: contents.bytes_per_element,
        sharing: shares.then_some(contents.sampled),
        truncated: contents.truncated,
        saved_bytes: if shares { contents.saved_bytes } else { contents.saved_bytes_per_element },
        nodes,
        view: (shown > 0 && held > 2 * shown).then_some([shown, held]),
    })
}
