//! Numbers in words: durations, rates, counts, signals, processes.

use caulk_core::{Bytes, Death, Kill, Limit, LimitKind, ProcessRef, RunInfo, Series, VerdictUnit};

/// A forecast shows its early end alone if the late one is so many times later.
pub(crate) const WIDE: u64 = 20;

/// Follows the early end of a forecast whose late end is not known, or too far to be of use.
const EARLIEST: &str = " at the earliest";

/// A duration in at most two units: `40 ms`, `0.4 s`, `41 s`, `1 min 5 s`, `1 h 26 min`, `2 days 3 h`.
pub fn seconds(duration_s: f64) -> String {
    if !duration_s.is_finite() {
        return "ever".into();
    }
    if duration_s < 0.0995 {
        return format!("{:.0} ms", duration_s.max(0.0) * 1e3);
    }
    if duration_s < 9.95 {
        return format!("{:.1} s", duration_s.max(0.0));
    }
    let whole = duration_s.round() as u64;
    let pair = |large: u64, large_name: &str, small: u64, small_name: &str| match small {
        0 => format!("{large} {large_name}"),
        _ => format!("{large} {large_name} {small} {small_name}"),
    };
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => pair(whole / 60, "min", whole % 60, "s"),
        3600..86400 => pair(whole / 3600, "h", whole % 3600 / 60, "min"),
        _ => {
            let days = whole / 86400;
            pair(days, if days == 1 { "day" } else { "days" }, whole % 86400 / 3600, "h")
        }
    }
}

/// A forecast as a time from now or from the end: `21 to 23 h more`, `26 min more at the earliest`.
pub(crate) fn more(span_s: [f64; 2]) -> String {
    let span = span(span_s);
    match span.strip_suffix(EARLIEST) {
        Some(early) => format!("{early} more{EARLIEST}"),
        None => format!("{span} more"),
    }
}

/// A forecast as a range in one unit, no finer than it can be: `21 to 23 h`.
pub(crate) fn span([early_s, late_s]: [f64; 2]) -> String {
    if !late_s.is_finite() {
        return format!("{}{EARLIEST}", seconds(early_s));
    }
    let (unit_s, name) = match early_s {
        ..120.0 => (1.0, "s"),
        ..7200.0 => (60.0, "min"),
        ..172_800.0 => (3600.0, "h"),
        _ => (86400.0, "days"),
    };
    // The early end is rounded down: it is the one to act by.
    let (early, late) = ((early_s / unit_s).floor(), (late_s / unit_s).ceil());
    if late > WIDE as f64 * early.max(1.0) {
        return format!("{}{EARLIEST}", seconds(early_s));
    }
    if early + 1.0 >= late {
        format!("about {late:.0} {name}")
    } else {
        format!("{early:.0} to {late:.0} {name}")
    }
}

/// `1 epoch`, `3 epochs`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 {
        ""
    } else if noun.ends_with("ss") {
        "es"
    } else {
        "s"
    };
    format!("{number} {noun}{plural}")
}

/// A mean count: whole where it is, else with one digit, or as many as it takes to be above nothing.
pub(crate) fn mean(number: f64) -> String {
    if (0.001..0.05).contains(&number) {
        let digits = (-number.log10()).ceil() as usize;
        format!("{number:.digits$}")
    } else if number.abs() >= 100.0 || (number - number.round()).abs() < 0.05 {
        format!("{number:.0}")
    } else {
        format!("{number:.1}")
    }
}

/// A count of which more than three digits would be pretence, rounded down.
pub(crate) fn rough(number: f64) -> u64 {
    let number = number.max(0.0) as u64;
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(2));
    number / unit * unit
}

/// What a rate is per, and by what to multiply a rate per unit to make it so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Per {
    /// `epoch`, `step`, `minute`.
    pub(crate) name: &'static str,
    /// Factor on rates per unit.
    pub(crate) factor: f64,
    unit: VerdictUnit,
}

impl Per {
    pub(crate) const fn of(unit: VerdictUnit) -> Self {
        let (name, factor) = match unit {
            VerdictUnit::Epoch => ("epoch", 1.0),
            VerdictUnit::Steps => ("step", 1.0),
            VerdictUnit::Seconds => ("minute", 60.0),
        };
        Self { name, factor, unit }
    }

