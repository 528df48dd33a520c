//! How the program ended: by the command's end, and by the last error that an agent saw nobody catch.

use caulk_core::wire::{Message, Uncaught};
use caulk_core::{
    AgentEvent, Death, Ending, EndingKind, Finding, GpuRefused, GpuShortage, Kill, Limit, LimitKind,
    Recording, Role, Series,
};

use crate::files::Files;
use crate::{limits, refusals};

/// The message of torch if the system gives its CPU allocator no memory.
const REFUSED: &str = "can't allocate memory";

/// How a run ended; `None` while it runs, or if nobody saw its end.
pub(crate) fn ending(files: &Files<'_>, recording: &Recording, findings: &[Finding]) -> Option<Ending> {
    let death = recording.info.death.as_ref()?;
    let (event, error) = fatal(recording, death).unzip();
    let kind = kind(death, error);
    let refusal =
        out_of_gpu(recording).and_then(|(pid, at_ns)| Some((pid, refusals::before(recording, pid, at_ns)?)));
    let gpu = refusal.map(|(pid, refusal)| refusals::figures(files, recording, pid, refusal, findings));
    // The figures of the allocator are exact, those of the message rounded.
    let asked_bytes = gpu.as_ref().map(|gpu| gpu.asked_bytes).or_else(|| asked_bytes(&error?.text));
    let limit = gpu.as_ref().map_or_else(|| of_error(error), |gpu| of_refusal(gpu, refusal?.1.allowed_bytes));
    Some(Ending {
        kind,
        exception: error.and_then(|error| error.types.first().cloned()),
        signal: death.signal,
        asked_bytes,
        limit: limit.or_else(|| reached(recording, kind, event, asked_bytes.unwrap_or(0))),
        gpu,
    })
}

/// The process whose GPU had no memory, which ended the run, and when.
pub(crate) fn out_of_gpu(recording: &Recording) -> Option<(u32, u64)> {
    let death = recording.info.death.as_ref()?;
    let (event, error) = fatal(recording, death)?;
    (kind(death, Some(error)) == EndingKind::CudaOutOfMemory).then_some((event.pid, event.time_ns))
}

fn fatal<'a>(recording: &'a Recording, death: &Death) -> Option<(&'a AgentEvent, &'a Uncaught)> {
    let failed = death.code.is_some_and(|code| code != 0);
    last_error(recording).filter(|_| failed)
}

/// The limit that an allocation ran into.
fn of_refusal(gpu: &GpuRefused, allowed_bytes: u64) -> Option<Limit> {
    let fraction = Limit { kind: LimitKind::CudaFraction, bytes: allowed_bytes };
    let device = Limit { kind: LimitKind::Gpu, bytes: gpu.total_bytes };
    let limit =
        if allowed_bytes > 0 && gpu.shortage != GpuShortage::OtherProcesses { fraction } else { device };
    (limit.bytes > 0).then_some(limit)
}

/// The limit that memory ran into. A process is refused memory at the limits that it has for itself, and killed at those
/// of the machine and the control group.
fn reached(
    recording: &Recording,
    kind: EndingKind,
    error: Option<&AgentEvent>,
    asked_bytes: u64,
) -> Option<Limit> {
    let pid = error.map(|event| event.pid);
    match kind {
        EndingKind::MemoryError => limits::refused(recording, pid?, asked_bytes, error?.time_ns),
        EndingKind::CudaOutOfMemory => {
            limits::room(recording, pid, Series::CudaAllocated).map(|(limit, _)| limit)
        }
        EndingKind::OomKill => limits::killed(recording),
        EndingKind::StoppedByCaulk => limits::room(recording, pid, Series::Rss).map(|(limit, _)| limit),
        _ => None,
    }
}

/// The last one of a process that trains: what ends a helper need not end the program.
fn last_error(recording: &Recording) -> Option<(&AgentEvent, &Uncaught)> {
    let trains = |pid: u32| {
        let record = recording.processes.iter().find(|record| record.pid == pid);
        record.is_none_or(|record| matches!(record.role, Role::Main | Role::Rank))
    };
    recording.events.iter().rev().filter(|event| trains(event.pid)).find_map(|event| match &event.message {
        Message::Uncaught(error) => Some((event, error)),
        _ => None,
    })
}

fn kind(death: &Death, error: Option<&Uncaught>) -> EndingKind {
    let is_a = |name: &str| error.is_some_and(|error| error.types.iter().any(|known| known == name));
    if death.stopped {
        return EndingKind::StoppedByCaulk;
    }
    match (death.kill, death.signal, death.code) {
        (Some(Kill::Oom | Kill::ProbablyOom), ..) => EndingKind::OomKill,
        (_, Some(_), _) => EndingKind::Signal,
        (.., Some(0)) => EndingKind::Ok,
        (.., None) => EndingKind::Unknown,
        _ if is_a("OutOfMemoryError") => EndingKind::CudaOutOfMemory,
        _ if is_a("MemoryError") || error.is_some_and(|error| error.text.contains(REFUSED)) => {
            EndingKind::MemoryError
        }
        _ if error.is_some() => EndingKind::Exception,
        _ => EndingKind::Exit,
    }
}

/// The limit that the message of torch names: `... of which 30.5 GiB is free. 8.00 GiB allowed; Of the allocated memory ...`.
fn of_error(error: Option<&Uncaught>) -> Option<Limit> {
    let (before, _) = error?.text.split_once(" allowed; ")?;
    let mut words = before.rsplit(' ');
    let (unit, number) = (words.next()?, words.next()?);
    Some(Limit { kind: LimitKind::CudaFraction, bytes: size(number, unit)? })
}

