//! Does memory return to its baseline, and does the GPU's?

use caulk_core::{Bytes, LimitKind, Series, State, Verdict};

use crate::leaks::{rate, unit_name};
use crate::{Checked, Criterion, MemoryAnswer, Observed};

const NAME: Criterion = Criterion::Stable;

/// Whether memory grows, or grows faster than `limit` bytes per unit.
pub(crate) fn stable(observed: &Observed<'_>, limit: Option<u64>) -> Checked {
    let checked = match observed.memory {
        MemoryAnswer::Grows(verdict) => match limit {
            Some(limit) => against(verdict, limit as f64),
            None => Checked::fail(NAME, figure(verdict)),
        },
        MemoryAnswer::GrowsWithin(verdict) => {
            Checked::fail(NAME, format!("grows inside each epoch: {}", figure(verdict)))
        }
        MemoryAnswer::Retains(verdict) => Checked::pass(
            NAME,
            format!("bytes in use are steady; resident pages are kept: {}", figure(verdict)),
        ),
        MemoryAnswer::Steady(verdict) => Checked::pass(NAME, figure(verdict)),
        MemoryAnswer::Undecided(verdict) => Checked::undecided(NAME, figure(verdict), more(verdict)),
        MemoryAnswer::Unknown => Checked::undecided(
            NAME,
            "no series of memory was long enough to judge",
            "a run of more epochs, or `caulk.epoch()` in the program's main loop",
        ),
    };
    let limit =
        limit.map_or("no growth".into(), |limit| format!("{} per epoch, step or second", Bytes(limit)));
    checked.within(limit)
}

/// Growth is judged by its interval: below the limit, above it, or across.
fn against(verdict: &Verdict, limit: f64) -> Checked {
    let [low, high] = verdict.interval.unwrap_or([verdict.bytes_per_unit; 2]);
    if high <= limit {
        Checked::pass(NAME, figure(verdict))
    } else if low > limit {
        Checked::fail(NAME, figure(verdict))
    } else {
        Checked::undecided(NAME, figure(verdict), "more epochs: the interval of the rate includes the limit")
    }
}

/// Whether the GPU's memory grows, and whether its peak is below a share of the device.
pub(crate) fn gpu(observed: &Observed<'_>, share: f64) -> Checked {
    let name = Criterion::GpuNotFilling;
    let limit = format!("no growth, below {:.0} % of the device", share * 100.0);
    let mut series = observed.verdicts.iter().filter(|verdict| verdict.series == Series::CudaAllocated);
    if observed.gpus.is_empty() && series.clone().next().is_none() {
        return Checked::not_applicable(name, "the program used no GPU").within(limit);
    }
    if let Some(grows) = series.clone().find(|verdict| verdict.state == State::Grows) {
        return Checked::fail(name, figure(grows)).within(limit);
    }
    let fullest = observed.gpus.iter().filter(|gpu| gpu.total_bytes > 0).max_by(|a, b| {
        let part = |bytes: u64, total: u64| bytes as f64 / total as f64;
        part(a.peak_bytes, a.total_bytes).total_cmp(&part(b.peak_bytes, b.total_bytes))
    });
    let peak = fullest.map(|gpu| {
        format!("peak {} of {} on GPU {}", Bytes(gpu.peak_bytes), Bytes(gpu.total_bytes), gpu.device)
    });
    if let Some(gpu) = fullest.filter(|gpu| gpu.peak_bytes as f64 > share * gpu.total_bytes as f64) {
        let used_by_run: u64 = gpu.processes.iter().map(|part| part.peak_bytes).sum();
        let figure = format!("{}, by this run {}", peak.unwrap_or_default(), Bytes(used_by_run));
        return Checked::fail(name, figure).within(limit);
    }
    if let Some(open) = series.find(|verdict| verdict.state == State::Undecided) {
        return Checked::undecided(name, figure(open), more(open)).within(limit);
    }
    Checked::pass(name, peak.unwrap_or_else(|| "GPU memory does not grow".into())).within(limit)
}

