//! A plan as text for people.

use std::fmt::Write as _;

use anyhow::Context;
use caulk_core::Bytes;
use caulk_plan::{
    Card, Change, Estimate, Machine, Measured, MeasuredPlan, Memory, Part, Plan, Settings, Source, memory,
    plan,
};

use super::document::{Document, OF_LOADERS};

/// Sizes of GPUs that are tried where none is named, in GB.
const SIZES: [u64; 7] = [4, 6, 8, 16, 24, 40, 80];

/// Everything that was found for one machine.
pub(crate) struct Outcome {
    pub(crate) before: Settings,
    pub(crate) memory_before: Option<Memory>,
    pub(crate) plan: Plan,
    pub(crate) changes: Vec<Change>,
    pub(crate) advice: Vec<Change>,
    /// Has the program one?
    pub(crate) has_loader: bool,
}

impl Outcome {
    /// The settings that the plan comes to.
    pub(crate) fn document(&self) -> Document {
        let document = Document::from(&self.plan.settings);
        if self.has_loader { document } else { document.without_loaders() }
    }

    /// The program has no loader: the table leaves loader settings out.
    pub(crate) fn leave_loaders_out(&mut self) {
        self.has_loader = false;
        for list in [&mut self.changes, &mut self.advice] {
            list.retain(|change| !OF_LOADERS.contains(&change.setting));
        }
    }
}

/// What it is and for what it is planned; `explain` says how it was found.
pub(crate) fn head(source: &Source, machine: &Machine, explain: bool) -> anyhow::Result<Vec<String>> {
    let parameters = source.parameters()? as f64;
    let summary = source.summary();
    let colon = if summary.is_empty() { "" } else { ": " };
    let how = if explain { format!("; {}", source.origin()) } else { String::new() };
    let mut lines = vec![
        format!("{}{colon}{summary} ({} parameters)", source.name(), count(parameters)),
        format!("predicted, not measured{how}"),
    ];
    let gpu = machine.gpu.as_ref().map(|gpu| format!("{} ({})", gpu.name, size(gpu.memory)));
    let ram = machine.ram.map(|ram| format!("{} of host memory", size(ram)));
    let on: Vec<String> = [gpu, ram].into_iter().flatten().collect();
    if !on.is_empty() {
        lines.push(format!("for {}", on.join(", ")));
    }
    lines.extend(source.notes().iter().map(|note| format!("note: {note}")));
    Ok(lines)
}

/// All of it; where each figure comes from, for who wants to have it explained.
///
/// # Errors
/// If the model cannot be computed.
pub(crate) fn text(
    source: &Source,
    machine: &Machine,
    outcome: &Outcome,
    explain: bool,
) -> anyhow::Result<String> {
    let mut text = head(source, machine, explain)?.join("\n") + "\n\n";
    let _ = writeln!(text, "{:<34} {:<34} after", "", "before");
    let none = Memory::default();
    let before = outcome.memory_before.as_ref().unwrap_or(&none);
    let after = &outcome.plan.memory;
    if machine.gpu.is_some() {
        text += &side("GPU", &before.gpu, &after.gpu, machine.gpu_room());
    }
    text += &side("host", &before.host, &after.host, machine.host_room());
    text += &listed("changes", &outcome.changes);
    if !outcome.plan.fits_gpu || !outcome.plan.fits_host {
        text += "\nIt does not fit even so, at the highest that it may be; what would help most is below.\n";
    } else if outcome.changes.is_empty() {
        text += "\nIt fits as it is: nothing has to be changed.\n";
    }
    text += &listed("beyond the plan", &outcome.advice);
    text += &origins(after, explain);
    Ok(text)
}

/// Where each figure comes from, or how to see that.
fn origins(memory: &Memory, explain: bool) -> String {
    if !explain {
        return "\n`--explain` says where each figure comes from.\n".into();
    }
    let mut text = "\nwhere the figures come from\n".to_owned();
    for part in memory.gpu.iter().chain(&memory.host) {
        let _ = writeln!(text, "  {:<32} {}", part.name, part.source);
    }
    text
}

fn side(name: &str, before: &[Part], after: &[Part], room: Option<f64>) -> String {
    let mut names: Vec<&str> = before.iter().chain(after).map(|part| part.name).collect();
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    let of = |parts: &[Part], name: &str| parts.iter().find(|part| part.name == name).map(|part| part.bytes);
    let cell = |bytes: Option<Estimate>| bytes.map_or_else(|| "-".into(), |bytes| bytes.to_string());
    let mut text = format!("{name}\n");
    for part in names {
        let _ = writeln!(text, "  {part:<32} {:<34} {}", cell(of(before, part)), cell(of(after, part)));
    }
    let total = |parts: &[Part]| parts.iter().map(|part| part.bytes).sum::<Estimate>();
    let known = |parts: &[Part]| (!parts.is_empty()).then(|| total(parts));
    let _ = writeln!(text, "  {:<32} {:<34} {}", "together", cell(known(before)), cell(known(after)));
    if let Some(room) = room {
        let _ = writeln!(text, "  {:<32} {:<34} {}", "to be had", size(room), size(room));
    }
    text
}

