//! Memory that torch's allocators for GPUs keep though no tensor uses it: free blocks in pieces on the device, and a pool of pinned
//! host memory that only grows. No leak: what tensors have does not grow.

use caulk_core::wire::{GpuLedger, GpuRefusal, Message};
use caulk_core::{Advice, Cause, Rate, Recording, Remedy, Series, State};

use crate::baselines::Baselines;
use crate::claim::{Observed, Standing, Witness};
use crate::judged::Judged;
use crate::process::Process;
use crate::units::{self, Scale};

/// Bytes in gaps, and their part of what is reserved, from which on they are worth a word.
const GAPS: u64 = 256 << 20;
const PART: f64 = 0.25;
/// Part of a pool's growth that what is in use must not reach.
const IN_USE: f64 = 0.25;

/// What the allocators of one process keep.
pub(crate) fn findings(recording: &Recording, process: &Process<'_>, judged: &Judged) -> Vec<Observed> {
    [pieces(recording, process, judged), pinned(process, judged)].into_iter().flatten().collect()
}

/// What is reserved on devices, free and in pieces: where it grows though tensors do not, where it is much, or where an allocation failed
/// by it.
fn pieces(recording: &Recording, process: &Process<'_>, judged: &Judged) -> Option<Observed> {
    let last = process.boundaries.iter().rev().find(|boundary| boundary.cuda_reserved_bytes > 0)?;
    let failed = failed(recording, process.record.pid);
    let grows = |series| judged.series(series).filter(|verdict| verdict.state == State::Grows);
    let rising = grows(Series::CudaReserved).filter(|_| grows(Series::CudaAllocated).is_none());
    let (gaps, reserved) = (last.cuda_inactive_bytes, last.cuda_reserved_bytes);
    let much = gaps >= GAPS && gaps as f64 >= PART * reserved as f64;
    if failed.is_none() && rising.is_none() && !much {
        return None;
    }
    let looks = process.ledgers.iter().filter(|look| look.boundary == last.seq);
    let largest =
        |of: fn(&GpuLedger) -> u64| looks.clone().map(|look| of(look)).max().filter(|bytes| *bytes > 0);
    let set = process
        .ledgers
        .iter()
        .rev()
        .map(|look| &look.settings)
        .chain(failed.map(|refusal| &refusal.settings));
    let set: Vec<&str> = set.flatten().map(String::as_str).collect();
    let cause = Cause::GpuPieces {
        failed: failed.map(|refusal| refusal.asked_bytes),
        allocated_bytes: failed.map_or(last.cuda_allocated_bytes, |refusal| refusal.allocated_bytes),
        reserved_bytes: failed.map_or(reserved, |refusal| refusal.reserved_bytes),
        gaps_bytes: gaps,
        largest_free_bytes: failed
            .map(|refusal| refusal.largest_free_bytes)
            .filter(|bytes| *bytes > 0)
            .or_else(|| largest(|look| look.largest_free_bytes)),
        largest_used_bytes: largest(|look| look.largest_used_bytes),
        rate: rising.map(|verdict| Rate::new(verdict.bytes_per_unit, verdict.unit)),
    };
    let expandable = set.contains(&"expandable_segments");
    Some(Observed {
        witness: Witness::Exact,
        standing: if failed.is_some() { Standing::Whole } else { Standing::Light },
        process: process.reference(),
        growth: rising
            .and_then(|verdict| Some(judged.scale?.growth(Series::CudaReserved, verdict.bytes_per_unit))),
        remedy: Some(Remedy::from(Advice::GpuPieces {
            expandable,
            split: set.contains(&"max_split_size_mb"),
        })),
        ..Observed::of(cause)
    })
}

/// The last allocation that failed though as much was free in torch's allocator.
fn failed(recording: &Recording, pid: u32) -> Option<&GpuRefusal> {
    let of_pid = recording.events.iter().rev().filter(|event| event.pid == pid);
    let in_pieces = |refusal: &&GpuRefusal| {
        refusal.reserved_bytes.saturating_sub(refusal.allocated_bytes) >= refusal.asked_bytes
    };
    let refusals = of_pid.filter_map(|event| match &event.message {
        Message::GpuRefusal(refusal) => Some(refusal),
        _ => None,
    });
    refusals.filter(in_pieces).find(|refusal| refusal.reserved_bytes > 0)
}

/// A pool of pinned memory that grows though what is in use of it does not.
fn pinned(process: &Process<'_>, judged: &Judged) -> Option<Observed> {
    let scale = judged.scale?;
    let pool = judged.series(Series::PinnedPool).filter(|verdict| verdict.state == State::Grows)?;
    let last = process.boundaries.last()?;
    if used_slope(process, scale) > IN_USE * pool.bytes_per_unit {
        return None;
    }
    let cause = Cause::PinnedPool {
        rate: Rate::new(pool.bytes_per_unit, pool.unit),
        pool_bytes: last.pinned_pool_bytes,
        used_bytes: last.pinned_used_bytes,
    };
    Some(Observed {
        witness: Witness::Exact,
        standing: Standing::Light,
        process: process.reference(),
        growth: Some(scale.growth(Series::PinnedPool, pool.bytes_per_unit)),
        remedy: Some(Advice::PinOnce.into()),
        ..Observed::of(cause)
    })
}

fn used_slope(process: &Process<'_>, scale: Scale) -> f64 {
    let points = units::points(process, scale, |boundary| Some(boundary.pinned_used_bytes as f64));
    Baselines::of(points, scale).judge().slope
}
