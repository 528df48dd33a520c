//! Has an interpreter with torch run a model on tensors without contents.

use std::fs;
use std::process::Command;

use anyhow::{Context, bail};
use caulk_plan::{Source, Trace};
use serde_json::{Value, json};

use crate::cli::PlanArgs;

/// What is run, in the package.
const HELPER: &str = "_plan.py";
/// Batches that are tried at most: the largest, then each at most half of the one before.
const BATCHES: usize = 8;

/// Counts what a model of the user's keeps, for every batch and mode that a plan may come to.
///
/// # Errors
/// If there is no package or interpreter, or the model cannot be made or run.
pub(crate) fn trace(args: &PlanArgs, batch: u64, accumulation: u64) -> anyhow::Result<Source> {
    let (model, input) =
        args.what.model.as_ref().zip(args.before.input.as_ref()).context("no model was named")?;
    if !model.split_once(':').is_some_and(|(module, name)| !module.is_empty() && !name.is_empty()) {
        bail!("`{model}` names no model\nhint: write its module and its name: `package.net:make`");
    }
    let runs: Vec<Value> = modes(args)
        .into_iter()
        .flat_map(|(mixed, checkpointing)| {
            let batches = batches(batch, batch.saturating_mul(accumulation)).into_iter();
            batches
                .map(move |batch| json!({ "batch": batch, "mixed": mixed, "checkpointing": checkpointing }))
        })
        .collect();
    let request = json!({ "model": model, "input": input.sizes, "whole": input.whole, "runs": runs });
    let answer = ask(args, &request)?;
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

/// 16 bit or not, computed again or not: all that the search may try.
fn modes(args: &PlanArgs) -> Vec<(bool, bool)> {
    let own = caulk_plan::Precision::from(args.before.precision).is_mixed();
    let mut modes = vec![(own, false), (true, false), (own, true), (true, true)];
    modes.sort_unstable();
    modes.dedup();
    modes
}

/// Divisors of the effective batch.
fn batches(batch: u64, effective: u64) -> Vec<u64> {
    let mut batches: Vec<u64> = Vec::new();
    for each in (1..=batch).rev().filter(|each| effective.is_multiple_of(*each)) {
        if each == 1 || batches.last().is_none_or(|last| each <= last / 2) {
            batches.push(each);
        }
    }
    batches.truncate(BATCHES);
    batches
}

/// Runs the helper: as text, so that no folder of caulk's own comes before the user's.
fn ask(args: &PlanArgs, request: &Value) -> anyhow::Result<Value> {
    let exe = std::env::current_exe().context("failed to find the command")?;
    let package = caulk_supervise::find_package(&exe).context(
        "the Python package of caulk is not found\nhint: install both together; `CAULK_PACKAGE` names its folder",
    )?;
    let helper = package.join(HELPER);
    let text = fs::read_to_string(&helper).with_context(|| format!("failed to read `{helper}`"))?;
    let candidates =
        args.python.as_ref().map_or_else(|| vec!["python", "python3"], |named| vec![named.as_str()]);
    let mut refusal = None;
    for candidate in candidates {
        match Command::new(candidate).arg("-c").arg(&text).arg(request.to_string()).output() {
            Err(error) => {
                refusal = Some(anyhow::Error::new(error).context(format!("`{candidate}` cannot be started")));
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                let answer = said.lines().rev().find_map(|line| line.strip_prefix("caulk:"));
                if let Some(answer) = answer.and_then(|line| serde_json::from_str(line).ok()) {
                    return Ok(answer);
                }
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.lines().next_back().unwrap_or("nothing");
                bail!(
                    "`{candidate}` ended with {}: {last}\nhint: name an interpreter that has torch with `--python`",
                    output.status
                );
            }
        }
    }
    Err(refusal.context("there is no interpreter")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_divide_the_effective_one_and_are_few() {
        assert_eq!(batches(16, 16), [16, 8, 4, 2, 1]);
        assert_eq!(batches(12, 24), [12, 6, 3, 1]);
        assert_eq!(batches(7, 7), [7, 1]);
        assert_eq!(batches(65536, 65536).len(), BATCHES);
    }
}
