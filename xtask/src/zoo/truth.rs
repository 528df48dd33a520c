//! What is known about a scenario: `truth.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

use crate::console::failure;

/// Classes for `caulk check`; their scenarios are shown and not counted. A run sees that the memory of a clip goes back
/// after each; that fewer frames would do stands in the source alone.
const NOT_DUE: [&str; 1] = ["whole-video-load"];

/// Symptom of a leak that a run sees on a GPU alone.
const GPU_ONLY: &str = "gpu-only";

/// One scenario.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Truth {
    /// Name of its folder.
    pub(crate) id: String,
    /// Expected leak class; `none` for programs that do not leak.
    pub(crate) leak_class: String,
    /// `static+dynamic`, `static-only`, `dynamic-only`, `clean`.
    pub(crate) kind: String,
    /// `growth`, `peak`, ...
    pub(crate) symptom: String,
    /// Arguments of the program.
    pub(crate) default_epochs: u32,
    /// Arguments of the program.
    pub(crate) default_steps: u32,
    /// Lines that explain the leak; one is enough.
    #[serde(default)]
    pub(crate) leak_sites: Vec<LeakSite>,
    /// Lines that must not be reported.
    #[serde(default)]
    pub(crate) false_friends: Vec<FalseFriend>,
    /// What was measured without caulk.
    #[serde(default)]
    pub(crate) measured: Measured,
    /// Where it was read from.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

/// A line that explains the leak.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LeakSite {
    /// Relative to the scenario.
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: u32,
    /// Qualified name.
    pub(crate) function: String,
    /// The expression that holds on to things.
    pub(crate) container: String,
    /// The one that a report should lead with.
    #[serde(default)]
    pub(crate) primary: bool,
}

/// A line that only looks like a leak.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FalseFriend {
    /// Relative to the scenario.
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: u32,
    /// `info` where advice is acceptable.
    #[serde(default)]
    pub(crate) tolerance: String,
}

/// What was measured without caulk.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Measured {
    /// In 10^6 bytes.
    #[serde(default)]
    pub(crate) leaky_growth_mb_per_epoch: Option<f64>,
}

/// Which of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// With the leak.
    Leaky,
    /// Without.
    Clean,
}

impl Side {
    /// Name of its folder.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Leaky => "leaky",
            Self::Clean => "clean",
        }
    }
}

impl Truth {
    /// The programs of this scenario.
    pub(crate) fn sides(&self) -> Vec<Side> {
        let sides = [Side::Leaky, Side::Clean].into_iter();
        sides.filter(|side| self.folder.join(side.folder()).join("main.py").is_file()).collect()
    }

    /// Whether `caulk check` is expected to find the leak.
    pub(crate) fn is_due_in_source(&self) -> bool {
        matches!(self.kind.as_str(), "static+dynamic" | "static-only")
    }

    /// Whether `caulk run` is expected to find the leak.
    pub(crate) fn is_due(&self) -> bool {
        self.kind != "static-only" && self.kind != "clean" && !NOT_DUE.contains(&self.leak_class.as_str())
    }

    /// Whether `caulk run` is expected to find the leak on a machine with a GPU.
    pub(crate) fn is_due_on_gpu(&self) -> bool {
        self.is_due() || self.symptom == GPU_ONLY
    }
}

/// All scenarios below a folder, in order of names; `only` keeps those named.
pub(crate) fn read_all(zoo: &Path, only: &[String]) -> anyhow::Result<Vec<Truth>> {
    let mut scenarios = Vec::new();
    for folder in folders(zoo)? {
        let file = folder.join("truth.toml");
        let text =
            fs::read_to_string(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
        let truth: Truth =
            toml::from_str(&text).with_context(|| format!("`{}` is not as expected", file.display()))?;
        scenarios.push(Truth { folder, ..truth });
    }
    if let Some(unknown) = only.iter().find(|id| !scenarios.iter().any(|truth| truth.id == **id)) {
        return Err(failure(
            format!("no scenario `{unknown}` in `{}`", zoo.display()),
            "its folders are the names",
        ));
    }
    scenarios.retain(|truth| only.is_empty() || only.contains(&truth.id));
    Ok(scenarios)
}

fn folders(zoo: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let hint = "pass the folder of the scenarios, each with a `truth.toml`: `cargo xtask zoo PATH`";
    let entries = fs::read_dir(zoo)
        .map_err(|cause| failure(format!("failed to open `{}`: {cause}", zoo.display()), hint))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut folders: Vec<_> = paths.filter(|path| path.join("truth.toml").is_file()).collect();
    folders.sort();
    if folders.is_empty() {
        return Err(failure(format!("no scenario in `{}`", zoo.display()), hint));
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TRUTH: &str = "id = 'a'\nleak_class = 'CLASS'\nkind = 'KIND'\nsymptom = 'growth'\n\
        default_epochs = 8\ndefault_steps = 24\n";

    fn check_due(class: &str, kind: &str, expected: bool) {
        let truth: Truth = toml::from_str(&TRUTH.replace("CLASS", class).replace("KIND", kind)).unwrap();
        assert_eq!(truth.is_due(), expected, "{class} {kind}");
    }

    #[test]
    fn what_can_be_seen_while_running_is_due() {
        check_due("graph-kept-in-container", "static+dynamic", true);
        check_due("unbounded-history", "static-only", false);
        check_due("native-growth", "dynamic-only", true);
        check_due("worker-memory-grows", "static+dynamic", true);
        check_due("whole-video-load", "static+dynamic", false);
        check_due("none", "clean", false);
    }

    #[test]
    fn what_a_gpu_alone_shows_is_due_there() {
        let text = TRUTH.replace("CLASS", "device-tensor-kept").replace("KIND", "static-only");
        let check = |symptom: &str, expected: bool| {
            let truth: Truth = toml::from_str(&text.replace("growth", symptom)).unwrap();
            assert_eq!((truth.is_due(), truth.is_due_on_gpu()), (false, expected), "{symptom}");
        };
        check("gpu-only", true);
        check("tiny-growth", false);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let error = read_all(Path::new("/no/such/zoo"), &[]).unwrap_err();
        assert!(error.to_string().contains("/no/such/zoo"), "{error}");
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        let zoo = tempfile::tempdir().unwrap();
        fs::create_dir(zoo.path().join("a")).unwrap();
        fs::write(zoo.path().join("a/truth.toml"), TRUTH).unwrap();
        assert_eq!(read_all(zoo.path(), &["a".into()]).unwrap().len(), 1);
        assert!(read_all(zoo.path(), &["b".into()]).unwrap_err().to_string().contains("`b`"));
    }
}