/// `you tried to allocate 4096 bytes`, `Tried to allocate 2.50 GiB.`
fn asked_bytes(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("ried to allocate ")?;
    let mut words = rest.split_whitespace();
    size(words.next()?, words.next()?)
}

/// `2.50`, `GiB.`
fn size(number: &str, unit: &str) -> Option<u64> {
    let (number, unit) = (number.parse::<f64>().ok()?, unit.trim_end_matches(['.', ',']));
    let power = ["bytes", "KiB", "MiB", "GiB", "TiB"].iter().position(|known| *known == unit)?;
    Some((number * 1024_f64.powi(power as i32)) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use caulk_core::wire::{CodePlace, GpuRefusal};
    use caulk_core::{Diagnostic, RunInfo};

    use super::*;
    use crate::files::Sources;

    struct Nothing;

    impl Sources for Nothing {
        fn read(&self, _: &str) -> Option<String> {
            None
        }

        fn display(&self, path: &str) -> String {
            path.to_owned()
        }

        fn patterns(&self, _: &BTreeSet<String>) -> Vec<Diagnostic> {
            Vec::new()
        }
    }

    fn of(recording: &Recording) -> Option<Ending> {
        ending(&Files::new(&Nothing), recording, &[])
    }

    fn check(code: Option<i32>, error: Option<(&[&str], &str)>, kind: EndingKind, asked: Option<u64>) {
        let death = Death { code, signal: None, kill: None, text: String::new(), stopped: false };
        let info = RunInfo { death: Some(death), ..RunInfo::default() };
        let message = |(types, text): (&[&str], &str)| {
            let types = types.iter().map(|&name| name.to_owned()).collect();
            AgentEvent { time_ns: 0, pid: 7, message: Uncaught { types, text: text.to_owned() }.into() }
        };
        let events = error.map(message).into_iter().collect();
        let ended = of(&Recording { info, events, ..Recording::default() }).expect("it has ended");
        assert_eq!((ended.kind, ended.asked_bytes), (kind, asked), "{ended:?}");
    }

    #[test]
    fn an_end_is_told_by_the_error_that_nobody_caught() {
        check(Some(0), None, EndingKind::Ok, None);
        check(Some(3), None, EndingKind::Exit, None);
        check(Some(1), Some((&["KeyError", "LookupError"], "")), EndingKind::Exception, None);
        check(Some(1), Some((&["MemoryError", "Exception"], "")), EndingKind::MemoryError, None);
        let refused = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes. Error";
        check(Some(1), Some((&["RuntimeError"], refused)), EndingKind::MemoryError, Some(4096));
        let cuda = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of";
        let types: &[&str] = &["OutOfMemoryError", "RuntimeError"];
        check(Some(1), Some((types, cuda)), EndingKind::CudaOutOfMemory, Some(5 << 29));
        // Of a program that ended well an error of a thread is no end.
        check(Some(0), Some((&["KeyError"], "")), EndingKind::Ok, None);
    }

    #[test]
    fn the_guard_ends_a_run_and_a_program_may_limit_its_own_share_of_a_gpu() {
        let death = Death { code: Some(143), signal: None, kill: None, text: String::new(), stopped: true };
        let info = RunInfo { death: Some(death), ..RunInfo::default() };
        let ended = of(&Recording { info, ..Recording::default() }).expect("it has ended");
        assert_eq!(ended.kind, EndingKind::StoppedByCaulk);
        let limit = |text: &str| of_error(Some(&Uncaught { types: Vec::new(), text: text.to_owned() }));
        let text = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.11 GiB of which 30.50 GiB is \
                    free. 8.00 GiB allowed; Of the allocated memory 7.10 GiB is allocated by PyTorch";
        assert_eq!(limit(text), Some(Limit { kind: LimitKind::CudaFraction, bytes: 8 << 30 }));
        assert_eq!(limit("CUDA out of memory. Tried to allocate 2.50 GiB."), None);
    }

    #[test]
    fn the_allocators_own_figures_come_before_the_text_of_the_error() {
        let death = Death { code: Some(1), signal: None, kill: None, text: String::new(), stopped: false };
        let info = RunInfo { death: Some(death), ..RunInfo::default() };
        let refusal = |asked_bytes| GpuRefusal {
            asked_bytes,
            allocated_bytes: 900,
            reserved_bytes: 950,
            free_bytes: 5000,
            total_bytes: 8000,
            allowed_bytes: 1000,
            place: CodePlace { file: "a.py".into(), line: 3, function: "f".into() },
            ..GpuRefusal::default()
        };
        let text = "CUDA out of memory. Tried to allocate 2.00 KiB. GPU 0 has a total capacity of";
        let error = Uncaught { types: vec!["OutOfMemoryError".into()], text: text.into() };
        let event = |time_ns, message: Message| AgentEvent { time_ns, pid: 7, message };
        let events = vec![
            event(1, refusal(70).into()),
            event(2, refusal(100).into()),
            event(3, error.into()),
            event(4, refusal(999).into()),
        ];
        let ended = of(&Recording { info, events, ..Recording::default() }).expect("it has ended");
        assert_eq!((ended.kind, ended.asked_bytes), (EndingKind::CudaOutOfMemory, Some(100)));
        assert_eq!(ended.limit, Some(Limit { kind: LimitKind::CudaFraction, bytes: 1000 }));
        let gpu = ended.gpu.expect("it was seen");
        assert_eq!((gpu.shortage, gpu.file.as_str(), gpu.line), (GpuShortage::Fraction, "a.py", 3));
    }

    #[test]
    fn a_run_that_goes_on_has_no_end() {
        assert_eq!(of(&Recording::default()), None);
    }
}
