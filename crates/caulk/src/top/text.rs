//! Runs that go on, as a page for a terminal.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use caulk_core::{Bytes, GpuSample, Slowed};

use super::machine::Machine;
use super::view::{Process, View};
use crate::brief::{brief, clip};

/// Warnings of a run that are shown, the newest.
const WARNINGS: usize = 4;
/// Leaks of a run that are shown.
const LEAKS: usize = 3;
/// Processes of a run that are shown.
const PROCESSES: usize = 20;

/// All runs, and the folders of such that cannot be read; each line fits into the width. `help` says which keys do something.
pub(crate) fn text(
    machine: &Machine,
    runs: &[View],
    closed: &[Utf8PathBuf],
    width: usize,
    help: &str,
) -> String {
    let mut lines = vec![format!("{}   {help}", machine.text()).trim_end().to_owned()];
    if runs.is_empty() && closed.is_empty() {
        lines.push(String::new());
        lines.push("no run goes on; start one with `caulk run -- COMMAND`".into());
    }
    for run in runs {
        lines.push(String::new());
        lines.extend(of_run(run));
    }
    for folder in closed {
        lines.push(String::new());
        lines.push(format!("`{folder}` goes on and cannot be read: permission denied"));
    }
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{}", clip(line, width));
        text
    })
}

fn of_run(run: &View) -> Vec<String> {
    let mut lines = vec![format!("{}  {}", run.id, brief(&run.command))];
    let mut add = |name: &str, text: String| lines.push(format!("  {name:<8} {text}"));
    add("progress", progress(run));
    add("memory", memory(run));
    add("verdict", verdict(run));
    run.leaks.iter().take(LEAKS).for_each(|leak| add("leak", leak.clone()));
    run.gpus.iter().for_each(|gpu| add(&format!("GPU {}", gpu.device), of_gpu(gpu)));
    run.ledgers
        .iter()
        .for_each(|(device, ledger)| add(&format!("GPU {device}"), caulk_report::ledger_text(ledger)));
    let first = run.warnings.len().saturating_sub(WARNINGS);
    for warning in &run.warnings[first..] {
        let (kind, text) = warning.split_once(": ").unwrap_or(("alarm", warning));
        add(kind, text.to_owned());
    }
    lines.push("       PID  ROLE         RSS        PSS    CPU  THREADS  NAME".into());
    lines.extend(run.processes.iter().take(PROCESSES).map(of_process));
    if let Some(more) = run.processes.len().checked_sub(PROCESSES).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more"));
    }
    lines
}

