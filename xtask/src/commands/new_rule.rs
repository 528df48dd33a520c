//! `cargo xtask new-rule`: the two files of a rule and its line in the list.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::console::{self, failure};
use crate::process::Cmd;
use crate::workspace::Workspace;

const CLASSES: &str = "crates/caulk_core/src/leak_class.rs";
const LIST: &str = "crates/caulk_rules/src/rules.rs";
const FOLDER: &str = "crates/caulk_rules/src/rules";

/// Start a rule: its code, its page, its line in the list
#[derive(Debug, clap::Args)]
pub(crate) struct NewRuleArgs {
    /// Name of the leak class that it finds, such as `cached-method`
    name: String,
}

pub(crate) fn run(workspace: &Workspace, args: &NewRuleArgs) -> anyhow::Result<()> {
    let classes = read(&workspace.path(CLASSES))?;
    let class = Class::find(&classes, &args.name).ok_or_else(|| {
        failure(format!("no leak class `{}`", args.name), format!("add it to {CLASSES} first"))
    })?;
    let folder = workspace.path(FOLDER);
    let module = class.module();
    create(&folder.join(format!("{module}.rs")), &class.fill(include_str!("../../templates/rule.rs.in")))?;
    create(&folder.join(format!("{module}.md")), &class.fill(include_str!("../../templates/rule.md.in")))?;
    let list = workspace.path(LIST);
    let text = listed(&read(&list)?, &module).context("the list of rules is not written as expected")?;
    fs::write(&list, text).with_context(|| format!("failed to write `{}`", list.display()))?;
    Cmd::cargo().args(["fmt", "--package", "caulk_rules"]).folder(workspace.root()).run()?;
    console::step(format!("write {FOLDER}/{module}.md, then {FOLDER}/{module}.rs, until this passes:"));
    console::note("cargo test --package caulk_rules");
    Ok(())
}

/// A leak class, as the core lists it.
#[derive(Debug, PartialEq, Eq)]
struct Class {
    variant: String,
    name: String,
    summary: String,
}

impl Class {
    /// Reads lines such as `CachedMethod "cached-method" "a functools cache on ...",`.
    fn find(source: &str, name: &str) -> Option<Self> {
        source.lines().find_map(|line| {
            let mut parts = line.trim().split('"');
            let (variant, found) = (parts.next()?.trim(), parts.next()?);
            let (gap, summary) = (parts.next()?, parts.next()?);
            let is_class = found == name && gap == " " && variant.chars().all(char::is_alphanumeric);
            is_class.then(|| Self { variant: variant.into(), name: found.into(), summary: summary.into() })
        })
    }

    fn module(&self) -> String {
        self.name.replace('-', "_")
    }

    fn fill(&self, template: &str) -> String {
        let (first, rest) = self.summary.split_at(1);
        template
            .replace("{Summary}", &(first.to_uppercase() + rest))
            .replace("{Variant}", &self.variant)
            .replace("{module}", &self.module())
            .replace("{name}", &self.name)
    }
}

/// The list with one more module and one more rule, both in order.
fn listed(source: &str, module: &str) -> Option<String> {
    let (before, rest) = source.split_once("= &[")?;
    let (rules, after) = rest.split_once("];")?;
    let entry = format!("&{module}::RULE");
    let mut entries: Vec<_> = rules.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    entries.push(&entry);
    entries.sort_unstable();
    let mut lines: Vec<_> = before.lines().map(str::to_owned).collect();
    let is_later =
        |line: &String| line.strip_prefix("mod ").is_some_and(|name| name.trim_end_matches(';') > module);
    let last = lines.iter().rposition(|line| line.starts_with("mod "))? + 1;
    lines.insert(lines.iter().position(is_later).unwrap_or(last), format!("mod {module};"));
    Some(format!("{}= &[{}];{after}", lines.join("\n"), entries.join(", ")))
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read `{}`", path.display()))
}

fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    if path.exists() {
        return Err(failure(format!("`{}` is there already", path.display()), "edit it"));
    }
    fs::write(path, text).with_context(|| format!("failed to write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn classes_are_read_from_the_core() {
        let source = read(&Workspace::here().path(CLASSES)).unwrap();
        let class = Class::find(&source, "loss-kept-with-graph").unwrap();
        assert_eq!(
            (class.variant.as_str(), class.module()),
            ("LossKeptWithGraph", "loss_kept_with_graph".into())
        );
        assert!(class.fill("{Summary}").starts_with("A running sum"), "{class:?}");
        assert_eq!(Class::find(&source, "loss"), None);
    }

    #[test]
    fn the_list_stays_in_order() {
        let source =
            "mod a_b;\nmod c;\n\n/// Every rule.\npub static RULES: &[&Rule] = &[&a_b::RULE, &c::RULE];\n";
        for (module, expected) in [
            (
                "b",
                "mod a_b;\nmod b;\nmod c;\n\n/// Every rule.\npub static RULES: &[&Rule] = &[&a_b::RULE, &b::RULE, &c::RULE];\n",
            ),
            (
                "d",
                "mod a_b;\nmod c;\nmod d;\n\n/// Every rule.\npub static RULES: &[&Rule] = &[&a_b::RULE, &c::RULE, &d::RULE];\n",
            ),
        ] {
            assert_eq!(listed(source, module).unwrap(), expected);
        }
    }

    #[test]
    fn the_real_list_takes_another_rule() {
        let source = read(&Workspace::here().path(LIST)).unwrap();
        assert!(listed(&source, "zzz").unwrap().contains("&zzz::RULE];"));
    }
}
