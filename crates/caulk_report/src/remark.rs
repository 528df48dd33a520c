//! Notes of a diagnosis: the line for people, and its figures by name.

use caulk_core::{Bytes, GpuPart, GpuUse, Note, RankGrowth, Remark, Series, Slowed, VerdictUnit};

use crate::ledger::ledger_text;
use crate::message::unit_name;
use crate::refused;

/// Censuses below which it is no news that they found nothing that grows.
const FEWEST_CENSUSES: usize = 4;
/// Percentage of the readings from which on a report names why a device was slowed down.
const OFTEN: u32 = 5;
/// Ranks that are named; others are counted.
const NAMED_RANKS: usize = 4;
/// Names of another version that are listed.
const NAMED: usize = 4;

/// A remark as a note.
pub fn note(remark: &Remark) -> Note {
    let about = |text: String| Note::new(remark.code(), text);
    match remark {
        Remark::Recorded(note) => note.clone(),
        Remark::Unexplained { censuses, followed, line_known, beside_profile } => {
            about(unexplained(*censuses, *followed, *line_known, *beside_profile))
                .with("censuses", *censuses as u64)
                .with("followed", *followed as u64)
        }
        Remark::AllocatorKeeps { before_bytes, after_bytes, milliseconds, times } => about(format!(
            "`malloc_trim(0)` took resident memory from {} to {}, in {milliseconds:.0} ms: the most of {times} times that it was \
             asked",
            Bytes(*before_bytes),
            Bytes(*after_bytes)
        ))
        .with("times", *times)
        .with("before_bytes", *before_bytes)
        .with("after_bytes", *after_bytes),
        Remark::GrowsOutside { few: true } => about(
            "memory was judged from outside alone, so that no line can be named: too few of the program's steps and epochs \
             were read"
                .to_owned(),
        ),
        Remark::GrowsOutside { few: false } => about(
            "memory was seen from outside alone, so that no line can be named: no optimizer stepped, no backward pass ran, \
             and what tells the time in other programs, Python's collector and the heap sampler, ran too rarely. With \
             `import caulk` and `caulk.step()` in the program's main loop caulk looks inside"
                .to_owned(),
        ),
        Remark::PageCache { bytes, cache_bytes } => about(format!(
            "the control group's memory rose by {}, of which {} are page cache, files that were read or written: the \
             kernel takes it back before it kills, and it is no leak",
            Bytes(*bytes),
            Bytes(*cache_bytes)
        ))
        .with("bytes", *bytes)
        .with("cache_bytes", *cache_bytes),
        Remark::ShmFiles { bytes } => about(format!(
            "/dev/shm took {} more and more while this ran, beside what the run's processes have mapped: files there are \
             memory until they are deleted, and may be another program's; `ls -lt /dev/shm` shows them",
            Bytes(*bytes)
        ))
        .with("bytes", *bytes),
        Remark::OtherVersion { names } => {
            let listed: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
            about(format!(
                "another version of caulk has recorded what this one does not know ({}); `caulk report` of that version shows it",
                listed.join(", ")
            ))
            .with("names", names.clone())
        }
        Remark::GpuRest { pid, early_bytes, late_bytes } => about(format!(
            "on the GPU something else than torch's allocator took more and more: {} of process {pid} early on, {} at the \
             end, by the driver's count. Another library, communication buffers or captured graphs do that; no Python object \
             shows it",
            Bytes(*early_bytes),
            Bytes(*late_bytes)
        ))
        .with("pid", u64::from(*pid))
        .with("early_bytes", *early_bytes)
        .with("late_bytes", *late_bytes),
        Remark::GpuDevice(gpu) => about(device(gpu))
            .with("device", u64::from(gpu.device))
            .with("peak_bytes", gpu.peak_bytes)
            .with("total_bytes", gpu.total_bytes),
        Remark::GpuRetries { times } => {
            let often = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            about(format!(
                "the GPU's memory was full {often}: torch emptied its caches and tried again, which costs time, and fails once \
                 nothing is left in them"
            ))
            .with("times", *times)
        }
        Remark::GpuRefused { times, last } => {
            let often = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            about(format!(
                "a GPU had no memory for an allocation {often}, and the program continued; the last request was for {}{}. {}",
                Bytes(last.asked_bytes),
                refused::place(last),
                refused::details(last).trim_end_matches('.')
            ))
            .with("times", *times)
            .with("asked_bytes", last.asked_bytes)
            .with("allocated_bytes", last.allocated_bytes)
            .with("reserved_bytes", last.reserved_bytes)
        }
        Remark::Ranks { series, unit, ranks } => {
            let note = about(of_ranks(*series, *unit, ranks)).with("ranks", ranks.len() as u64);
            let out = ranks.iter().filter(|rank| rank.stands_out).map(|rank| rank.rank.to_string());
            let out: Vec<String> = out.collect();
            if out.is_empty() { note } else { note.with("outliers", out) }
        }
    }
}