    /// So many units: `8 epochs`, `1200 steps`, `2 min 5 s`.
    pub(crate) fn units(self, number: f64) -> String {
        match self.unit {
            VerdictUnit::Seconds => seconds(number),
            _ => count(number.round() as u64, self.name),
        }
    }

    /// So many of them, where they have been named: `1`, `375`, `2.0 s`.
    pub(crate) fn part(self, number: f64) -> String {
        match self.unit {
            VerdictUnit::Seconds => seconds(number),
            _ => format!("{number:.0}"),
        }
    }

    /// So many more: `2 more epochs are`, `1 more step is`, `8.0 s more are`.
    pub(crate) fn more(self, number: f64) -> String {
        match self.unit {
            VerdictUnit::Seconds => format!("{} more are", seconds(number.ceil().max(1.0))),
            _ if number.ceil() <= 1.0 => format!("1 more {} is", self.name),
            _ => format!("{:.0} more {}s are", number.ceil(), self.name),
        }
    }
}

/// An amount of a series: bytes, or a plain number of files and threads.
pub(crate) fn amount(series: Series, value: f64) -> String {
    match series {
        Series::Fds => count(value.max(0.0).round() as u64, "open file"),
        Series::Threads => count(value.max(0.0).round() as u64, "thread"),
        Series::Children => count(value.max(0.0).round() as u64, "child process"),
        _ => Bytes(value.max(0.0).round() as u64).to_string(),
    }
}

/// A rate of a series, with its sign where it falls.
pub(crate) fn rate(series: Series, value: f64) -> String {
    match series {
        Series::Fds | Series::Threads | Series::Children => mean(value),
        _ => bytes(value),
    }
}

/// Bytes that may be negative.
pub(crate) fn bytes(value: f64) -> String {
    if value < -0.5 { Bytes::signed(value) } else { Bytes(value.max(0.0).round() as u64).to_string() }
}

/// `15.3 MB to 17.2 MB`.
pub(crate) fn range(series: Series, [low, high]: [f64; 2]) -> String {
    let (low, high) = (rate(series, low), rate(series, high));
    if low == high { high } else { format!("{low} to {high}") }
}

/// The series as the subject of a sentence about `process`.
pub(crate) fn subject(process: &ProcessRef, series: Series) -> String {
    let what = match series {
        Series::InUse => "Memory",
        Series::Rss => "Resident memory",
        Series::Pss => "Private memory",
        Series::CudaAllocated => "GPU memory",
        Series::CudaReserved => "GPU memory reserved by torch",
        Series::CudaRest => "GPU memory outside torch's allocator",
        Series::PinnedPool => "Pinned host memory",
        Series::Shm => "Shared memory",
        Series::MappedFiles => "Resident memory of mapped files",
        Series::PrivatePages => "Memory for copies of mapped pages",
        Series::Fds => "The number of open files",
        Series::Threads => "The number of threads",
        Series::Children => "The number of child processes",
    };
    match owner(process) {
        Some(owner) => format!("{what} of {owner}"),
        None => what.into(),
    }
}

/// Whose: nothing for the main process, about which everything is said unless it says otherwise.
pub(crate) fn owner(process: &ProcessRef) -> Option<String> {
    match (process.role.as_str(), process.count) {
        ("main" | "tree" | "", 0 | 1) => None,
        ("tree", _) => Some("all processes together".into()),
        ("worker", count) if count > 1 => Some(format!("{count} workers")),
        ("worker", _) => Some(format!("worker {}", process.index)),
        ("rank", count) if count > 1 => Some(format!("{count} ranks")),
        ("rank", _) => Some(format!("rank {}", process.index)),
        (role, count) if count > 1 => Some(format!("{count} {role} processes")),
        (role, _) => Some(format!("{role} process {}", process.index)),
    }
}

/// What is measured, as a noun inside a sentence.
pub(crate) fn measure(series: Series) -> &'static str {
    match series {
        Series::InUse => "in use",
        Series::Rss => "resident",
        Series::Pss => "private",
        Series::CudaAllocated => "allocated on the GPU",
        Series::CudaReserved => "reserved on the GPU",
        Series::CudaRest => "on the GPU outside torch's allocator",
        Series::PinnedPool => "pinned",
        Series::Shm => "in shared memory",
        Series::MappedFiles => "resident of mapped files",
        Series::PrivatePages => "of private pages",
        Series::Fds | Series::Threads | Series::Children => "in all",
    }
}

