//! Runs a training for some steps under the supervisor, and reads what its processes held.

use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::{Boundary, Message};
use caulk_core::{Bytes, Recording, Role};
use caulk_plan::{Estimate, Measured};
use rustix::process::{Pid, Signal, kill_process};

use super::progress::{Progress, Step};
use crate::cli::PlanArgs;
use crate::printer::Printer;
use crate::{places, summary};

/// Between two looks at how far the training is.
const PAUSE: Duration = Duration::from_millis(500);
/// Time that the training has to end itself when it is asked to.
const GRACE: Duration = Duration::from_secs(30);

/// Runs the command until it has made its steps, ends it, and says what it held.
///
/// # Errors
/// If it cannot be started, or makes no step.
pub(crate) fn measure(args: &PlanArgs, printer: Printer) -> anyhow::Result<Measured> {
    let temporary = tempfile::tempdir().context("failed to make a folder for the recording")?;
    let folder = Utf8PathBuf::from_path_buf(temporary.path().join("run"))
        .map_err(|path| anyhow::anyhow!("`{}` is no name in UTF-8", path.display()))?;
    // The steps are read from the recording while it is made.
    places::room(folder.parent().unwrap_or(&folder)).context("there is no room for the recording")?;
    let mut command = Command::new(std::env::current_exe().context("failed to find the command")?);
    command.args(["run", "--quiet", "--output", folder.as_str(), "--"]).args(&args.what.command);
    // What the training prints must not stand among the plan.
    command.stdin(Stdio::null()).stdout(io::stderr().as_fd().try_clone_to_owned()?);
    printer.say(&format!("caulk: the training is run for {} steps, or {} s\n", args.steps, args.seconds));
    caulk_supervise::as_found(&mut command);
    let child = command.spawn().context("failed to start `caulk run`")?;
    let step = Progress::new(args.progress, printer).begin("plan: the training starts");
    let ended_itself = conduct(child, &folder, args, step)?;
    if !folder.exists() {
        bail!("the command could not be started");
    }
    let seen = of_run(&folder)?;
    if seen.steps == 0 && ended_itself != Some(0) {
        bail!(
            "the training made no step\nhint: `caulk run -- ...` shows what happens; `--seconds` gives it more time"
        );
    }
    Ok(seen)
}

/// Waits for the steps; the exit code where the training ended before.
fn conduct(
    mut child: Child,
    folder: &Utf8Path,
    args: &PlanArgs,
    mut step: Step,
) -> anyhow::Result<Option<i32>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        // Not there at first.
        let recording = caulk_record::read(folder).unwrap_or_default();
        let steps = summary::of(&recording).steps.unwrap_or(0);
        step.tick(|seconds| {
            let resident = recording.system.last().map_or(0, |sample| sample.tree_rss_bytes);
            let (resident, wanted, most) = (Bytes(resident), args.steps, args.seconds);
            format!("plan: {steps} of {wanted} steps, {seconds} of {most} s, {resident} resident")
        });
        if steps >= args.steps || began.elapsed() >= Duration::from_secs(args.seconds) {
            return stop(child, folder).map(|()| None);
        }
        sleep(PAUSE);
    }
}

