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

/// Makes the folder again.
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_folder_holds_programs_scripts_and_the_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let (zoo, to, wheel) =
            (folder.path().join("kept"), folder.path().join("packed"), folder.path().join("caulk-1.whl"));
        for file in ["leaky/main.py", "leaky/parts/model.py", "leaky/__pycache__/main.pyc"] {
            fs::create_dir_all(zoo.join(file).parent().unwrap()).unwrap();
            fs::write(zoo.join(file), "pass\n").unwrap();
        }
        fs::write(&wheel, "a wheel").unwrap();
        let truth = "id = 'kept'\nleak_class = 'x'\nkind = 'static+dynamic'\nsymptom = 'growth'\ndefault_epochs = \
                     8\ndefault_steps = 24\n";
        let truth = Truth { folder: zoo, ..toml::from_str(truth).unwrap() };
        write(&to, &wheel, std::slice::from_ref(&truth)).unwrap();
        let there = |name: &str| to.join(name).exists();
        assert!(
            ["check.py", "move.py", "caulk-1.whl", "scenarios/kept/leaky/parts/model.py"]
                .into_iter()
                .all(there)
        );
        assert!(!there("scenarios/kept/leaky/__pycache__"));
        let list = fs::read_to_string(to.join("scenarios.json")).unwrap();
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list, serde_json::json!([{ "id": "kept", "sides": ["leaky"], "epochs": 8, "steps": 24 }]));
        // What came back lies there, too, and is of another time.
        fs::create_dir(to.join("results")).unwrap();
        write(&to, &wheel, &[truth]).unwrap();
        assert!(!there("results"));
    }
}