/// `the cgroup limit of 64.0 GB`.
pub(crate) fn limit(limit: Limit) -> String {
    let bytes = Bytes(limit.bytes);
    match limit.kind {
        LimitKind::Cgroup => format!("the cgroup limit of {bytes}"),
        LimitKind::Physical => format!("the end of this machine's memory ({bytes})"),
        LimitKind::Budget => format!("the budget of {bytes}"),
        LimitKind::Gpu => format!("the end of the GPU's memory ({bytes})"),
        LimitKind::CudaFraction => {
            format!("the program's own share of the GPU's memory ({bytes})")
        }
        LimitKind::RlimitAs => format!("the limit of a process's address space (`ulimit -v`, {bytes})"),
        LimitKind::RlimitData => format!("the limit of a process's data (`ulimit -d`, {bytes})"),
        LimitKind::Shm => format!("the end of /dev/shm ({bytes})"),
        LimitKind::Fds => format!("the limit of {} open files (`ulimit -n`)", limit.bytes),
    }
}

/// Name of a signal, as `kill -l` writes it on Linux for `x86_64` and `aarch64`.
pub(crate) fn signal(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}

/// How a run ended, in a few words for a table: `exit 0`, `out of memory`, `SIGSEGV`, `running`, `unknown`.
pub fn ending(info: &RunInfo, running: bool) -> String {
    match &info.death {
        None if running => "running".into(),
        Some(Death { stopped: true, .. }) => "stopped by caulk".into(),
        Some(Death { kill: Some(Kill::Oom), .. }) => "out of memory".into(),
        Some(Death { kill: Some(Kill::ProbablyOom), .. }) => "out of memory?".into(),
        Some(Death { signal: Some(number), .. }) => signal(*number),
        Some(Death { code: Some(code), .. }) => format!("exit {code}"),
        None | Some(Death { .. }) => "not known".into(),
    }
}

/// A text as a sentence of its own: a capital first, a period last.
pub fn sentence_case(text: &str) -> String {
    let mut chars = text.trim().chars();
    let mut out: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    out.push_str(chars.as_str());
    if !out.ends_with(['.', '!', '?', ':']) {
        out.push('.');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(duration_s: f64, text: &str) {
        assert_eq!(seconds(duration_s), text);
    }

    #[test]
    fn durations_have_at_most_two_units() {
        check(0.04, "40 ms");
        check(0.4, "0.4 s");
        check(9.96, "10 s");
        check(59.7, "1 min");
        check(65.0, "1 min 5 s");
        check(5200.0, "1 h 26 min");
        check(86_400.0 * 2.0 + 3.0 * 3600.0, "2 days 3 h");
        check(f64::INFINITY, "ever");
    }

    #[test]
    fn forecasts_are_no_finer_than_they_can_be() {
        assert_eq!(span([75_400.0, 81_800.0]), "20 to 23 h");
        assert_eq!(span([5200.0, 6100.0]), "86 to 102 min");
        assert_eq!(span([3650.0, 3700.0]), "60 to 62 min");
        assert_eq!(span([90.2, 90.8]), "about 91 s");
        assert_eq!(span([30.0, 7200.0]), "30 s at the earliest");
        assert_eq!(span([30.0, f64::INFINITY]), "30 s at the earliest");
    }

    #[test]
    fn counts_far_ahead_are_rough() {
        assert_eq!([0.7, 7.9, 364.2, 5639.0, 81_999.0].map(rough), [0, 7, 364, 5630, 81_900]);
    }

    #[test]
    fn units_are_counted_in_their_own_words() {
        let check = |unit, number, units: &str, more: &str| {
            let per = Per::of(unit);
            assert_eq!((per.units(number).as_str(), per.more(number).as_str()), (units, more));
        };
        check(VerdictUnit::Epoch, 1.0, "1 epoch", "1 more epoch is");
        check(VerdictUnit::Epoch, 3.0, "3 epochs", "3 more epochs are");
        check(VerdictUnit::Steps, 2999.6, "3000 steps", "3000 more steps are");
        check(VerdictUnit::Seconds, 125.0, "2 min 5 s", "2 min 5 s more are");
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal(9), "SIGKILL");
        assert_eq!(signal(31), "SIGSYS");
        assert_eq!(signal(34), "signal 34");
        assert_eq!(signal(0), "signal 0");
    }
}
