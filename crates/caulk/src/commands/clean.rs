//! `caulk clean`: removes old output of runs.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_clean::{Cleanup, Removed, Request};
use caulk_core::Bytes;
use caulk_source::read_plain;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::brief::clip;
use crate::cli::{CleanArgs, Format};
use crate::exit;
use crate::printer::{self, Printer};

/// Longest `pyproject.toml` that is read, in bytes.
const LONGEST: u64 = 256 << 10;

/// Reasons to keep something, each with so many examples at most.
const EXAMPLES: usize = 3;

/// `[tool.caulk.clean]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    folders: Vec<Utf8PathBuf>,
    models: Vec<Utf8PathBuf>,
    keep: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { folders: vec!["runs".into(), "logs".into()], models: vec!["models".into()], keep: Vec::new() }
    }
}

/// Shows or removes old output.
///
/// # Errors
/// If a folder lies outside the project, git cannot say what it tracks, or the settings cannot be read.
pub(crate) fn run(args: &CleanArgs, printer: Printer) -> anyhow::Result<i32> {
    let root = root(args)?;
    let settings = settings(&root)?;
    let mut folders = if args.folders.is_empty() { settings.folders } else { args.folders.clone() };
    if args.models {
        folders.extend(settings.models);
    }
    let request = Request { root, folders, keep: settings.keep, older_than: args.older_than };
    let plan = caulk_clean::plan(&request)?;
    let removed = args.apply.then(|| caulk_clean::remove(&plan));
    let text = match args.format {
        Format::Json => format!("{:#}\n", document(&plan, removed.as_ref())),
        Format::Text => table(&plan, removed.as_ref()),
    };
    printer::data(&text).context("failed to write to standard output")?;
    let failed = removed.map_or(0, |removed| removed.failed.len());
    if failed == 0 && !args.apply && !plan.is_empty() && args.format == Format::Text {
        printer.say("nothing was removed; `caulk clean --apply` with the same arguments does it\n");
    }
    Ok(if failed > 0 { exit::FOUND } else { exit::SUCCESS })
}

/// The project: where the settings or the repository lie, at or above the working directory.
fn root(args: &CleanArgs) -> anyhow::Result<Utf8PathBuf> {
    if let Some(root) = &args.root {
        return Ok(root.clone());
    }
    let here = std::env::current_dir().context("the working directory is gone")?;
    let here = Utf8PathBuf::try_from(here).context("the working directory's name is not Unicode")?;
    let found = here
        .ancestors()
        .find(|folder| ["pyproject.toml", ".git"].iter().any(|name| folder.join(name).exists()));
    let Some(found) = found else {
        bail!(
            "no project here: neither `{here}` nor a folder above it has a pyproject.toml or .git\n\
             hint: name it with `--root DIR`"
        );
    };
    Ok(found.to_owned())
}

fn settings(root: &Utf8Path) -> anyhow::Result<Settings> {
    let path = root.join("pyproject.toml");
    let text = match read_plain(&path, LONGEST) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.is_absent() => return Ok(Settings::default()),
        // What it says must stay might go.
        Err(error) => return Err(error).with_context(|| format!("`{path}` cannot be used")),
    };
    if !text.contains("tool.caulk") {
        return Ok(Settings::default());
    }
    let document: toml::Table = text.parse().with_context(|| format!("`{path}` cannot be read"))?;
    let own = document.get("tool").and_then(|tool| tool.get("caulk")).and_then(|own| own.get("clean"));
    let Some(own) = own else { return Ok(Settings::default()) };
    own.clone().try_into().with_context(|| format!("`[tool.caulk.clean]` in `{path}` cannot be used"))
}

fn table(plan: &Cleanup, removed: Option<&Removed>) -> String {
    let mut lines = Vec::new();
    for folder in &plan.asked {
        let (count, bytes) = plan.of_folder(folder);
        if count > 0 {
            lines.push(format!("{:>9}  {} in `{folder}`", Bytes(bytes).to_string(), files(count)));
        }
        // What is gone needs no list: there is nothing to decide any more.
        if removed.is_none() {
            lines.extend(plan.in_folder(folder).map(|old| listed(Some(old.bytes), &old.path)));
            let empty = plan.folders.iter().filter(|inner| inner.starts_with(folder));
            lines.extend(empty.map(|inner| listed(None, &inner.join(""))));
        }
    }
    let mut reasons: BTreeMap<&str, Vec<&Utf8Path>> = BTreeMap::new();
    for kept in &plan.kept {
        reasons.entry(&kept.why).or_default().push(&kept.path);
    }
    for (why, paths) in reasons {
        let named: Vec<String> = paths.iter().take(EXAMPLES).map(|path| format!("`{path}`")).collect();
        let more = if paths.len() > EXAMPLES {
            format!(" and {} more", paths.len() - EXAMPLES)
        } else {
            String::new()
        };
        let remedy =
            if why == caulk_clean::LATELY { "; `--older-than` says how long ago is enough" } else { "" };
        lines.push(format!("     kept  {}{more}: {why}{remedy}", named.join(", ")));
    }
    match removed {
        None if plan.is_empty() => lines.push("nothing to remove".into()),
        None => lines.push(format!("{:>9}  in all would be freed", Bytes(plan.bytes()).to_string())),
        Some(removed) => {
            for (path, kind) in &removed.failed {
                lines.push(format!("   failed  `{path}`: {kind}"));
            }
            lines.push(format!(
                "{:>9}  freed: {} removed",
                Bytes(removed.bytes).to_string(),
                files(removed.files)
            ));
        }
    }
    lines.join("\n") + "\n"
}

/// Something that would go, below the folder that it is in: a file with its bytes, or a folder that is empty then.
fn listed(bytes: Option<u64>, path: &Utf8Path) -> String {
    let bytes = bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes).to_string());
    format!("{bytes:>9}    {}", clip(path.as_str(), usize::MAX))
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

fn document(plan: &Cleanup, removed: Option<&Removed>) -> Value {
    let old = plan.old.iter().map(|old| json!({ "path": old.path, "bytes": old.bytes })).collect::<Vec<_>>();
    let kept = plan.kept.iter().map(|kept| json!({ "path": kept.path, "why": kept.why })).collect::<Vec<_>>();
    let removed = removed.map(|removed| {
        let failed =
            removed.failed.iter().map(|(path, kind)| json!({ "path": path, "why": kind.to_string() }));
        json!({ "files": removed.files, "bytes": removed.bytes, "failed": failed.collect::<Vec<_>>() })
    });
    json!({ "schema": 1, "root": plan.root, "old": old, "folders": plan.folders, "bytes": plan.bytes(), "kept": kept, "removed": removed })
}
