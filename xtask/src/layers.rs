//! Which crate may use which: the table behind "Layout" in `ARCHITECTURE.md`.

use std::collections::BTreeMap;

use anyhow::Context;
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::console::failure;
use crate::workspace::Workspace;

/// What a crate is allowed to be and to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Values and messages.
    Core,
    /// Values in, values out.
    Engine,
    /// Opens files, starts processes, prints.
    Adapter,
    /// Runs inside somebody else's process.
    InProcess,
    /// Puts everything together.
    Entry,
    /// Automation; nothing may use it.
    Automation,
}

/// Every crate of this workspace, in order of names.
const LAYERS: [(&str, Layer); 24] = [
    ("caulk", Layer::Entry),
    ("caulk_agent", Layer::InProcess),
    ("caulk_check", Layer::Engine),
    ("caulk_clean", Layer::Adapter),
    ("caulk_core", Layer::Core),
    ("caulk_cuda", Layer::Engine),
    ("caulk_diagnose", Layer::Engine),
    ("caulk_diff", Layer::Engine),
    ("caulk_doctor", Layer::Engine),
    ("caulk_growth", Layer::Engine),
    ("caulk_guard", Layer::Engine),
    ("caulk_heal", Layer::Engine),
    ("caulk_html", Layer::Engine),
    ("caulk_plan", Layer::Engine),
    ("caulk_preload", Layer::InProcess),
    ("caulk_python", Layer::Engine),
    ("caulk_record", Layer::Adapter),
    ("caulk_report", Layer::Adapter),
    ("caulk_rules", Layer::Engine),
    ("caulk_source", Layer::Adapter),
    ("caulk_supervise", Layer::Adapter),
    ("caulk_verify", Layer::Engine),
    ("caulk_wire", Layer::Core),
    ("xtask", Layer::Automation),
];

/// Every crate of the workspace `caulk-clips`, in order of names.
const CLIPS: [(&str, Layer); 4] = [
    ("caulk_clip", Layer::Engine),
    ("caulk_clips", Layer::Entry),
    ("caulk_ffmpeg", Layer::Adapter),
    ("caulk_prepare", Layer::Adapter),
];

/// The one crate that both workspaces use: the vocabulary.
const SHARED: &str = "caulk_core";

/// What a crate may use although its layer may not: the verdict behind `caulk.MemoryTracker`, numbers in and numbers out.
const ALSO: [(&str, &str); 1] = [("caulk_agent", "caulk_growth")];

impl Layer {
    /// Layers of this workspace that it may use.
    fn may_use(self, other: Self) -> bool {
        match self {
            Self::Core | Self::InProcess => other == Self::Core,
            Self::Engine | Self::Adapter => matches!(other, Self::Core | Self::Engine),
            Self::Entry => matches!(other, Self::Core | Self::Engine | Self::Adapter),
            Self::Automation => false,
        }
    }

    /// Whether it may use a crate from outside.
    fn may_bring_in(self, name: &str) -> bool {
        match self {
            // `schemars`: an optional feature that describes the JSON report, and no product is built with it.
            Self::Core => matches!(name, "schemars" | "serde"),
            Self::Engine => {
                // `stacker`: room for recursion over deeply nested source. `toml`: models and tables, as text.
                // `sha2`: what random numbers are keyed by, and which script a page may run. `maud`: markup.
                matches!(
                    name,
                    "maud" | "rustc-hash" | "schemars" | "serde" | "sha2" | "stacker" | "thiserror" | "toml"
                ) || name.starts_with("ruff_")
                    || name.starts_with("salsa")
            }
            // `dlmalloc`: a heap of its own, so that the host's stays as it would be.
            Self::InProcess => matches!(name, "dlmalloc" | "libc" | "pyo3"),
            Self::Adapter => name != "anyhow" && name != "clap",
            Self::Entry | Self::Automation => true,
        }
    }
}

/// Crates of the workspace with the crates that they use outside of tests.
pub(crate) type Uses = BTreeMap<String, Vec<String>>;

/// Reads the manifests and fails with every wrong dependency.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let wrong = violations(&uses(workspace)?);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(failure(
        format!("dependencies point the wrong way:\n  {}", wrong.join("\n  ")),
        "ARCHITECTURE.md lists which layer may use which; the table is in xtask/src/layers.rs",
    ))
}

/// The dependencies in the manifests of both workspaces.
pub(crate) fn uses(workspace: &Workspace) -> anyhow::Result<Uses> {
    let mut uses = uses_in(workspace, "Cargo.toml")?;
    uses.extend(uses_in(workspace, "caulk-clips/Cargo.toml")?);
    Ok(uses)
}

fn uses_in(workspace: &Workspace, manifest: &str) -> anyhow::Result<Uses> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.path(manifest))
        .no_deps()
        .exec()
        .with_context(|| format!("failed to read the manifests of `{manifest}`"))?;
    let packages = metadata.packages.iter().map(|package| {
        let dependencies = package.dependencies.iter();
        let normal = dependencies.filter(|dependency| dependency.kind != DependencyKind::Development);
        (package.name.to_string(), normal.map(|dependency| dependency.name.clone()).collect())
    });
    Ok(packages.collect())
}