fn unexplained(censuses: usize, followed: usize, line_known: bool, beside_profile: bool) -> String {
    let times = match censuses {
        0 => "not at all".to_owned(),
        1 => "once".to_owned(),
        censuses => format!("{censuses} times"),
    };
    if censuses < FEWEST_CENSUSES {
        return format!(
            "memory in use grows, and the run was too short to tell what holds it: the containers (lists, dicts and the \
             like) were looked at {times}, which takes place once growth shows and within what caulk may cost. Let it \
             run longer"
        );
    }
    let found =
        if line_known { "what holds it was not found" } else { "nothing that was found accounts for it" };
    let mut text = format!(
        "memory in use grows, and {found}: all containers (lists, dicts and the like) were looked at {times}, and \
         {followed} that grow were followed. Native code may hold it, or a chain of objects or closures that was not \
         recognised"
    );
    if beside_profile {
        text.push_str(
            ". It is not in the heap profile either: what takes memory from the C library by a way of its own \
             (`ctypes.CDLL(\"libc.so.6\").malloc`, a library that finds `malloc` itself) is not seen there; \
             `ctypes.CDLL(None)` is",
        );
    }
    text
}

fn device(gpu: &GpuUse) -> String {
    let name = if gpu.name.is_empty() { String::new() } else { format!(" ({})", gpu.name) };
    let taken = format!("at most {} of {} taken", Bytes(gpu.peak_bytes), Bytes(gpu.total_bytes));
    let mut said = vec![format!("GPU {}{name}: {taken}{}", gpu.device, of_run(gpu))];
    said.extend(gpu.ledger.as_ref().map(ledger_text));
    said.extend(gpu.hottest_celsius.map(|celsius| format!("at most {celsius} °C")));
    said.extend(gpu.busy_percent.map(|percent| format!("busy {percent} % of the time")));
    // At full power is where a device should be.
    let slowed = gpu.slowed.iter().filter(|(reason, percent)| *reason != Slowed::Power && *percent >= OFTEN);
    said.extend(slowed.map(|(reason, percent)| {
        let why = match reason {
            Slowed::Heat => "heat",
            _ => "its power supply or heat",
        };
        format!("slowed down by {why} {percent} % of the time")
    }));
    said.join("; ")
}

fn of_run(gpu: &GpuUse) -> String {
    let parts: &[GpuPart] = &gpu.processes;
    if parts.is_empty() && gpu.ledger.is_some() {
        return String::new();
    }
    if parts.is_empty() {
        return "; the driver does not show which process uses it".into();
    }
    let (bytes, torch) = parts
        .iter()
        .fold((0, 0), |(bytes, torch), part| (bytes + part.peak_bytes, torch + part.torch_reserved_bytes));
    let whose = if parts.len() == 1 { String::new() } else { format!(" in {} processes", parts.len()) };
    let torch =
        if torch == 0 { String::new() } else { format!(", where torch had reserved {}", Bytes(torch)) };
    format!(", {} of it by this run{whose}{torch}", Bytes(bytes))
}

/// Of two ranks or more.
fn of_ranks(series: Series, unit: VerdictUnit, ranks: &[RankGrowth]) -> String {
    let what = match series {
        Series::CudaAllocated => "memory on the GPU",
        Series::Rss => "resident memory",
        _ => "memory in use",
    };
    let (count, unit) = (ranks.len(), unit_name(unit));
    let (outliers, others): (Vec<RankGrowth>, Vec<RankGrowth>) =
        ranks.iter().partition(|rank| rank.stands_out);
    let rates = |some: &[RankGrowth]| range(some, |rank| rank.bytes_per_unit, Bytes::signed);
    if outliers.is_empty() {
        let last = range(ranks, |rank| rank.last, |bytes| Bytes(bytes as u64).to_string());
        return format!("{count} ranks, alike: {what} moves by {} per {unit}, to {last}", rates(ranks));
    }
    let stand = if outliers.len() == 1 { "stands" } else { "stand" };
    format!(
        "of {count} ranks, {} {stand} out: {what} grows by {} per {unit} there, and moves by {} in the others. Look at what is \
         done there alone: logging, validation, checkpoints, or a part of the data",
        names(&outliers),
        rates(&outliers),
        rates(&others)
    )
}

fn names(ranks: &[RankGrowth]) -> String {
    let named: Vec<String> =
        ranks.iter().take(NAMED_RANKS).map(|rank| format!("rank {}", rank.rank)).collect();
    match ranks.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn range(ranks: &[RankGrowth], of: fn(&RankGrowth) -> f64, write: fn(f64) -> String) -> String {
    let figures = || ranks.iter().map(of);
    let [low, high] = [figures().fold(f64::INFINITY, f64::min), figures().fold(f64::NEG_INFINITY, f64::max)];
    let [low, high] = [low, high].map(write);
    if low == high { low } else { format!("{low} to {high}") }
}
