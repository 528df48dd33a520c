//! One run as it stands: from its recording, and from what its report would say if it ended now.

use std::collections::BTreeMap;

use camino::Utf8Path;
use caulk_core::wire::{Message, NoteCode};
use caulk_core::{AgentEvent, Finding, GpuLedger, Recording, Sample, Severity, shown_name};
use caulk_report::{Report, outlook};
use serde::Serialize;

use crate::{assemble, lives};

/// A process that was not seen for so long has ended, in nanoseconds.
const GONE_NS: u64 = 3_000_000_000;

/// Speed is that of about so many seconds, in nanoseconds.
const SPEED_NS: u64 = 30_000_000_000;

/// Notes of a recording that were warnings when they were said.
const WARNED: [NoteCode; 2] = [NoteCode::Alarm, NoteCode::Guard];

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct View {
    /// Name of the run.
    pub(crate) id: String,
    /// Command and arguments.
    pub(crate) command: Vec<String>,
    /// Since its start, in seconds.
    pub(crate) duration_s: f64,
    /// Of the training.
    pub(crate) epochs: Option<u64>,
    /// Of the training.
    pub(crate) steps: Option<u64>,
    /// Steps per second, of late.
    pub(crate) steps_per_s: Option<f64>,
    /// Resident memory of the tree, in bytes.
    pub(crate) resident_bytes: u64,
    /// Highest so far, in bytes.
    pub(crate) peak_bytes: Option<u64>,
    /// Level and limit of the control group, in bytes.
    pub(crate) cgroup: Option<(u64, u64)>,
    /// `grows 16.5 MB per epoch`, `steady`.
    pub(crate) verdict: String,
    /// Until memory runs out, in seconds: from, to.
    pub(crate) oom_in_s: Option<[f64; 2]>,
    /// What leaks, the worst first: class and place.
    pub(crate) leaks: Vec<String>,
    /// GPUs, each as it was last seen.
    pub(crate) gpus: Vec<caulk_core::GpuSample>,
    /// Where the run's memory on each GPU is, by its number.
    pub(crate) ledgers: Vec<(u32, GpuLedger)>,
    /// Those that live.
    pub(crate) processes: Vec<Process>,
    /// Alarms, and what the guard did.
    pub(crate) warnings: Vec<String>,
}

/// A process that lives.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) role: &'static str,
    pub(crate) name: String,
    pub(crate) rss_bytes: u64,
    pub(crate) pss_bytes: Option<u64>,
    /// Cores that it uses, in percent of one.
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) threads: Option<u32>,
}

impl View {
    /// The run in this folder, now.
    ///
    /// # Errors
    /// If there is no recording in it.
    pub(crate) fn of(run: &Utf8Path) -> anyhow::Result<Self> {
        let life = lives::folder(run, lives::count(run));
        Ok(Self::from(&assemble::report(run)?, &caulk_record::read(&life)?))
    }

    fn from(report: &Report, life: &Recording) -> Self {
        let outlook = outlook(&report.verdicts);
        let last = life.system.last().copied().unwrap_or_default();
        let summary = &report.summary;
        let forecasts = report.verdicts.iter().filter_map(|verdict| verdict.oom_in_s);
        let leaks = report.findings.iter().filter(|finding| finding.severity > Severity::Info);
        let warnings = life.info.notes.iter().filter(|note| WARNED.contains(&note.code));
        Self {
            id: report.info.id.clone(),
            command: life.info.target.command.clone(),
            duration_s: summary.duration_s,
            epochs: summary.epochs,
            steps: summary.steps,
            steps_per_s: speed(&life.events),
            resident_bytes: last.tree_rss_bytes,
            peak_bytes: summary.peak_bytes.map(|peak| peak.max(last.tree_rss_bytes)),
            cgroup: last.cgroup_bytes.zip(life.info.limits.cgroup_bytes),
            verdict: outlook.brief(),
            oom_in_s: forecasts.min_by(|a, b| a[0].total_cmp(&b[0])),
            leaks: leaks.map(place).collect(),
            gpus: gpus(life),
            ledgers: report.gpus.iter().filter_map(|gpu| Some((gpu.device, gpu.ledger?))).collect(),
            processes: processes(life, last.time_ns),
            warnings: warnings.map(|note| note.text.clone()).collect(),
        }
    }
}

fn place(finding: &Finding) -> String {
    let class = finding.class.as_str();
    match finding.sites.first() {
        Some(site) => format!("{class} at {}:{}", shown_name(&site.file), site.line),
        None => class.to_owned(),
    }
}

/// Steps per second of the process that has made most, between its last boundary and one about half a minute before.
fn speed(events: &[AgentEvent]) -> Option<f64> {
    let boundaries = events.iter().filter_map(|event| match &event.message {
        Message::Boundary(boundary) if boundary.of == 0 => Some((event.pid, boundary)),
        _ => None,
    });
    let mut of_process: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for (pid, boundary) in boundaries {
        of_process.entry(pid).or_default().push((boundary.time_ns, boundary.steps));
    }
    let series = of_process.into_values().max_by_key(|series| series.last().map(|(_, steps)| *steps))?;
    let &(now, steps) = series.last()?;
    let &(then, before) = series.iter().rev().find(|(time, _)| time + SPEED_NS <= now).or(series.first())?;
    let seconds = now.saturating_sub(then) as f64 / 1e9;
    (seconds > 0.0 && steps > before).then(|| (steps - before) as f64 / seconds)
}

