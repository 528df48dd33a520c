//! Questions to other programs: an interpreter, SLURM's accounting.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use anyhow::{Context, bail};
use caulk_doctor::Python;
use caulk_doctor::slurm::{self, Step};

/// What an interpreter prints of itself, as JSON; torch is imported, and CUDA is not begun unless it is there.
const SCRIPT: &str = r#"
import json, sys
facts = {"version": "%d.%d.%d" % sys.version_info[:3], "executable": sys.executable, "torch": None, "torch_error": None,
         "cuda": None, "cuda_available": False, "threads": None, "gpus": []}
try:
    from importlib.metadata import version
    facts["torch"] = version("torch")
except Exception:
    pass
if facts["torch"]:
    try:
        import torch
        facts["torch"], facts["cuda"] = torch.__version__, torch.version.cuda
        facts["threads"] = torch.get_num_threads()
        facts["cuda_available"] = torch.cuda.is_available()
        for index in range(torch.cuda.device_count() if facts["cuda_available"] else 0):
            known = torch.cuda.get_device_properties(index)
            free, total = torch.cuda.mem_get_info(index)
            facts["gpus"].append({"name": known.name, "total": total, "free": free,
                                  "capability": [known.major, known.minor]})
    except Exception as error:
        facts["torch_error"] = "%s: %s" % (type(error).__name__, str(error).split("\n")[0])
print("\ncaulk:" + json.dumps(facts))
"#;

/// Asks an interpreter; the error says why it could not be asked.
pub(crate) fn python(executable: Option<&str>) -> Result<Python, String> {
    let candidates = executable.map_or_else(|| vec!["python", "python3"], |named| vec![named]);
    let mut cause = String::new();
    for candidate in candidates {
        match Command::new(candidate).args(["-c", SCRIPT]).output() {
            Err(error) => cause = format!("`{candidate}` cannot be started: {error}"),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                let line = text.lines().rev().find_map(|line| line.strip_prefix("caulk:"));
                let facts = line.and_then(|line| serde_json::from_str(line).ok());
                return facts.ok_or_else(|| no_answer(candidate, &output));
            }
        }
    }
    Err(cause)
}

/// Why a program that was asked as an interpreter has not answered: how it ended, and the last that it said of that.
pub(crate) fn no_answer(program: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let how = match (output.status.code(), output.status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".into(),
    };
    match (output.status.success(), last) {
        (true, None) => format!("`{program}` is no Python interpreter: it {how} and no answer"),
        (true, Some(last)) => {
            format!("`{program}` is no Python interpreter: it {how} and no answer but: {last}")
        }
        (false, None) => format!("`{program}` {how} and said nothing"),
        (false, Some(last)) => format!("`{program}` {how}: {last}"),
    }
}

/// Asks SLURM's accounting about a job.
///
/// # Errors
/// If `sacct` cannot be started, fails, or knows no such job.
pub(crate) fn account(job: &str) -> anyhow::Result<Vec<Step>> {
    let mut command = Command::new("sacct");
    command.args(["--parsable2", "--noheader", "--jobs", job, "--format", slurm::FIELDS]);
    let output = command.output().context(
        "`sacct` cannot be started\nhint: it belongs to SLURM: ask on a login node of the cluster",
    )?;
    if !output.status.success() {
        bail!(no_answer("sacct", &output));
    }
    let steps = slurm::parse(&String::from_utf8_lossy(&output.stdout));
    if steps.is_empty() {
        bail!(
            "SLURM's accounting knows no job {job}\nhint: old ones may be gone; another cluster's may be known there"
        );
    }
    Ok(steps)
}
