//! `cargo xtask gpu-check`: the scenarios with their tensors on a GPU, here or on a machine that has one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::commands::develop::{self, Interpreter};
use crate::console::{self, failure};
use crate::environment::Packages;
use crate::gpu::results::{Judgement, Run};
use crate::gpu::{self, pack, record};
use crate::package::{self, Build};
use crate::process::Cmd;
use crate::workspace::Workspace;
use crate::zoo::truth::{self, Truth};

const PAGE: &str = "docs/gpu.md";
const FOLDER: &str = "target/gpu-check";
/// Runs everything where it always can: a test of the test.
const HOST: &str = "cpu";

/// Run the zoo's programs with their tensors on a GPU, and write docs/gpu.md; ends with 3 where there is no GPU
#[derive(Debug, clap::Args)]
pub(crate) struct GpuCheckArgs {
    /// Folder of the scenarios, each with a truth.toml [default: ../shared/leakzoo]
    path: Option<PathBuf>,
    /// Only these scenarios
    #[arg(long, value_name = "ID", num_args = 1..)]
    only: Vec<String>,
    /// Python with a torch for CUDA [default: that of .venv]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Device to move the programs to; `cpu` tests the machinery without a GPU
    #[arg(long, default_value = "cuda", value_name = "DEVICE")]
    device: String,
    /// Judge what came back from another machine: its folder `results`
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &GpuCheckArgs) -> anyhow::Result<()> {
    let zoo = args.path.clone().unwrap_or_else(|| workspace.path("../shared/leakzoo"));
    let scenarios = truth::read_all(&zoo, &args.only)?;
    if let Some(results) = &args.results {
        return judge(workspace, args, results, &scenarios);
    }
    let folder = workspace.path(FOLDER);
    let environment = develop::prepare(workspace, &Interpreter::default(), &[Packages::Dev], Build::Release)?;
    pack::write(&folder, &package::wheel(workspace)?, &scenarios)?;
    if args.device != HOST && !gpu::is_here() {
        return Err(gpu::missing(&folder));
    }
    let python = args.python.clone().unwrap_or_else(|| environment.bin("python"));
    console::step(format!("running {} scenarios on {}", scenarios.len(), args.device));
    Cmd::new(python).arg(pack::CHECK).arg(&args.device).folder(&folder).run()?;
    judge(workspace, args, &folder.join("results"), &scenarios)
}

/// Judges, reports, and records the result if it covers a GPU and all scenarios.
fn judge(
    workspace: &Workspace,
    args: &GpuCheckArgs,
    folder: &Path,
    scenarios: &[Truth],
) -> anyhow::Result<()> {
    let run = Run::read(folder)?;
    let results = run.judge(folder, scenarios);
    console::data(record::section(&run.machine, &results));
    if run.machine.device != HOST && args.only.is_empty() {
        let path = workspace.path(PAGE);
        let page = fs::read_to_string(&path).with_context(|| format!("failed to read {PAGE}"))?;
        let page = record::into_page(&page, &run.machine, &results)?;
        fs::write(&path, page).with_context(|| format!("failed to write {PAGE}"))?;
        console::note(format!("{PAGE} is updated"));
    }
    let wrong = results.iter().filter(|(_, result)| matches!(result, Judgement::Wrong(_))).count();
    if wrong == 0 {
        return Ok(());
    }
    let hint = format!("`{}` holds the reports and the recordings", folder.display());
    Err(failure(format!("{wrong} of {} programs were judged wrongly", results.len()), hint))
}