fn listed(name: &str, changes: &[Change]) -> String {
    let mut text = if changes.is_empty() { String::new() } else { format!("\n{name}\n") };
    for change in changes {
        let _ =
            writeln!(text, "  {:<24} {} -> {}{}", change.setting, change.before, change.after, saved(change));
        let _ = writeln!(text, "  {:<24} {}", "", change.why);
    }
    text
}

/// What a change saves, where it saves anything.
pub(crate) fn saved(change: &Change) -> String {
    let both = [(change.gpu_saved, "on the GPU"), (change.host_saved, "on the host")];
    let parts: Vec<String> = both
        .iter()
        .filter(|(bytes, _)| *bytes >= Bytes::MB as f64)
        .map(|(bytes, place)| format!("{} {place}", size(*bytes)))
        .collect();
    if parts.is_empty() { String::new() } else { format!(": saves {}", parts.join(", ")) }
}

/// What was measured, and what follows.
pub(crate) fn measured(seen: &Measured, plan: &MeasuredPlan, machine: &Machine, explain: bool) -> String {
    let mut text = match seen.steps {
        0 => "measured over a run without a step of a training that caulk recognises: what it held, and no more\n\n".into(),
        steps => format!("measured over {steps} steps; what comes later in an epoch is predicted\n\n"),
    };
    let _ = writeln!(text, "{:<34} {:<34} after", "", "before");
    if !plan.after.gpu.is_empty() {
        text += &side("GPU", &plan.before.gpu, &plan.after.gpu, machine.gpu_room());
    }
    text += &side("host", &plan.before.host, &plan.after.host, machine.host_room());
    if seen.loaders && plan.workers < seen.workers {
        let _ =
            writeln!(text, "\nnum_workers {} -> {}: each holds {}", seen.workers, plan.workers, seen.worker);
    }
    if plan.fits_gpu == Some(false) {
        let _ = writeln!(
            text,
            "\nIt does not fit on the GPU: a batch smaller by {:.1} times at least, with accumulation, or 16 bit and gradient \
             checkpointing (`--model` computes which).",
            plan.shrink
        );
    }
    if !plan.fits_host {
        let even = if seen.loaders { " even without workers" } else { "" };
        let _ =
            writeln!(text, "\nIt does not fit on the host{even}: `caulk run` names what holds memory there.");
    }
    if plan.fits_gpu != Some(false) && plan.fits_host && plan.workers == seen.workers {
        let on = if plan.fits_gpu.is_none() { " on the host" } else { "" };
        let _ = match seen.steps {
            0 => writeln!(text, "\nWhat this run held fits{on}; of a training's steps it tells nothing."),
            _ => writeln!(text, "\nIt fits{on} as it is, as far as these steps tell."),
        };
    }
    text + &origins(&plan.after, explain)
}

/// What fits GPUs of usual sizes, where none is named.
///
/// # Errors
/// If the model cannot be computed.
pub(crate) fn sizes(
    source: &Source,
    before: &Settings,
    machine: &Machine,
    explain: bool,
) -> anyhow::Result<String> {
    let mut text = head(source, machine, explain)?.join("\n") + "\n\n";
    let now = Machine { gpu: Some(card(80)), ..machine.clone() };
    let as_it_is = memory(source, before, &now)?.context("the model was not run with these settings")?;
    let _ = writeln!(text, "as it is now: {} on a GPU", as_it_is.on_gpu());
    let _ = writeln!(
        text,
        "\n{:<8} {:>6} {:>6}  {:<11} {:<14} {:>7} {:>6}  predicted",
        "GPU", "batch", "accum", "precision", "checkpointing", "frames", "size"
    );
    for gigabytes in SIZES {
        let machine = Machine { gpu: Some(card(gigabytes)), ..machine.clone() };
        let plan = plan(source, before, &machine)?;
        let settings = &plan.settings;
        let or_none = |number: Option<u64>| number.map_or_else(|| "-".into(), |number| number.to_string());
        let told = if plan.fits_gpu { plan.memory.on_gpu().to_string() } else { "does not fit".into() };
        let _ = writeln!(
            text,
            "{:<8} {:>6} {:>6}  {:<11} {:<14} {:>7} {:>6}  {told}",
            format!("{gigabytes} GB"),
            settings.batch,
            settings.accumulation,
            settings.precision.name(),
            if settings.checkpointing { "yes" } else { "no" },
            or_none(settings.frames),
            or_none(settings.size),
        );
    }
    text += "\n`--gpu NAME`, `--vram SIZE` or `--auto` plans for one of them, with reasons and a file of settings.\n";
    if explain {
        text += &origins(&as_it_is, explain);
    }
    Ok(text)
}

fn card(gigabytes: u64) -> Card {
    let memory = (gigabytes * Bytes::GB) as f64;
    Card { name: format!("{gigabytes} GB"), memory, bfloat16: None, capability: None }
}

fn size(bytes: f64) -> String {
    Bytes(bytes as u64).to_string()
}

/// `87.4 million`.
fn count(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.2} billion", n / 1e9),
        n if n >= 1e6 => format!("{:.1} million", n / 1e6),
        n => format!("{n}"),
    }
}