/// Asks the training to end, through the supervisor, and makes it do so where it does not.
fn stop(mut child: Child, folder: &Utf8Path) -> anyhow::Result<()> {
    let signal = |pid: u32, signal| {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // Whoever has gone needs no signal.
            let _ = kill_process(pid, signal);
        }
    };
    signal(child.id(), Signal::TERM);
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > GRACE
            && let Ok(info) = caulk_record::read_info(folder)
        {
            signal(info.root_pid, Signal::KILL);
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// What the processes of a recorded run held.
///
/// # Errors
/// If there is no recording.
pub(crate) fn of_run(folder: &Utf8Path) -> anyhow::Result<Measured> {
    Ok(of(&caulk_record::read(folder)?))
}

fn of(recording: &Recording) -> Measured {
    let highest = |pid: u32, bytes: fn(&caulk_core::Sample) -> Option<u64>| {
        recording.samples.iter().filter(|sample| sample.pid == pid).filter_map(bytes).max()
    };
    let of_role =
        |wanted: fn(Role) -> bool| recording.processes.iter().filter(move |process| wanted(process.role));
    let training = of_role(|role| matches!(role, Role::Main | Role::Rank));
    let training: u64 =
        training.filter_map(|process| highest(process.pid, |look| Some(look.rss_bytes))).sum();
    let of_boundary = |pid: u32, bytes: fn(&Boundary) -> u64| {
        let own = recording
            .events
            .iter()
            .filter(|event| event.pid == pid)
            .filter_map(|event| boundary(&event.message));
        own.map(bytes).filter(|bytes| *bytes > 0).max()
    };
    let private = |pid: u32| {
        let counted =
            highest(pid, |look| look.private_dirty_bytes).or_else(|| of_boundary(pid, |b| b.private_bytes));
        let anonymous =
            highest(pid, |look| Some(look.rss_bytes.saturating_sub(look.shared_bytes))).unwrap_or(0);
        // Where pages were not counted, some may still be its parent's: those that it was forked with.
        counted.map_or_else(
            || Estimate::between(0.0, anonymous as f64 / 2.0, anonymous as f64),
            |own| Estimate::exact(own as f64),
        )
    };
    let workers = of_role(|role| role == Role::Worker).map(|process| private(process.pid));
    let worker = workers.reduce(Estimate::max).unwrap_or_default();
    let reserved =
        recording.events.iter().filter_map(|event| boundary(&event.message)).map(|b| b.cuda_reserved_bytes);
    Measured {
        steps: summary::of(recording).steps.unwrap_or(0),
        training: training as f64,
        workers: most_at_once(recording),
        loaders: has_loaders(recording),
        worker,
        gpu_reserved: reserved.max().unwrap_or(0) as f64,
    }
}

fn boundary(message: &Message) -> Option<&Boundary> {
    if let Message::Boundary(boundary) = message { Some(boundary) } else { None }
}

/// Has a `DataLoader` begun workers? They say so themselves, or have the name that torch gives them.
fn has_loaders(recording: &Recording) -> bool {
    let says = recording
        .events
        .iter()
        .any(|event| matches!(&event.message, Message::Hello(hello) if hello.worker.is_some()));
    says || recording.processes.iter().any(|process| process.name.starts_with("pt_data_worker"))
}

/// Workers that lived at the same time.
fn most_at_once(recording: &Recording) -> u64 {
    let workers: Vec<_> = recording.processes.iter().filter(|process| process.role == Role::Worker).collect();
    let alive =
        |at: u64| workers.iter().filter(|worker| worker.first_ns <= at && at <= worker.last_ns).count();
    workers.iter().map(|worker| alive(worker.first_ns)).max().unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use caulk_core::{ProcessRecord, Sample};

    use super::*;

    #[test]
    fn workers_count_by_what_is_their_own() {
        let process = |pid, role, first_ns, last_ns| ProcessRecord {
            pid,
            role,
            first_ns,
            last_ns,
            ..ProcessRecord::default()
        };
        let look = |pid, rss_bytes, shared_bytes, private| Sample {
            pid,
            rss_bytes,
            shared_bytes,
            private_dirty_bytes: private,
            ..Sample::default()
        };
        let recording = Recording {
            processes: vec![
                process(1, Role::Main, 0, 100),
                process(2, Role::Worker, 10, 50),
                process(3, Role::Worker, 20, 60),
                process(4, Role::Worker, 70, 90),
            ],
            samples: vec![
                look(1, 500, 0, None),
                look(1, 400, 0, None),
                look(2, 300, 250, None),
                look(3, 300, 250, Some(20)),
            ],
            ..Recording::default()
        };
        let seen = of(&recording);
        assert_eq!((seen.workers, seen.steps), (2, 0));
        assert!(
            (seen.training - 500.0).abs() < 1.0 && seen.worker == Estimate::between(20.0, 25.0, 50.0),
            "{seen:?}"
        );
    }
}
