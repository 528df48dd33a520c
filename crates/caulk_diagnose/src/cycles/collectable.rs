//! Objects that refer to each other and that the garbage collector would free, if it came by: it is switched off, or
//! counts too few objects to look at the old ones.

use caulk_core::wire::{CodePlace, CycleLink, Garbage};
use caulk_core::{
    Advice, Cause, Collector, Evidence, Growth, Pinned, Series, Site, SiteRole, State, Through,
};
use caulk_growth::{Judgement, Point, judge_counts};
use caulk_python::GrowSite;

use crate::claim::{Observed, Standing, Witness};
use crate::files::Files;
use crate::heap::is_of_user;
use crate::judged::Judged;
use crate::process::Process;
use crate::units::{self, Scale};

/// Part of the open growth that must wait for the collector.
const PART: f64 = 0.25;
/// Garbage that is worth a word though memory does not grow: in bytes, and as a share of the bytes in use.
const MUCH: u64 = 64 << 20;
const SHARE: f64 = 0.125;
/// What may pile up until the collector comes by, in bytes: figures that were closed, a canvas each, do.
const PILE: f64 = (256 << 20) as f64;
/// Objects until the youngest are looked at, from which on the collector has been told to come seldom (CPython's own
/// numbers are 700 to 2000).
const SELDOM: u64 = 5000;
/// Old objects are looked at when so many more have been made for each that lived through the last look (CPython,
/// Modules/gcmodule.c, `long_lived_pending`).
const QUARTER: f64 = 0.25;
/// ... by which factor they may be missed: what is garbage is counted, and not all that is made.
const LATE: f64 = 1.5;
/// Types that are named.
const TYPES: usize = 4;

/// Cycles that account for a good part of growth of which so much is `open`.
pub(super) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    open: f64,
) -> Option<Observed> {
    let scale = judged.scale?;
    let (judgement, slope) = growth_of(process, scale, |garbage| garbage.bytes)?;
    let last = process.garbage.last()?;
    let grows = matches!(judgement.state, State::Grows | State::Undecided);
    if !grows || slope < PART * open {
        return None;
    }
    let bytes = slope.min(open);
    let elements = growth_of(process, scale, |garbage| garbage.objects).map_or(0.0, |(_, slope)| slope);
    let growth = Growth {
        elements_per_epoch: scale.per_epoch(elements),
        elements_per_unit: elements,
        elements: last.objects,
        ..scale.growth(Series::InUse, bytes)
    };
    let standing = if last.tensor_bytes > 0 { Standing::Whole } else { Standing::Partial };
    let cause = Cause::Cycles { through: through(last), rate: growth.rate(), collector: collector(last) };
    Some(Observed { growth: Some(growth), standing, ..about(files, process, last, cause) })
}

/// Boundaries until the collector comes by, where it will before what waits for it weighs much; `None` where it is
/// switched off or counts too few objects for that.
pub(crate) fn until_collected(process: &Process<'_>, judged: &Judged) -> Option<u32> {
    let (scale, in_use, last) = (judged.scale?, judged.in_use()?, process.garbage.last()?);
    let (_, made) = growth_of(process, scale, |garbage| garbage.objects).filter(|(_, made)| *made > 0.0)?;
    let comes = last.enabled && last.frozen == 0 && (1..=SELDOM).contains(&last.threshold);
    let objects =
        process.boundaries.iter().rev().find(|boundary| boundary.census_objects > 0)?.census_objects;
    let most = QUARTER * objects as f64;
    let small = in_use.bytes_per_unit / made * most < PILE;
    // Where far more wait, something else keeps it away.
    let late = last.objects as f64 > LATE * most;
    let left = (most - last.objects as f64).max(0.0) / made / in_use.boundary_units;
    (comes && small && !late).then_some((left.ceil() as u32).max(1))
}

/// Much that waits for the collector at every look, in a process that does not grow.
pub(crate) fn waiting(files: &Files<'_>, process: &Process<'_>, judged: &Judged) -> Option<Observed> {
    let in_use = judged.in_use()?;
    let most = process.garbage.iter().max_by_key(|garbage| garbage.bytes)?;
    let looks = process.garbage.iter().filter(|garbage| garbage.bytes > MUCH).count();
    if looks < 2 || (most.bytes as f64) < SHARE * in_use.last {
        return None;
    }
    Some(about(files, process, most, Cause::Waiting { through: through(most), bytes: most.bytes }))
}

/// How the garbage moves from census to census.
fn growth_of(
    process: &Process<'_>,
    scale: Scale,
    value: impl Fn(&Garbage) -> u64,
) -> Option<(Judgement, f64)> {
    let point = |garbage: &&Garbage| {
        let at = units::interpolated(process, scale, process.boundary(garbage.boundary)?)?;
        Some(Point { at, value: value(garbage) as f64 })
    };
    let points: Vec<Point> = process.garbage.iter().filter_map(point).collect();
    let (first, last) = (points.first()?, points.last()?);
    // Switched off, it lets go of nothing: two looks are enough.
    let enough = if process.garbage.last()?.enabled { 3 } else { 2 };
    if points.len() < enough || last.at <= first.at {
        return None;
    }
    let judgement = judge_counts(&points, scale.has_equal_phases());
    // Censuses at steps lie close together: the whole rise over the whole time says more than a median of rates.
    let mean = (last.value - first.value) / (last.at - first.at);
    Some((judgement, mean))
}

