//! `caulk plan`: a model's memory, and settings that fit.

use std::fs;

use anyhow::{Context, ensure};
use camino::Utf8Path;
use caulk_plan::{
    Machine, Measured, MeasuredPlan, Model, Settings, Source, advice, changes, memory, plan_measured, preset,
};
use serde_json::json;

use crate::cli::{Format, PlanArgs};
use crate::places::Places;
use crate::plan::{Document, Outcome, Progress};
use crate::printer::{self, Printer};
use crate::{exit, files, plan};

/// Plans, prints, writes.
///
/// # Errors
/// If the model cannot be read or computed, the GPU is not known, or the file cannot be written.
pub(crate) fn run(args: &PlanArgs, printer: Printer) -> anyhow::Result<i32> {
    if let Some(name) = &args.what.print_config {
        printer::data(caulk_plan::preset_text(name)?).context("failed to write to standard output")?;
        return Ok(exit::SUCCESS);
    }
    let machine = plan::machine(args, printer)?;
    if !args.what.command.is_empty() || args.what.run.is_some() {
        return measured(args, &machine, printer);
    }
    let source = source(args, printer)?;
    let before = plan::before(args, &source);
    if machine.gpu.is_none() && machine.ram.is_none() && args.output.is_none() && args.format == Format::Text
    {
        printer::data(&plan::sizes(&source, &before, &machine, args.explain)?)?;
        return Ok(exit::SUCCESS);
    }
    let outcome = outcome(&source, before, &machine)?;
    told(args, &source, &machine, &outcome)
}

/// Prints and writes what was found.
fn told(args: &PlanArgs, source: &Source, machine: &Machine, outcome: &Outcome) -> anyhow::Result<i32> {
    let shown = match args.format {
        Format::Text => plan::text(source, machine, outcome, args.explain)?,
        Format::Json => json(source, machine, outcome)?,
    };
    if let Some(path) = &args.output {
        let is_json = path.extension() == Some("json");
        let text = if is_json { json(source, machine, outcome)? } else { yaml(source, machine, outcome)? };
        files::write(path, text)?;
    }
    printer::data(&shown).context("failed to write to standard output")?;
    Ok(if outcome.plan.fits_gpu && outcome.plan.fits_host { exit::SUCCESS } else { exit::FOUND })
}

/// Runs a training for some steps, or takes a run that was recorded, and plans with what was seen; for a GPU that it has
/// not used, with what its model would need there.
fn measured(args: &PlanArgs, machine: &Machine, printer: Printer) -> anyhow::Result<i32> {
    let seen = match &args.what.run {
        Some(run) => plan::of_run(&Places::here().resolve(run)?)?,
        None => plan::measure(args, printer)?,
    };
    let found = plan_measured(&seen, machine);
    if found.fits_gpu.is_none() {
        match for_gpu(args, &seen, &found, machine, Progress::new(args.progress, printer)) {
            Ok((source, outcome)) => {
                let steps = seen.steps;
                printer.note(&format!(
                    "the host was measured over {steps} steps, which used no GPU; that is predicted"
                ));
                return told(args, &source, machine, &outcome);
            }
            Err(error) => {
                let error = error.context("it used no GPU, so that nothing is said of one");
                printer.warn_of(&error, Some("hint: `--model` counts a model for a GPU without having it"));
            }
        }
    }
    let nothing = || Document { schema: plan::SCHEMA, ..Document::default() };
    let document = if seen.loaders { Document::for_workers(found.workers) } else { nothing() };
    let mut json = serde_json::to_value(&document)?;
    json["basis"] = "measured".into();
    json["measured"] = json!(seen);
    json["plan"] = json!(found);
    let json = format!("{json:#}\n");
    if let Some(path) = &args.output {
        let head = ["caulk plan".to_owned(), format!("measured over {} steps", seen.steps)];
        let yaml = plan::yaml(&document, &head, &[], &[]);
        files::write(path, if path.extension() == Some("json") { &json } else { &yaml })?;
    }
    let text = plan::measured(&seen, &found, machine, args.explain);
    printer::data(if args.format == Format::Json { &json } else { &text })?;
    Ok(if found.fits_gpu != Some(false) && found.fits_host { exit::SUCCESS } else { exit::FOUND })
}

