//! Resident memory that rises while what is in use does not: pages that an allocator keeps around blocks that stay. No leak.
//! Where a little stays for certain and it is open whether it goes on, that is what keeps far more: the heap is in pieces.

use caulk_core::wire::{Boundary, Trim};
use caulk_core::{Advice, Between, Cause, Evidence, Rate, Remark, Remedy, Series, State};

use crate::baselines::Baselines;
use crate::claim::{Claim, Observed, Standing, Witness};
use crate::judged::Judged;
use crate::process::Process;
use crate::units::{self, Scale};

/// Part of the growth of resident memory that an allocator's free blocks must account for.
const PART: f64 = 0.5;

/// Who keeps what has been freed.
struct Keeper {
    name: &'static str,
    /// Bytes that it has for blocks, used and free.
    has: fn(&Boundary) -> u64,
    /// ... of which free, in bytes.
    free: fn(&Boundary) -> u64,
    /// What to do about it, where that is not the class's own.
    remedy: Option<Advice>,
}

const KEEPERS: [Keeper; 2] = [
    Keeper { name: "malloc", has: |b| b.malloc_heap_bytes, free: |b| b.malloc_free_bytes, remedy: None },
    Keeper {
        name: "pymalloc",
        has: |b| b.arena_bytes,
        free: |b| b.arena_bytes.saturating_sub(b.small_bytes),
        remedy: Some(Advice::FewerObjects),
    },
];

/// What the allocators keep, where it grows though the bytes in use do not, or surely rise by far less. `found`: what was
/// found to grow.
pub(crate) fn finding(process: &Process<'_>, judged: &Judged, found: &[Claim]) -> Option<Observed> {
    let scale = judged.scale?;
    let resident = judged.series(Series::Rss).filter(|verdict| verdict.state == State::Grows)?;
    let in_use = judged.in_use()?;
    let stays = match in_use.state {
        State::Flat | State::Plateaus | State::Sawtooth => false,
        State::Undecided => in_use.interval.is_some_and(|[low, _]| low > 0.0),
        State::Grows | State::GrowsWithinEpoch => return None,
    };
    let (rate, keeper) = fastest(process, scale);
    let is_open = in_use.state == State::Undecided && !stays;
    if is_open || rate < PART * resident.bytes_per_unit {
        return None;
    }
    let among = found.iter().filter(|_| stays).filter(|finding| !finding.sites.is_empty());
    let among = among.max_by(|a, b| bytes(a).total_cmp(&bytes(b))).filter(|finding| bytes(finding) > 0.0);
    let between = match among {
        Some(among) => Between::Container(among.container.clone()),
        None if stays => Between::Blocks,
        None => Between::Class,
    };
    let is_told = found.iter().any(Claim::weighs);
    let cause = Cause::KeptPages {
        allocator: keeper.name,
        rate: Rate::new(rate, scale.verdict_unit()),
        free_of: free_of(process, &keeper),
        between,
    };
    let observed = Observed::of(cause);
    Some(Observed {
        witness: Witness::Exact,
        standing: if stays && !is_told { Standing::Whole } else { Standing::Light },
        sites: among.map_or_else(Vec::new, |among| among.sites.clone()),
        process: process.reference(),
        growth: Some(scale.growth(Series::Rss, rate)),
        evidence: evidence(process),
        remedy: keeper.remedy.map(Remedy::from).or_else(|| observed.remedy.clone()),
        ..observed
    })
}

/// Bytes in use that a claim gains per unit.
fn bytes(claim: &Claim) -> f64 {
    claim.bytes_in(Series::InUse)
}

/// Growth per unit of what the allocators keep free.
pub(crate) fn rate(process: &Process<'_>, scale: Scale) -> f64 {
    fastest(process, scale).0
}

/// The allocator that keeps most more, and how fast.
fn fastest(process: &Process<'_>, scale: Scale) -> (f64, Keeper) {
    let [first, second] = KEEPERS.map(|keeper| (slope(process, scale, keeper.free), keeper));
    if second.0 > first.0 { second } else { first }
}

/// Growth per unit of one of malloc's figures.
fn slope(process: &Process<'_>, scale: Scale, value: fn(&Boundary) -> u64) -> f64 {
    let points = units::points(process, scale, |boundary| Some(value(boundary) as f64));
    Baselines::of(points, scale).judge().slope
}

/// The last reading of what an allocator has.
fn last<'a>(process: &Process<'a>, has: fn(&Boundary) -> u64) -> Option<&'a Boundary> {
    process.boundaries.iter().rev().find(|boundary| has(boundary) > 0).copied()
}

/// Free bytes and all bytes of an allocator at the last reading.
fn free_of(process: &Process<'_>, keeper: &Keeper) -> Option<[u64; 2]> {
    last(process, keeper.has).map(|last| [(keeper.free)(last), (keeper.has)(last)])
}

fn evidence(process: &Process<'_>) -> Vec<Evidence> {
    let malloc = last(process, |boundary| boundary.malloc_heap_bytes).map(|last| Evidence::Malloc {
        heap_bytes: last.malloc_heap_bytes,
        free_bytes: last.malloc_free_bytes,
        top_bytes: last.malloc_top_bytes,
        threads: last.threads,
    });
    let arenas = last(process, |boundary| boundary.arena_bytes).map(|last| Evidence::Arenas {
        arena_bytes: last.arena_bytes,
        small_bytes: last.small_bytes,
        blocks: last.small_blocks,
    });
    let trimmed = process.trims.last().map(|trim| Evidence::Trimmed {
        before_bytes: trim.before_bytes,
        after_bytes: trim.after_bytes,
        milliseconds: trim.cost_ns as f64 / 1e6,
    });
    malloc.into_iter().chain(arenas).chain(trimmed).collect()
}

/// What malloc gave back when it was asked to, if no finding has it.
pub(crate) fn remark(process: &Process<'_>, claims: &[Claim]) -> Option<Remark> {
    if claims.iter().any(|claim| matches!(claim.cause, Cause::KeptPages { .. })) {
        return None;
    }
    let gained = |trim: &&&Trim| trim.before_bytes.saturating_sub(trim.after_bytes);
    let most = process.trims.iter().max_by_key(gained)?;
    Some(Remark::AllocatorKeeps {
        before_bytes: most.before_bytes,
        after_bytes: most.after_bytes,
        milliseconds: most.cost_ns as f64 / 1e6,
        times: process.trims.len() as u64,
    })
}
