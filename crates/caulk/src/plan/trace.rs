//! Has an interpreter with torch run a model on tensors without contents.

use std::ffi::OsString;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use caulk_plan::{Optimizer, Precision, Source, Trace};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Value, json};

use super::progress::Progress;
use crate::cli::{self, PlanArgs};
use crate::doctor;

/// What is run, in the package, and what it loads beside itself.
const HELPER: &str = "_plan.py";
const CUDA: &str = "_plan_cuda.py";

/// Counts what a model of the user's keeps, for every batch and mode that a plan may come to.
///
/// # Errors
/// If there is no package or interpreter, or the model cannot be made or run.
pub(crate) fn trace(
    args: &PlanArgs,
    batch: u64,
    accumulation: u64,
    progress: Progress,
) -> anyhow::Result<Source> {
    let (model, input) =
        args.what.model.as_ref().zip(args.before.input.as_ref()).context("no model was named")?;
    if !model.split_once(':').is_some_and(|(module, name)| !module.is_empty() && !name.is_empty()) {
        bail!("`{model}` names no model\nhint: write its module and its name: `package.net:make`");
    }
    let request = json!({
        "model": model, "input": input.sizes, "whole": input.whole, "batch": batch, "accumulation": accumulation,
        "modes": modes(args),
    });
    let named = args.python.as_ref().map(|named| named.as_str().into());
    let candidates = named.map_or_else(|| vec!["python".into(), "python3".into()], |named| vec![named]);
    let what = "plan: the model is run on tensors without contents";
    let answer = progress.during(what, || ask(&candidates, &request))?;
    if let Some(cause) = answer["error"].as_str() {
        bail!(
            "`{model}` cannot be run without memory: {cause}\nhint: the factory takes no argument and the model one tensor of \
             {:?}; `--config` describes any other by its layers",
            input.sizes
        );
    }
    Ok(Source::Trace(
        serde_json::from_value::<Trace>(answer).context("the interpreter's answer is not understood")?,
    ))
}

/// A training's model, and how it is trained now.
#[derive(Debug, Deserialize)]
pub(crate) struct Found {
    pub(crate) batch: u64,
    /// Forward passes of one optimizer step.
    pub(crate) accumulation: u64,
    /// By the name that `--optimizer` has for it.
    optimizer: String,
    mixed: bool,
    /// What it gets its batches from.
    pub(crate) loader: Option<FoundLoader>,
}

/// A training's `DataLoader`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct FoundLoader {
    pub(crate) prefetch_factor: Option<u64>,
    pub(crate) pin_memory: bool,
    pub(crate) persistent_workers: bool,
}

impl Found {
    pub(crate) fn optimizer(&self) -> Optimizer {
        <cli::Optimizer as ValueEnum>::from_str(&self.optimizer, false).unwrap_or_default().into()
    }

    pub(crate) fn precision(&self) -> Precision {
        if self.mixed { cli::Precision::Half } else { cli::Precision::Full }.into()
    }
}

/// Counts what the model keeps that a command trains, which is run up to its first optimizer step.
///
/// # Errors
/// If the command is no Python program, or its model cannot be found or run.
pub(crate) fn trace_training(args: &PlanArgs, progress: Progress) -> anyhow::Result<(Source, Found)> {
    let (python, words) = python_program(&args.what.command)?;
    let request = json!({ "words": words, "seconds": args.seconds, "modes": all_modes() });
    let what = "plan: the training runs to its first step, then its model on tensors without contents";
    let mut answer = progress.during(what, || ask(&[python], &request))?;
    if let Some(cause) = answer["error"].as_str() {
        bail!("its model cannot be run without memory: {cause}");
    }
    let found = serde_json::from_value(answer["training"].take());
    let trace = serde_json::from_value::<Trace>(answer);
    let (trace, found) =
        trace.and_then(|trace| Ok((trace, found?))).context("the interpreter's answer is not understood")?;
    Ok((Source::Trace(trace), found))
}

/// The interpreter, and what it is to run: a file or `-m` and a module, with their arguments.
fn python_program(command: &[OsString]) -> anyhow::Result<(OsString, Vec<String>)> {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_python = |word: &String| word.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    let flags =
        words.iter().skip(1).take_while(|word| *word == "-u" || *word == "-O" || *word == "-B").count();
    let rest = words.get(1 + flags..).unwrap_or_default();
    let runs = match rest {
        [first, _, ..] if first == "-m" => true,
        [first, ..] => !first.starts_with('-'),
        [] => false,
    };
    if !(words.first().is_some_and(is_python) && runs) {
        bail!("the command is neither `python FILE` nor `python -m MODULE`");
    }
    Ok((command[0].clone(), rest.to_vec()))
}

/// 16 bit or not, computed again or not: all that the search may try from the precision that is used now.
fn modes(args: &PlanArgs) -> Vec<Value> {
    let own = caulk_plan::Precision::from(args.before.precision).is_mixed();
    all_modes().into_iter().filter(|mode| !own || mode["mixed"] == true).collect()
}

fn all_modes() -> Vec<Value> {
    let modes = [(false, false), (true, false), (false, true), (true, true)];
    modes.map(|(mixed, checkpointing)| json!({ "mixed": mixed, "checkpointing": checkpointing })).into()
}

/// Runs the helper: as text, so that no folder of caulk's own comes before the user's.
fn ask(candidates: &[OsString], request: &Value) -> anyhow::Result<Value> {
    let exe = std::env::current_exe().context("failed to find the command")?;
    let package = caulk_supervise::find_package(&exe).context(
        "the Python package of caulk is not found\nhint: install both together; `CAULK_PACKAGE` names its folder",
    )?;
    let helper = package.join(HELPER);
    let text = fs::read_to_string(&helper).with_context(|| format!("failed to read `{helper}`"))?;
    let mut request = request.clone();
    request["cuda"] = package.join(CUDA).as_str().into();
    let mut refusal = None;
    for candidate in candidates {
        let name = candidate.display();
        match Command::new(candidate)
            .stdin(Stdio::null())
            .arg("-c")
            .arg(&text)
            .arg(request.to_string())
            .output()
        {
            Err(error) => {
                refusal = Some(anyhow::Error::new(error).context(format!("`{name}` cannot be started")));
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                let answer = said.lines().rev().find_map(|line| line.strip_prefix("caulk:"));
                if let Some(answer) = answer.and_then(|line| serde_json::from_str(line).ok()) {
                    return Ok(answer);
                }
                let cause = doctor::no_answer(&name.to_string(), &output);
                bail!("{cause}\nhint: name an interpreter that has torch with `--python`");
            }
        }
    }
    Err(refusal.context("there is no interpreter")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &[&str], expected: Option<(&str, &[&str])>) {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let found = python_program(&command).ok();
        let expected =
            expected.map(|(python, words)| (python.into(), words.iter().map(ToString::to_string).collect()));
        assert_eq!(found, expected, "{command:?}");
    }

    #[test]
    fn python_programs_are_files_and_modules() {
        check(&["python", "train.py", "-u"], Some(("python", &["train.py", "-u"])));
        check(
            &["/a/bin/python3.12", "-u", "-m", "pkg.train"],
            Some(("/a/bin/python3.12", &["-m", "pkg.train"])),
        );
        check(&["torchrun", "train.py"], None);
        check(&["python", "-c", "1"], None);
        check(&["python", "-m"], None);
        check(&["python"], None);
    }
}