/// What a training's own model needs on the GPU, found by running it up to its first optimizer step; on the host it needs
/// what was measured.
fn for_gpu(
    args: &PlanArgs,
    seen: &Measured,
    measured: &MeasuredPlan,
    machine: &Machine,
    progress: Progress,
) -> anyhow::Result<(Source, Outcome)> {
    ensure!(!args.what.command.is_empty(), "a run that was recorded cannot be looked into again");
    let (source, found) = plan::trace_training(args, progress)?;
    let mut before = Settings {
        batch: found.batch,
        validation_batch: found.batch,
        accumulation: found.accumulation,
        precision: found.precision(),
        optimizer: found.optimizer(),
        ..plan::before(args, &source)
    };
    let has_loader = seen.loaders || found.loader.is_some();
    // Workers of a pool are none of a loader's.
    plan::set_loader(&mut before, found.loader, if has_loader { measured.workers } else { 0 });
    // The host is planned for already.
    let alone = Machine { ram: None, ..machine.clone() };
    let mut outcome = outcome(&source, before, &alone)?;
    if !has_loader {
        outcome.leave_loaders_out();
    }
    outcome.plan.memory.host.clone_from(&measured.after.host);
    outcome.plan.fits_host = measured.fits_host;
    if let Some(memory) = &mut outcome.memory_before {
        memory.host.clone_from(&measured.before.host);
    }
    Ok((source, outcome))
}

fn source(args: &PlanArgs, printer: Printer) -> anyhow::Result<Source> {
    if let Some(name) = &args.what.preset {
        return Ok(Source::Layers(Box::new(preset(name)?)));
    }
    if args.what.model.is_some() {
        let usual = caulk_plan::Training::default();
        let batch = args.before.batch.unwrap_or(usual.batch);
        let accumulation = args.before.accumulation.unwrap_or(usual.accumulation);
        return plan::trace(args, batch, accumulation, Progress::new(args.progress, printer));
    }
    let path = args.what.config.as_deref().context("no model was named")?;
    Ok(Source::Layers(Box::new(config(path)?)))
}

fn config(path: &Utf8Path) -> anyhow::Result<Model> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read `{path}`"))?;
    Model::parse(&text).with_context(|| {
        format!("`{path}` is no model\nhint: `caulk plan --print-config naive_cnn` shows what one looks like")
    })
}

fn outcome(source: &Source, before: Settings, machine: &Machine) -> anyhow::Result<Outcome> {
    let plan = caulk_plan::plan(source, &before, machine)?;
    Ok(Outcome {
        memory_before: memory(source, &before, machine)?,
        changes: changes(source, &before, &plan.settings, machine)?,
        advice: advice(source, &plan.settings, machine)?,
        before,
        plan,
        has_loader: true,
    })
}

fn json(source: &Source, machine: &Machine, outcome: &Outcome) -> anyhow::Result<String> {
    let memory = |memory: &caulk_plan::Memory| json!({ "gpu": memory.gpu, "host": memory.host, "gpu_total": memory.on_gpu(), "host_total": memory.on_host() });
    let mut document = serde_json::to_value(outcome.document())?;
    let more = json!({
        "basis": "predicted, not measured",
        "origin": source.origin(),
        "notes": source.notes(),
        "model": { "name": source.name(), "parameters": source.parameters()? },
        "machine": { "gpu": machine.gpu, "ram": machine.ram, "processors": machine.processors },
        "fits": { "gpu": outcome.plan.fits_gpu, "host": outcome.plan.fits_host },
        "before": { "settings": outcome.before, "memory": outcome.memory_before.as_ref().map(memory) },
        "after": { "settings": outcome.plan.settings, "memory": memory(&outcome.plan.memory) },
        "changes": outcome.changes,
        "advice": outcome.advice,
    });
    if let (Some(document), serde_json::Value::Object(more)) = (document.as_object_mut(), more) {
        document.extend(more);
    }
    Ok(format!("{document:#}\n"))
}

fn yaml(source: &Source, machine: &Machine, outcome: &Outcome) -> anyhow::Result<String> {
    let mut head = vec!["caulk plan".to_owned()];
    head.extend(plan::head(source, machine, true)?);
    let memory = &outcome.plan.memory;
    if machine.gpu.is_some() {
        head.push(format!("GPU {}", memory.on_gpu()));
    }
    head.push(format!("host {}", memory.on_host()));
    if !outcome.plan.fits_gpu || !outcome.plan.fits_host {
        head.push("this does not fit at the highest that it may be".into());
    }
    let further = outcome.advice.iter();
    let further =
        further.map(|a| format!("{}: {} -> {}{}; {}", a.setting, a.before, a.after, plan::saved(a), a.why));
    let further: Vec<String> = ["beyond the plan:".to_owned()].into_iter().chain(further).collect();
    Ok(plan::yaml(&outcome.document(), &head, &outcome.changes, &further))
}