/// One line for each dependency that the table does not allow, and for each crate that it does not know.
pub(crate) fn violations(uses: &Uses) -> Vec<String> {
    uses.iter().flat_map(|(name, dependencies)| wrong_in(name, dependencies)).collect()
}

fn wrong_in(name: &str, dependencies: &[String]) -> Vec<String> {
    let Some(layer) = layer_of(name) else {
        return vec![format!("{name} has no layer: add it to LAYERS in xtask/src/layers.rs")];
    };
    let allowed = |other: &str| match layer_of(other) {
        Some(below) => layer.may_use(below) && (other == SHARED || is_of_clips(other) == is_of_clips(name)),
        None => layer.may_bring_in(other),
    };
    let also = |other: &str| ALSO.contains(&(name, other));
    let wrong = dependencies.iter().filter(|other| !allowed(other) && !also(other));
    wrong.map(|other| format!("{name} ({layer:?}) must not use {other}")).collect()
}

/// The layer of a crate of either workspace.
pub(crate) fn layer_of(name: &str) -> Option<Layer> {
    LAYERS.iter().chain(&CLIPS).find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn is_of_clips(name: &str) -> bool {
    CLIPS.iter().any(|(known, _)| *known == name)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::*;

    fn check_rule(name: &str, dependency: &str, allowed: bool) {
        let uses = Uses::from([(name.into(), vec![dependency.into()])]);
        assert_eq!(violations(&uses).is_empty(), allowed, "{name} -> {dependency}");
    }

    #[test]
    fn dependencies_point_one_way() {
        check_rule("caulk", "caulk_supervise", true);
        check_rule("caulk_supervise", "caulk_growth", true);
        check_rule("caulk_supervise", "caulk_record", false);
        check_rule("caulk_growth", "caulk_core", true);
        check_rule("caulk_growth", "caulk_report", false);
        check_rule("caulk_core", "caulk_wire", true);
        check_rule("caulk_core", "caulk_growth", false);
        check_rule("caulk_record", "caulk", false);
    }

    #[test]
    fn engines_bring_in_nothing_that_touches_the_system() {
        check_rule("caulk_growth", "rustix", false);
        check_rule("caulk_core", "libc", false);
        check_rule("caulk_python", "ruff_python_parser", true);
        check_rule("caulk_agent", "arrow-ipc", false);
        check_rule("caulk_agent", "caulk_growth", true);
        check_rule("caulk_preload", "caulk_growth", false);
        check_rule("caulk_report", "anyhow", false);
    }

    #[test]
    fn both_workspaces_share_the_vocabulary_alone() {
        check_rule("caulk_clips", "caulk_core", true);
        check_rule("caulk_clips", "caulk_prepare", true);
        check_rule("caulk_clips", "caulk_report", false);
        check_rule("caulk", "caulk_prepare", false);
    }

    #[test]
    fn an_unknown_crate_needs_a_layer() {
        check_rule("caulk_new", "serde", false);
    }

    #[test]
    fn this_workspace_keeps_to_the_table() {
        assert_eq!(violations(&uses(&Workspace::here()).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn every_crate_in_the_table_is_there() {
        let uses = uses(&Workspace::here()).unwrap();
        let mut known: Vec<_> = LAYERS.iter().chain(&CLIPS).map(|(name, _)| *name).collect();
        known.sort_unstable();
        assert_eq!(uses.keys().map(String::as_str).collect::<Vec<_>>(), known);
    }

    #[test]
    fn the_architecture_document_names_the_crates_that_there_are() {
        let text = fs::read_to_string(Workspace::here().path("ARCHITECTURE.md")).unwrap();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let named: Vec<_> = words.filter(|word| word.starts_with("caulk_")).collect();
        for (name, _) in LAYERS.iter().chain(&CLIPS).filter(|(name, _)| name.starts_with("caulk_")) {
            assert!(named.contains(name), "ARCHITECTURE.md does not name {name}");
        }
        for name in named {
            assert!(layer_of(name).is_some(), "ARCHITECTURE.md names {name}, which is no crate");
        }
    }

    #[test]
    fn core_and_engines_disallow_the_system() {
        let workspace = Workspace::here();
        let rules = fs::read_to_string(workspace.path("crates/caulk_core/clippy.toml")).unwrap();
        let folders = [(&LAYERS[..], "crates"), (&CLIPS[..], "caulk-clips/crates")];
        for (layers, folder) in folders {
            for (name, _) in layers.iter().filter(|(_, layer)| matches!(layer, Layer::Core | Layer::Engine)) {
                let file = format!("{folder}/{name}/clippy.toml");
                assert_eq!(fs::read_to_string(workspace.path(&file)).unwrap_or_default(), rules, "{file}");
            }
        }
    }
}
