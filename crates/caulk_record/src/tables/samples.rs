//! `samples`, `system` and `gpus`: looks from outside.

use arrow_schema::ArrowError;
use caulk_core::{Counted, GpuSample, Sample, Slowed, SystemSample};

use crate::columns::{Cells, Columns};
use crate::record::{Record, Row};

pub(super) fn encode(rows: &[Row]) -> Columns {
    let samples = rows.iter().filter_map(|row| match &row.record {
        Record::Sample(sample) => Some((row.order, sample)),
        _ => None,
    });
    let each = || samples.clone().map(|(_, sample)| sample);
    Columns::default()
        .u64("order", samples.clone().map(|(order, _)| order))
        .u64("time_ns", each().map(|s| s.time_ns))
        .u32("pid", each().map(|s| s.pid))
        .u64("rss_bytes", each().map(|s| s.rss_bytes))
        .u64("shared_bytes", each().map(|s| s.shared_bytes))
        .some_u64("pss_bytes", each().map(|s| s.pss_bytes))
        .some_u64("private_dirty_bytes", each().map(|s| s.private_dirty_bytes))
        .some_u64("swap_bytes", each().map(|s| s.swap_bytes))
        .some_u32("threads", each().map(|s| s.threads))
        .some_u32("fds", each().map(|s| s.fds))
        .some_u64("cpu_ns", each().map(|s| s.cpu_ns))
        .some_u64("malloc_bytes", each().map(|s| Some(s.counted?.malloc_bytes)))
        .some_u64("malloc_blocks", each().map(|s| Some(s.counted?.blocks)))
        .some_u64("arena_bytes", each().map(|s| Some(s.counted?.arena_bytes)))
        .some_u64("address_space_bytes", each().map(|s| s.address_space_bytes))
        .some_u64("data_bytes", each().map(|s| s.data_bytes))
}

pub(super) fn decode(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let (order, time_ns, pid) = (cells.u64("order")?, cells.u64("time_ns")?, cells.u32("pid")?);
    let (rss, shared) = (cells.u64("rss_bytes")?, cells.u64("shared_bytes")?);
    let (pss, swap) = (cells.some_u64("pss_bytes")?, cells.some_u64("swap_bytes")?);
    let private_dirty = cells.some_u64("private_dirty_bytes")?;
    let (threads, fds) = (cells.some_u32("threads")?, cells.some_u32("fds")?);
    let cpu_ns = cells.some_u64("cpu_ns")?;
    let (malloc, blocks) = (cells.some_u64("malloc_bytes")?, cells.u64("malloc_blocks")?);
    let arenas = cells.u64("arena_bytes")?;
    let (address, data) = (cells.some_u64("address_space_bytes")?, cells.some_u64("data_bytes")?);
    rows.extend((0..cells.0.num_rows()).map(|row| {
        let sample = Sample {
            time_ns: time_ns(row),
            pid: pid(row),
            rss_bytes: rss(row),
            shared_bytes: shared(row),
            pss_bytes: pss(row),
            private_dirty_bytes: private_dirty(row),
            swap_bytes: swap(row),
            threads: threads(row),
            fds: fds(row),
            cpu_ns: cpu_ns(row),
            counted: malloc(row).map(|malloc_bytes| Counted {
                malloc_bytes,
                blocks: blocks(row),
                arena_bytes: arenas(row),
            }),
            address_space_bytes: address(row),
            data_bytes: data(row),
        };
        Row { order: order(row), record: Record::Sample(sample) }
    }));
    Ok(())
}

pub(super) fn encode_system(rows: &[Row]) -> Columns {
    let samples = rows.iter().filter_map(|row| match &row.record {
        Record::System(sample) => Some((row.order, sample)),
        _ => None,
    });
    let each = || samples.clone().map(|(_, sample)| sample);
    Columns::default()
        .u64("order", samples.clone().map(|(order, _)| order))
        .u64("time_ns", each().map(|s| s.time_ns))
        .some_u64("cgroup_bytes", each().map(|s| s.cgroup_bytes))
        .some_u64("cgroup_cache_bytes", each().map(|s| s.cgroup_cache_bytes))
        .u64("available_bytes", each().map(|s| s.available_bytes))
        .u64("tree_rss_bytes", each().map(|s| s.tree_rss_bytes))
        .u32("processes", each().map(|s| s.processes))
        .some_u64("shm_used_bytes", each().map(|s| s.shm_used_bytes))
}

pub(super) fn decode_system(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let (order, time_ns) = (cells.u64("order")?, cells.u64("time_ns")?);
    let cache = cells.some_u64("cgroup_cache_bytes")?;
    let (cgroup, available) = (cells.some_u64("cgroup_bytes")?, cells.u64("available_bytes")?);
    let (tree_rss, processes) = (cells.u64("tree_rss_bytes")?, cells.u32("processes")?);
    let shm_used = cells.some_u64("shm_used_bytes")?;
    rows.extend((0..cells.0.num_rows()).map(|row| {
        let sample = SystemSample {
            time_ns: time_ns(row),
            cgroup_bytes: cgroup(row),
            cgroup_cache_bytes: cache(row),
            available_bytes: available(row),
            tree_rss_bytes: tree_rss(row),
            processes: processes(row),
            shm_used_bytes: shm_used(row),
        };
        Row { order: order(row), record: Record::System(sample) }
    }));
    Ok(())
}

pub(super) fn encode_gpus(rows: &[Row]) -> Columns {
    let samples = rows.iter().filter_map(|row| match &row.record {
        Record::Gpu(sample) => Some((row.order, sample)),
        _ => None,
    });
    let each = || samples.clone().map(|(_, sample)| sample);
    Columns::default()
        .u64("order", samples.clone().map(|(order, _)| order))
        .u64("time_ns", each().map(|s| s.time_ns))
        .u32("device", each().map(|s| s.device))
        .some_u32("pid", each().map(|s| s.pid))
        .u64("used_bytes", each().map(|s| s.used_bytes))
        .some_u64("total_bytes", each().map(|s| s.total_bytes))
        .some_u32("celsius", each().map(|s| s.celsius))
        .some_u32("busy_percent", each().map(|s| s.busy_percent))
        .text("slowed", each().map(|s| s.slowed.map_or("", Slowed::as_str)))
        .text("name", each().map(|s| s.name.as_str()))
        .text("uuid", each().map(|s| s.uuid.as_str()))
}

pub(super) fn decode_gpus(cells: Cells<'_>, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let (order, time_ns, device) = (cells.u64("order")?, cells.u64("time_ns")?, cells.u32("device")?);
    let (pid, used, total) =
        (cells.some_u32("pid")?, cells.u64("used_bytes")?, cells.some_u64("total_bytes")?);
    let (celsius, busy) = (cells.some_u32("celsius")?, cells.some_u32("busy_percent")?);
    let (slowed, name, uuid) = (cells.text("slowed")?, cells.text("name")?, cells.text("uuid")?);
    rows.extend((0..cells.0.num_rows()).map(|row| {
        let sample = GpuSample {
            time_ns: time_ns(row),
            device: device(row),
            pid: pid(row),
            used_bytes: used(row),
            total_bytes: total(row),
            celsius: celsius(row),
            busy_percent: busy(row),
            slowed: Slowed::of(slowed(row)),
            name: name(row).to_owned(),
            uuid: uuid(row).to_owned(),
        };
        Row { order: order(row), record: Record::Gpu(sample) }
    }));
    Ok(())
}