fn progress(run: &View) -> String {
    let count = |number: Option<u64>, name: &str| {
        number.map(|number| format!("{number} {name}{}", if number == 1 { "" } else { "s" }))
    };
    let speed = run.steps_per_s.map(|speed| match speed {
        speed if speed >= 1.0 => format!("{speed:.1} steps/s"),
        speed => format!("{:.1} s per step", 1.0 / speed),
    });
    let all = [
        Some(caulk_report::seconds(run.duration_s)),
        count(run.epochs, "epoch"),
        count(run.steps, "step"),
        speed,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn memory(run: &View) -> String {
    let mut text = format!("{} resident", Bytes(run.resident_bytes));
    if let Some(peak) = run.peak_bytes {
        let _ = write!(text, ", at most {}", Bytes(peak));
    }
    if let Some((level, limit)) = run.cgroup {
        let _ = write!(text, "; {} of {} in its control group", Bytes(level), Bytes(limit));
    }
    text
}

fn verdict(run: &View) -> String {
    let mut text = run.verdict.clone();
    if let Some([soon, late]) = run.oom_in_s {
        let [soon, late] = [soon, late].map(caulk_report::seconds);
        let _ = write!(text, ", memory runs out in {soon} to {late}");
    }
    text
}

fn of_gpu(gpu: &GpuSample) -> String {
    let mut text = Bytes(gpu.used_bytes).to_string();
    if let Some(total) = gpu.total_bytes {
        let _ = write!(text, " of {}", Bytes(total));
    }
    if let Some(busy) = gpu.busy_percent {
        let _ = write!(text, ", {busy} % busy");
    }
    if let Some(celsius) = gpu.celsius {
        let _ = write!(text, ", {celsius} °C");
    }
    match gpu.slowed {
        Some(Slowed::Heat) => text.push_str(", slowed by heat"),
        Some(Slowed::Hardware) => text.push_str(", slowed by its hardware"),
        Some(Slowed::Power) | None => {}
    }
    if !gpu.name.is_empty() {
        let _ = write!(text, "  {}", gpu.name);
    }
    text
}

fn of_process(process: &Process) -> String {
    let Process { pid, role, name, rss_bytes, pss_bytes, cpu_percent, threads } = process;
    let unknown = || "-".to_owned();
    let pss = pss_bytes.map_or_else(unknown, |bytes| Bytes(bytes).to_string());
    let cpu = cpu_percent.map_or_else(unknown, |percent| format!("{percent:.0} %"));
    let threads = threads.map_or_else(unknown, |threads| threads.to_string());
    let rss = Bytes(*rss_bytes).to_string();
    format!("  {pid:>8}  {role:<6}  {rss:>9}  {pss:>9}  {cpu:>5}  {threads:>7}  {name}")
}

#[cfg(test)]
mod tests {
    use caulk_core::GpuLedger;

    use super::*;

    const MB: u64 = Bytes::MB;

    fn machine() -> Machine {
        Machine { available_bytes: 900 * MB, physical_bytes: 4096 * MB, load: 1.25, celsius: Some(61.4) }
    }

    #[test]
    fn a_run_is_told_from_its_progress_to_its_processes() {
        let process = Process {
            pid: 1234,
            role: "main",
            name: "python".into(),
            rss_bytes: 693 * MB,
            pss_bytes: Some(600 * MB),
            cpu_percent: Some(99.6),
            threads: Some(14),
        };
        let worker = Process { pid: 1240, role: "worker", name: "python".into(), ..Process::default() };
        let gpu = GpuSample {
            device: 0,
            used_bytes: 3000 * MB,
            total_bytes: Some(4096 * MB),
            celsius: Some(91),
            busy_percent: Some(97),
            slowed: Some(Slowed::Heat),
            name: "NVIDIA GeForce GTX 1650".into(),
            ..GpuSample::default()
        };
        let run = View {
            id: "20261122-053825-train".into(),
            command: ["/envs/a/bin/python", "train.py"].map(str::to_owned).into(),
            duration_s: 125.0,
            epochs: Some(3),
            steps: Some(480),
            steps_per_s: Some(0.4),
            resident_bytes: 700 * MB,
            peak_bytes: Some(710 * MB),
            cgroup: Some((800 * MB, 1024 * MB)),
            verdict: "grows 16.5 MB per epoch".into(),
            oom_in_s: Some([600.0, 720.0]),
            leaks: vec!["graph-kept-in-container at train.py:84".into()],
            gpus: vec![gpu],
            ledgers: vec![(0, GpuLedger { used: 800 * MB, torch_live: 800 * MB, ..GpuLedger::default() })],
            processes: vec![process, worker],
            warnings: vec!["alarm: GPU 0: 91 °C; it slows itself down".into()],
        };
        insta::assert_snapshot!(text(&machine(), &[run], &[], 100, "q quits"), @"
        900 MB of 4.00 GB free, load 1.2, processor 61 °C   q quits

        20261122-053825-train  python train.py
          progress 2 min 5 s, 3 epochs, 480 steps, 2.5 s per step
          memory   700 MB resident, at most 710 MB; 800 MB of 1.00 GB in its control group
          verdict  grows 16.5 MB per epoch, memory runs out in 10 min to 12 min
          leak     graph-kept-in-container at train.py:84
          GPU 0    2.93 GB of 4.00 GB, 97 % busy, 91 °C, slowed by heat  NVIDIA GeForce GTX 1650
          GPU 0    this run has 800 MB: 800 MB tensors
          alarm    GPU 0: 91 °C; it slows itself down
               PID  ROLE         RSS        PSS    CPU  THREADS  NAME
              1234  main       693 MB     600 MB  100 %       14  python
              1240  worker        0 B          -      -        -  python
        ");
    }

    #[test]
    fn where_nothing_runs_that_is_said() {
        insta::assert_snapshot!(text(&machine(), &[], &[], 100, ""), @"
        900 MB of 4.00 GB free, load 1.2, processor 61 °C

        no run goes on; start one with `caulk run -- COMMAND`
        ");
    }
}