fn gpus(life: &Recording) -> Vec<caulk_core::GpuSample> {
    let whole = life.gpus.iter().filter(|gpu| gpu.pid.is_none());
    let last: BTreeMap<u32, &caulk_core::GpuSample> = whole.map(|gpu| (gpu.device, gpu)).collect();
    last.into_values().cloned().collect()
}

/// Processes that were there at the last look, the training first.
fn processes(life: &Recording, now_ns: u64) -> Vec<Process> {
    let records: BTreeMap<u32, _> = life.processes.iter().map(|record| (record.pid, record)).collect();
    let mut samples: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in &life.samples {
        samples.entry(sample.pid).or_default().push(sample);
    }
    let living = samples
        .into_iter()
        .filter(|(_, series)| series.last().is_some_and(|last| last.time_ns + GONE_NS >= now_ns));
    let mut rows: Vec<_> = living
        .filter_map(|(pid, series)| {
            let (record, last) = (records.get(&pid)?, series.last()?);
            let row = Process {
                pid,
                role: record.role.as_str(),
                name: record.name.clone(),
                rss_bytes: last.rss_bytes,
                pss_bytes: series.iter().rev().find_map(|sample| sample.pss_bytes),
                cpu_percent: cpu(&series),
                threads: series.iter().rev().find_map(|sample| sample.threads),
            };
            Some(((record.role, record.index), row))
        })
        .collect();
    rows.sort_by_key(|(order, row)| (*order, row.pid));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Between the last two looks that counted processor time.
fn cpu(series: &[&Sample]) -> Option<f64> {
    let mut counted = series.iter().rev().filter_map(|sample| Some((sample.time_ns, sample.cpu_ns?)));
    let (last, first) = (counted.next()?, counted.next()?);
    let seconds = last.0.saturating_sub(first.0) as f64;
    (seconds > 0.0).then(|| 100.0 * last.1.saturating_sub(first.1) as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use caulk_core::wire::Boundary;
    use caulk_core::{LeakClass, Note, ProcessRecord, Role, RunInfo, Settled, SystemSample};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn boundary(pid: u32, second: u64, steps: u64) -> AgentEvent {
        let boundary = Boundary { time_ns: second * SECOND, steps, ..Boundary::default() };
        AgentEvent { time_ns: second * SECOND, pid, message: Message::Boundary(boundary) }
    }

    #[test]
    fn speed_is_that_of_the_last_half_minute() {
        let slow_now =
            [boundary(1, 0, 0), boundary(1, 100, 1000), boundary(1, 110, 1050), boundary(1, 140, 1100)];
        let close = |events: &[AgentEvent], expected: f64| {
            let speed = speed(events).unwrap_or_default();
            assert!((speed - expected).abs() < 1e-9, "{speed}");
        };
        close(&slow_now, 50.0 / 30.0);
        close(&slow_now[..2], 10.0);
        close(&[boundary(2, 0, 0), boundary(1, 0, 0), boundary(2, 10, 5), boundary(1, 10, 50)], 5.0);
        assert_eq!(speed(&slow_now[..1]), None);
    }

    #[test]
    fn who_was_not_seen_at_the_last_looks_is_gone() {
        let sample = |pid, second: u64, cpu_ns| Sample {
            pid,
            time_ns: second * SECOND,
            cpu_ns: Some(cpu_ns),
            rss_bytes: 7,
            ..Sample::default()
        };
        let record = |pid, role| ProcessRecord { pid, role, ..ProcessRecord::default() };
        let life = Recording {
            processes: vec![record(1, Role::Main), record(2, Role::Worker), record(3, Role::Worker)],
            samples: vec![
                sample(3, 1, 0),
                sample(2, 8, 0),
                sample(1, 8, 0),
                sample(2, 10, SECOND / 2),
                sample(1, 10, 4 * SECOND),
            ],
            ..Recording::default()
        };
        let rows = processes(&life, 10 * SECOND);
        let brief: Vec<_> = rows.iter().map(|row| (row.pid, row.role, row.cpu_percent)).collect();
        assert_eq!(brief, [(1, "main", Some(200.0)), (2, "worker", Some(25.0))]);
    }

    #[test]
    fn a_run_is_what_its_report_would_say() {
        let finding =
            Finding::new(Settled { severity: Severity::Error, ..Settled::of(LeakClass::UnboundedHistory) });
        let notes = vec![
            Note::new(NoteCode::Alarm, "alarm: hot"),
            Note::new(NoteCode::NoAgent, "no numpy"),
            Note::new(NoteCode::Guard, "guard: asks"),
        ];
        let life = Recording {
            info: RunInfo { notes, ..RunInfo::default() },
            system: vec![SystemSample { tree_rss_bytes: 9, ..SystemSample::default() }],
            ..Recording::default()
        };
        let report = Report { findings: vec![finding], ..Report::default() };
        let view = View::from(&report, &life);
        assert_eq!((view.resident_bytes, view.verdict.as_str()), (9, "not known"));
        assert_eq!(view.leaks, ["unbounded-history"]);
        assert_eq!(view.warnings, ["alarm: hot", "guard: asks"]);
    }
}
