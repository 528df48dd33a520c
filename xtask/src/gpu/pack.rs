//! The folder that goes to a machine with a GPU: the wheel, the scenarios, and the scripts that run them there.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use crate::zoo::truth::{Side, Truth};

/// Runs everything.
pub(crate) const CHECK: &str = "check.py";
const SCRIPTS: [(&str, &str); 2] = [(CHECK, include_str!("check.py")), ("move.py", include_str!("move.py"))];
/// Folders that programs leave behind.
const LEFTOVERS: [&str; 1] = ["__pycache__"];

/// What the scripts know of a scenario.
#[derive(Debug, Serialize)]
struct Packed<'a> {
    id: &'a str,
    sides: Vec<&'static str>,
    epochs: u32,
    steps: u32,
}

/// Makes the folder anew.
pub(crate) fn write(folder: &Path, wheel: &Path, scenarios: &[Truth]) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
    }
    for truth in scenarios {
        for side in truth.sides() {
            let (from, to) = (truth.folder.join(side.folder()), folder.join("scenarios").join(&truth.id));
            copy(&from, &to.join(side.folder()))?;
        }
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    for (name, text) in SCRIPTS {
        put(&folder.join(name), text.as_bytes())?;
    }
    let name = wheel.file_name().context("a wheel has a name")?;
    let bytes = fs::read(wheel).with_context(|| format!("failed to read `{}`", wheel.display()))?;
    put(&folder.join(name), &bytes)?;
    let list: Vec<Packed<'_>> = scenarios.iter().map(packed).collect();
    put(&folder.join("scenarios.json"), &serde_json::to_vec_pretty(&list).context("plain values")?)
}

fn packed(truth: &Truth) -> Packed<'_> {
    Packed {
        id: &truth.id,
        sides: truth.sides().into_iter().map(Side::folder).collect(),
        epochs: truth.default_epochs,
        steps: truth.default_steps,
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("failed to copy `{}` to `{}`", from.display(), to.display());
    fs::create_dir_all(to).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let (name, path) = (entry.file_name(), entry.path());
        if LEFTOVERS.iter().any(|leftover| name == *leftover) {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).with_context(failed)?;
        }
    }
    Ok(())
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("failed to write `{}`", path.display()))
}