/// Open files or threads, where no leak was found: their number against the limit of a process.
pub(crate) fn count(observed: &Observed<'_>, name: Criterion, series: Series) -> Checked {
    let all = observed.verdicts.iter().filter(|verdict| verdict.series == series);
    let runs_out = |verdict: &&Verdict| {
        verdict.oom_in_s.is_some()
            && verdict.limit.is_some_and(|limit| limit.kind == LimitKind::Fds)
            && verdict.state == State::Grows
    };
    if let Some(verdict) = all.clone().find(runs_out) {
        return Checked::fail(name, figure(verdict)).within("no growth");
    }
    match all.max_by(|a, b| a.bytes_per_unit.total_cmp(&b.bytes_per_unit)) {
        Some(verdict) => Checked::pass(name, figure(verdict)).within("no growth"),
        None => Checked::not_applicable(name, "their number was not read often enough"),
    }
}

/// Workers, where no leak was found.
pub(crate) fn workers(observed: &Observed<'_>) -> Checked {
    let name = Criterion::WorkersFlat;
    let all = observed.verdicts.iter().filter(|verdict| verdict.process.role == "worker");
    let memory = all.filter(|verdict| matches!(verdict.series, Series::InUse | Series::Rss | Series::Pss));
    let has_workers =
        observed.recording.processes.iter().any(|process| process.role == caulk_core::Role::Worker);
    match memory.max_by(|a, b| a.bytes_per_unit.total_cmp(&b.bytes_per_unit)) {
        Some(verdict) => Checked::pass(name, figure(verdict)).within("no leak"),
        None if has_workers => Checked::pass(name, "no worker was found to grow").within("no leak"),
        None => Checked::not_applicable(name, "the program has no data loader workers"),
    }
}

/// `main in use: +4.00 MB per epoch (+3.90 MB to +4.10 MB) over 8 boundaries, grows`.
fn figure(verdict: &Verdict) -> String {
    let unit = unit_name(verdict.unit);
    let rate = rate(verdict.series, verdict.bytes_per_unit, verdict.unit)
        .unwrap_or_else(|| format!("no growth per {unit}"));
    let counts = matches!(verdict.series, Series::Fds | Series::Threads | Series::Children);
    let interval = verdict.interval.filter(|_| !counts && verdict.bytes_per_unit != 0.0);
    let interval = interval.map_or_else(String::new, |[low, high]| {
        format!(" ({} to {})", Bytes::signed(low), Bytes::signed(high))
    });
    let (process, series, state) =
        (&verdict.process.role, series_name(verdict.series), verdict.state.as_str());
    format!("{process} {series}: {rate}{interval} over {} boundaries, {state}", verdict.boundaries)
}

fn series_name(series: Series) -> &'static str {
    match series {
        Series::InUse => "bytes in use",
        Series::Rss => "RSS",
        Series::Pss => "PSS",
        Series::CudaAllocated => "GPU memory",
        Series::CudaReserved => "GPU memory reserved by torch",
        Series::CudaRest => "GPU memory outside torch",
        Series::PinnedPool => "pinned host memory",
        Series::Shm => "shared memory",
        Series::MappedFiles => "mapped files",
        Series::PrivatePages => "private pages",
        Series::Fds => "open files",
        Series::Threads => "threads",
        Series::Children => "child processes",
    }
}

/// What would decide a verdict.
fn more(verdict: &Verdict) -> String {
    let unit = match verdict.unit {
        caulk_core::VerdictUnit::Epoch => "epochs",
        caulk_core::VerdictUnit::Steps => "steps",
        caulk_core::VerdictUnit::Seconds => "seconds",
    };
    match verdict.more_needed {
        Some(needed) if needed > 0 => {
            let units = (f64::from(needed) * verdict.boundary_units.max(1.0)).ceil();
            format!("about {units} more {unit}")
        }
        _ => format!("more {unit}"),
    }
}