/// What is known of the cycles, without how they grow.
fn about(files: &Files<'_>, process: &Process<'_>, garbage: &Garbage, cause: Cause) -> Observed {
    let closing = closing(files, garbage);
    let (mut sites, container, certain) = match closing.as_slice() {
        [] => (in_code(files, garbage).into_iter().collect(), String::new(), false),
        [(file, first), others @ ..] => {
            let site = first.spot.site(&files.display(file), SiteRole::Grows);
            (vec![site], first.container.clone(), others.is_empty())
        }
    };
    let holder = garbage.links.first().map_or_else(String::new, |link| {
        format!("{}.{}", link.owner_type.rsplit('.').next().unwrap_or_default(), link.attribute)
    });
    if !garbage.enabled {
        sites.extend(switched_off(files, process));
    }
    let observed = Observed::of(cause);
    Observed {
        witness: if certain { Witness::Exact } else { Witness::OnlyLine },
        sites,
        container: if container.is_empty() { holder.clone() } else { container },
        holder,
        process: process.reference(),
        pinned: (garbage.tensor_bytes > 0)
            .then(|| Pinned { tensor_bytes: garbage.tensor_bytes, ..Pinned::default() }),
        evidence: evidence(garbage),
        remedy: if garbage.frozen > 0 { Some(Advice::Unfreeze.into()) } else { observed.remedy.clone() },
        ..observed
    }
}

/// `ctx` of a `torch.autograd.Function` is the graph's node.
fn through(garbage: &Garbage) -> Through {
    let is_context = |link: &CycleLink| link.owner_type.starts_with("torch.autograd.function.");
    if garbage.links.first().is_some_and(is_context) { Through::Context } else { Through::Objects }
}

/// Why the collector does not come by.
fn collector(garbage: &Garbage) -> Collector {
    match garbage.threshold {
        _ if !garbage.enabled => Collector::Off,
        1..=SELDOM => Collector::CountsObjects,
        threshold => Collector::Seldom(threshold),
    }
}

fn evidence(garbage: &Garbage) -> Vec<Evidence> {
    let types = garbage.types.iter().take(TYPES).map(|row| (row.name.clone(), row.count)).collect();
    let mut evidence = vec![Evidence::Garbage {
        objects: garbage.objects,
        bytes: garbage.bytes,
        tensor_bytes: garbage.tensor_bytes,
        types,
        truncated: garbage.truncated,
    }];
    evidence.extend(garbage.links.iter().take(TYPES).map(|link| Evidence::Cycle {
        attribute: link.attribute.clone(),
        owner_type: link.owner_type.clone(),
        target_type: link.target_type.clone(),
    }));
    if garbage.frozen > 0 {
        evidence.push(Evidence::Collector { frozen: garbage.frozen });
    }
    evidence
}

/// Statements that set an attribute by which the cycles are closed: those of the attribute that refers straight to an
/// object, not through a container, and of these the likeliest.
fn closing(files: &Files<'_>, garbage: &Garbage) -> Vec<(String, GrowSite)> {
    let direct = |link: &&CycleLink| !is_container(&link.target_type);
    let (direct, through): (Vec<_>, Vec<_>) = garbage.links.iter().partition(direct);
    let of = |links: &[&CycleLink]| {
        let mut found: Vec<(String, GrowSite)> = Vec::new();
        for link in links {
            let Some(source) = files.source(&link.file) else { continue };
            let mut sites = source.lines().grow_sites(&link.attribute);
            sites.retain(sets_something);
            // Variables of the same name are something else.
            let is_attribute = |site: &GrowSite| site.container.contains('.');
            if sites.iter().any(is_attribute) {
                sites.retain(is_attribute);
            }
            found.extend(sites.into_iter().map(|site| (link.file.clone(), site)));
        }
        found
    };
    let mut found = of(&direct);
    if found.is_empty() {
        found = of(&through);
    }
    // A library's own cycles are there in any case: where the program makes some, too, these are what it can change.
    if found.iter().any(|(file, _)| is_of_user(file)) {
        found.retain(|(file, _)| is_of_user(file));
    }
    let best = found.iter().map(|(_, site)| rank(site)).min();
    found.retain(|(_, site)| Some(rank(site)) == best);
    found
}

/// What hands out `self` closes a cycle, whether as it is or to something that is made with it.
fn rank(site: &GrowSite) -> u8 {
    match &site.value {
        Some(value) if value.text == "self" => 0,
        Some(value) if value.names.iter().any(|name| name == "self") => 1,
        _ => 2,
    }
}

/// Is an object stored, and not `None` or an empty container?
fn sets_something(site: &GrowSite) -> bool {
    const EMPTY: [&str; 6] = ["None", "[]", "{}", "()", "list()", "dict()"];
    !site.element && site.value.as_ref().is_some_and(|value| !EMPTY.contains(&value.text.as_str()))
}

fn is_container(type_name: &str) -> bool {
    matches!(type_name, "list" | "dict" | "set" | "tuple" | "collections.deque" | "collections.OrderedDict")
}

/// The function or frame that is part of a cycle.
fn in_code(files: &Files<'_>, garbage: &Garbage) -> Option<Site> {
    let CodePlace { file, line, .. } = garbage.places.first()?;
    let statement = files.source(file)?.lines().statement_at(*line)?;
    Some(statement.spot.site(&files.display(file), SiteRole::Grows))
}

/// Where the collector was switched off.
fn switched_off(files: &Files<'_>, process: &Process<'_>) -> Option<Site> {
    process.files().into_iter().find_map(|file| {
        let calls = files.source(file)?.lines().calls("disable");
        let call = calls.into_iter().find(|call| call.callee == "gc.disable")?;
        Some(call.spot.site(&files.display(file), SiteRole::ReleasesMissing))
    })
}
