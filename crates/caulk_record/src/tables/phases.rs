//! `phases`: one row per boundary, with memory as the process's allocators count it.

use arrow_schema::ArrowError;
use caulk_core::wire::{Boundary, Message, Phase, Unit};

use super::event::{code, event_columns, event_rows, events_of};
use crate::columns::{Cells, Columns};
use crate::record::Row;

/// `time_ns` is that of arrival, as in every table of events; the agent's own clock is `boundary_ns`.
pub(super) fn encode(rows: &[Row]) -> Columns {
    let events = events_of(rows).filter(|(_, event)| matches!(event.message, Message::Boundary(_)));
    let each = || {
        events.clone().filter_map(|(_, event)| match &event.message {
            Message::Boundary(boundary) => Some(boundary),
            _ => None,
        })
    };
    event_columns(events.clone())
        .u32("seq", each().map(|b| b.seq))
        .u64("boundary_ns", each().map(|b| b.time_ns))
        .text("unit", each().map(|b| b.unit.as_str()))
        .u64("index", each().map(|b| b.index))
        .u64("steps", each().map(|b| b.steps))
        .text("phase", each().map(|b| b.phase.as_str()))
        .u64("malloc_bytes", each().map(|b| b.malloc_bytes))
        .u64("malloc_free_bytes", each().map(|b| b.malloc_free_bytes))
        .u64("small_blocks", each().map(|b| b.small_blocks))
        .u64("small_bytes", each().map(|b| b.small_bytes))
        .u64("shm_bytes", each().map(|b| b.shm_bytes))
        .u64("rss_bytes", each().map(|b| b.rss_bytes))
        .u64("private_bytes", each().map(|b| b.private_bytes))
        .u64("inherited_bytes", each().map(|b| b.inherited_bytes))
        .u64("cuda_allocated_bytes", each().map(|b| b.cuda_allocated_bytes))
        .u64("cuda_reserved_bytes", each().map(|b| b.cuda_reserved_bytes))
        .u64("census_objects", each().map(|b| b.census_objects))
        .u64("cost_ns", each().map(|b| b.cost_ns))
        .u64("malloc_heap_bytes", each().map(|b| b.malloc_heap_bytes))
        .u64("malloc_top_bytes", each().map(|b| b.malloc_top_bytes))
        .u64("file_bytes", each().map(|b| b.file_bytes))
        .u32("threads", each().map(|b| b.threads))
        .u32("fds", each().map(|b| b.fds))
        .u64("cuda_inactive_bytes", each().map(|b| b.cuda_inactive_bytes))
        .u64("cuda_retries", each().map(|b| b.cuda_retries))
        .u32("of", each().map(|b| b.of))
        .u64("arena_bytes", each().map(|b| b.arena_bytes))
        .u64("segment_bytes", each().map(|b| b.segment_bytes))
        .u64("mapped_bytes", each().map(|b| b.mapped_bytes))
        .some_u64("copied_file_bytes", each().map(|b| b.copied_file_bytes))
        .u64("pinned_pool_bytes", each().map(|b| b.pinned_pool_bytes))
        .u64("pinned_used_bytes", each().map(|b| b.pinned_used_bytes))
}

pub(super) fn decode(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let event = event_rows(cells)?;
    let (seq, time_ns) = (cells.u32("seq")?, cells.u64("boundary_ns")?);
    let (unit, phase) = (cells.text("unit")?, cells.text("phase")?);
    let (index, steps) = (cells.u64("index")?, cells.u64("steps")?);
    let (malloc, malloc_free) = (cells.u64("malloc_bytes")?, cells.u64("malloc_free_bytes")?);
    let (small_blocks, small) = (cells.u64("small_blocks")?, cells.u64("small_bytes")?);
    let (shm, rss) = (cells.u64("shm_bytes")?, cells.u64("rss_bytes")?);
    let (private, inherited) = (cells.u64("private_bytes")?, cells.u64("inherited_bytes")?);
    let (allocated, reserved) = (cells.u64("cuda_allocated_bytes")?, cells.u64("cuda_reserved_bytes")?);
    let (census_objects, cost_ns) = (cells.u64("census_objects")?, cells.u64("cost_ns")?);
    let (heap, top) = (cells.u64("malloc_heap_bytes")?, cells.u64("malloc_top_bytes")?);
    let (file, threads, fds) = (cells.u64("file_bytes")?, cells.u32("threads")?, cells.u32("fds")?);
    let (inactive, retries) = (cells.u64("cuda_inactive_bytes")?, cells.u64("cuda_retries")?);
    let (of, arenas) = (cells.u32("of")?, cells.u64("arena_bytes")?);
    let (segments, mapped) = (cells.u64("segment_bytes")?, cells.u64("mapped_bytes")?);
    let copied_file = cells.some_u64("copied_file_bytes")?;
    let (pinned_pool, pinned_used) = (cells.u64("pinned_pool_bytes")?, cells.u64("pinned_used_bytes")?);
    rows.extend((0..cells.0.num_rows()).map(|row| {
        let boundary = Boundary {
            seq: seq(row),
            time_ns: time_ns(row),
            unit: code(Unit::from_name, unit(row)),
            index: index(row),
            steps: steps(row),
            phase: code(Phase::from_name, phase(row)),
            malloc_bytes: malloc(row),
            malloc_free_bytes: malloc_free(row),
            small_blocks: small_blocks(row),
            small_bytes: small(row),
            shm_bytes: shm(row),
            rss_bytes: rss(row),
            private_bytes: private(row),
            inherited_bytes: inherited(row),
            cuda_allocated_bytes: allocated(row),
            cuda_reserved_bytes: reserved(row),
            census_objects: census_objects(row),
            cost_ns: cost_ns(row),
            malloc_heap_bytes: heap(row),
            malloc_top_bytes: top(row),
            file_bytes: file(row),
            threads: threads(row),
            fds: fds(row),
            cuda_inactive_bytes: inactive(row),
            cuda_retries: retries(row),
            of: of(row),
            arena_bytes: arenas(row),
            segment_bytes: segments(row),
            mapped_bytes: mapped(row),
            copied_file_bytes: copied_file(row),
            pinned_pool_bytes: pinned_pool(row),
            pinned_used_bytes: pinned_used(row),
        };
        event(row, boundary.into())
    }));
    Ok(())
}
