//! `caulk doctor`: checks before a training, a job's account, messages in logs.

use std::fs;

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Bytes;
use caulk_doctor::logs::{Hit, Kind, scan};
use caulk_doctor::slurm::Step;
use caulk_doctor::{Check, CheckState, checks};
use serde_json::json;

use crate::cli::{DoctorArgs, Format};
use crate::printer::{self, Printer};
use crate::{doctor, exit};

/// Largest log that is read, in bytes.
const LONGEST_LOG: u64 = 512 << 20;
/// Lines shown of one log.
const SHOWN: usize = 5;

/// Checks what was asked for.
///
/// # Errors
/// If `sacct` cannot be asked, or a log is not there.
pub(crate) fn run(args: &DoctorArgs, printer: Printer) -> anyhow::Result<i32> {
    let (text, found) = if let Some(job) = &args.job {
        let steps = doctor::account(job)?;
        let found = steps.iter().any(Step::out_of_memory);
        (
            if args.format == Format::Json {
                format!("{:#}\n", json!({ "schema": 1, "job": steps }))
            } else {
                account(&steps)
            },
            found,
        )
    } else if !args.logs.is_empty() {
        let logs = logs(&args.logs, printer)?;
        let found = logs.iter().any(|(_, hits)| !hits.is_empty());
        (if args.format == Format::Json { messages_json(&logs) } else { messages(&logs) }, found)
    } else {
        let mut machine = doctor::machine();
        machine.python = Some(doctor::python(args.python.as_deref().map(Utf8Path::as_str)));
        let checks = checks(&machine);
        let found = checks.iter().any(|check| check.state == CheckState::Problem);
        let json = || format!("{:#}\n", json!({ "schema": 1, "checks": checks, "machine": machine }));
        (if args.format == Format::Json { json() } else { table(&checks) }, found)
    };
    printer::data(&text).context("failed to write to standard output")?;
    Ok(if found { exit::FOUND } else { exit::SUCCESS })
}

/// One line per check, and one for what to do.
pub(crate) fn table(checks: &[Check]) -> String {
    let mut lines = Vec::new();
    for check in checks {
        let state = match check.state {
            CheckState::Good => "good",
            CheckState::Unknown => "unknown",
            CheckState::Advice => "advice",
            CheckState::Problem => "problem",
        };
        lines.push(format!("{state:>8}  {:<14} {}", check.name, check.text));
        if !check.advice.is_empty() {
            lines.push(format!("{:>24} {}", "→", check.advice));
        }
    }
    lines.join("\n") + "\n"
}

fn account(steps: &[Step]) -> String {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes).to_string());
    let mut lines = vec![format!(
        "{:<16} {:<14} {:>12} {:>9} {:>9} {:>9}",
        "STEP", "STATE", "ELAPSED", "ASKED", "MAX RSS", "MAX VM"
    )];
    for step in steps {
        let asked = step.requested.or(step.granted);
        lines.push(format!(
            "{:<16} {:<14} {:>12} {:>9} {:>9} {:>9}",
            step.id,
            step.state,
            step.elapsed,
            size(asked),
            size(step.max_rss),
            size(step.max_vm)
        ));
    }
    if steps.iter().any(Step::out_of_memory) {
        lines.push(Kind::Killed.advice().into());
    }
    lines.push("SLURM samples memory every 30 s or so: the highest peaks may be missing".into());
    lines.join("\n") + "\n"
}

type Log = (Utf8PathBuf, Vec<Hit>);

/// Every file named, and every file below a folder named, with what it says.
fn logs(paths: &[Utf8PathBuf], printer: Printer) -> anyhow::Result<Vec<Log>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.exists() {
            bail!("`{path}` is not there");
        }
        gather(path, &mut files);
    }
    files.sort();
    files.dedup();
    let mut logs = Vec::new();
    for file in files {
        let length = fs::metadata(&file).map_or(0, |metadata| metadata.len());
        if length > LONGEST_LOG {
            printer.say(&format!(
                "`{file}` is left out: {} are more than {} allowed\n",
                Bytes(length),
                Bytes(LONGEST_LOG)
            ));
            continue;
        }
        match fs::read(&file) {
            Ok(bytes) => logs.push((file, scan(&String::from_utf8_lossy(&bytes)))),
            Err(error) => printer.say(&format!("`{file}` cannot be read: {error}\n")),
        }
    }
    Ok(logs)
}

fn gather(path: &Utf8Path, files: &mut Vec<Utf8PathBuf>) {
    // Links are not followed below what was named: they may lead anywhere, and back.
    if path.is_dir() {
        for entry in path.read_dir_utf8().into_iter().flatten().flatten() {
            if !entry.path().is_symlink() {
                gather(entry.path(), files);
            }
        }
    } else {
        files.push(path.to_owned());
    }
}

fn messages(logs: &[Log]) -> String {
    let mut lines = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    for (file, hits) in logs.iter().filter(|(_, hits)| !hits.is_empty()) {
        for hit in hits.iter().take(SHOWN) {
            lines.push(format!("{file}:{}: {}", hit.line, hit.text));
        }
        if hits.len() > SHOWN {
            lines.push(format!("{file}: and {} more such lines", hits.len() - SHOWN));
        }
        kinds.extend(hits.iter().map(|hit| hit.kind));
    }
    kinds.sort_unstable();
    kinds.dedup();
    lines.extend(kinds.iter().map(|kind| format!("→ {}", kind.advice())));
    let with = logs.iter().filter(|(_, hits)| !hits.is_empty()).count();
    lines.push(format!("{with} of {} files tell of memory that ran out", logs.len()));
    lines.join("\n") + "\n"
}

fn messages_json(logs: &[Log]) -> String {
    let files = logs.iter().filter(|(_, hits)| !hits.is_empty());
    let files: Vec<_> = files.map(|(file, hits)| json!({ "file": file, "hits": hits })).collect();
    format!("{:#}\n", json!({ "schema": 1, "files_read": logs.len(), "files": files }))
}
