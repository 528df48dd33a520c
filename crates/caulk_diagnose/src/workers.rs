//! Workers of loaders and pools: what grows in one grows in its siblings, which do the same work and are not looked into
//! at the same cost.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::{LeakClass, Role, Series, State};
use caulk_growth::Point;

use crate::baselines::Baselines;
use crate::claim::{Claim, Relation, Relations, of_each, settle};
use crate::held::Held;
use crate::noted::is_noted;
use crate::part::Part;
use crate::process::Process;
use crate::units;

/// Growth of a sibling that is taken for the same, as parts of what is explained.
const ALIKE: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// The process that this one works for.
pub(crate) fn master(process: &Process<'_>) -> Option<u32> {
    let of = process.boundaries.iter().map(|boundary| boundary.of).find(|of| *of != 0);
    of.filter(|_| process.record.role == Role::Worker)
}

/// Gives leaks of workers their class, and lets what was found in one speak for its siblings.
pub(crate) fn join(parts: &mut [Part<'_>]) {
    for part in parts.iter_mut().filter(|part| master(part.process).is_some()) {
        part.findings = settle(std::mem::take(&mut part.findings), of_worker);
        part.traced = settle(std::mem::take(&mut part.traced), of_worker);
    }
    let masters: BTreeSet<u32> = parts.iter().filter_map(|part| master(part.process)).collect();
    for of in masters {
        judge_together(parts, of);
    }
    for index in 0..parts.len() {
        if let Some(found) = explained_by_sibling(parts, index) {
            let part = &mut parts[index];
            part.findings.retain(|finding| !is_open(finding));
            part.findings.extend(found);
        }
    }
    tell_once(parts);
}

/// Lets what the workers of a process hold together speak for each whose own growth is open: a pool's tasks go now to one,
/// now to another, and to the one that is looked into, which pauses, less and less.
fn judge_together(parts: &mut [Part<'_>], of: u32) {
    let pool = |part: &&Part<'_>| master(part.process) == Some(of);
    let mut sums: BTreeMap<u64, (Point, usize)> = BTreeMap::new();
    for part in parts.iter().filter(pool) {
        let Some(scale) = part.judged.scale else { return };
        let held = Held::of(part.process, scale);
        for Point { at, value } in units::points(part.process, scale, |boundary| held.at(boundary)) {
            let (sum, count) = sums.entry(at.to_bits()).or_insert((Point { at, value: 0.0 }, 0));
            sum.value += value;
            *count += 1;
        }
    }
    let count = parts.iter().filter(pool).count();
    let points = sums.into_values().filter(|(_, seen)| *seen == count).map(|(sum, _)| sum).collect();
    let scale = parts.iter().find(pool).and_then(|part| part.judged.scale);
    let grows = scale.is_some_and(|scale| Baselines::of(points, scale).judge().state == State::Grows);
    if count < 2 || !grows {
        return;
    }
    for part in parts.iter_mut().filter(|part| master(part.process) == Some(of) && !part.judged.fills) {
        let least = part.judged.least;
        let in_use = part.judged.verdicts.iter_mut().find(|verdict| verdict.series == Series::InUse);
        let open = |state| state == State::Undecided;
        let Some(verdict) = in_use.filter(|v| open(v.state) && v.bytes_per_unit >= least) else { continue };
        verdict.state = State::Grows;
        verdict.more_needed = None;
        verdict.text =
            "rises unevenly; what all its siblings and it hold together rises without slowing".into();
        let weighs = |claim: &Claim| is_kept(claim) && claim.bytes_per_unit() >= least && !is_noted(claim);
        part.findings = settle(std::mem::take(&mut part.findings), |claims| {
            of_each(claims, weighs, |_| Relation::OfPool)
        });
    }
}

/// Something that Python holds, at its line or under its name.
fn is_kept(finding: &Claim) -> bool {
    finding.growth.is_some() && !finding.holder.is_empty() && !is_open(finding)
}

/// Growth of which no container is known.
fn is_open(finding: &Claim) -> bool {
    matches!(finding.class(), LeakClass::NativeGrowth | LeakClass::ReferenceCycle)
}

fn of_worker<'a>(claims: &[Claim]) -> Relations<'a> {
    of_each(claims, is_kept, |claim| Relation::InWorker(claim.class()))
}

/// What explains the growth of a worker in which no container was found, from one that grows alike.
fn explained_by_sibling(parts: &[Part<'_>], index: usize) -> Option<Vec<Claim>> {
    let own = &parts[index];
    let master = master(own.process)?;
    let weighs = |finding: &&Claim| finding.weighs() && is_kept(finding);
    let rate = own.rate().filter(|_| !own.findings.iter().any(|finding| weighs(&finding)))?;
    let siblings = || parts.iter().filter(|other| self::master(other.process) == Some(master));
    let alike = siblings().find_map(|other| {
        let share = rate / other.rate()?;
        let found: Vec<Claim> = other.findings.iter().filter(weighs).cloned().collect();
        let alike = !found.is_empty() && ALIKE.contains(&share);
        let here = |claim: Claim| claim.in_sibling(own.process.reference(), share, None);
        alike.then(|| found.into_iter().map(here).collect())
    });
    alike.or_else(|| {
        let open = own.findings.iter().find(|finding| is_open(finding))?;
        let same = |finding: &&Claim| is_kept(finding) && function(finding) == function(open);
        let found = siblings().find_map(|other| other.findings.iter().chain(&other.traced).find(same))?;
        Some(vec![of_same_function(found, open, own.process)?])
    })
}

/// The function that a finding blames, and its file.
fn function(finding: &Claim) -> Option<(&str, &str)> {
    finding.sites.first().map(|site| (site.file.as_str(), site.function.as_str()))
}

/// What a sibling's container says of growth that begins in the same function. A pool hands out its tasks as it comes:
/// one process may have done many times the work of another, and the one that is looked into, which pauses, does less and
/// less: its container has grown, but need not be found to go on.
fn of_same_function(found: &Claim, open: &Claim, process: &Process<'_>) -> Option<Claim> {
    let there = found.growth.as_ref().map(|growth| growth.bytes_per_unit).filter(|bytes| *bytes > 0.0)?;
    let share = open.growth.as_ref()?.bytes_per_unit / there;
    Some(found.clone().in_sibling(process.reference(), share, Some(open)))
}

/// A worker that is made anew every epoch is many processes, one after the other: the one that was seen longest speaks.
fn tell_once(parts: &mut [Part<'_>]) {
    let mut told: BTreeSet<u32> = BTreeSet::new();
    let mut order: Vec<usize> = (0..parts.len()).filter(|at| master(parts[*at].process).is_some()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(parts[*at].process.boundaries.len()));
    for at in order {
        parts[at].told = told.insert(parts[at].process.record.index);
    }
}

impl Part<'_> {
    /// Growth of the bytes in use per unit, where they grow or may well do.
    fn rate(&self) -> Option<f64> {
        let in_use = self.judged.in_use()?;
        let grows = matches!(in_use.state, State::Grows | State::Undecided);
        Some(in_use.bytes_per_unit).filter(|rate| grows && *rate >= self.judged.least)
    }
}
