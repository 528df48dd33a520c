//! What is made in one file alone: findings, and the claims that they are made from.

use std::fs;

use anyhow::Context;

use crate::console::failure;
use crate::names::rust_files;
use crate::workspace::Workspace;

/// An expression, the folder in which it is searched, and the one file there that may have it.
const HOMES: &[(&str, &str, &str)] = &[
    ("Finding::new(", "crates", "caulk_diagnose/src/settle.rs"),
    ("Claim::from(", "crates/caulk_diagnose/src", "pipeline.rs"),
    ("Claim::from)", "crates/caulk_diagnose/src", "pipeline.rs"),
];

/// Fails with every file that makes what another file makes, test code left out.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let strangers = strangers(workspace)?;
    if strangers.is_empty() {
        return Ok(());
    }
    Err(failure(
        format!("some things are made in one file alone:\n  {}", strangers.join("\n  ")),
        "state a fact or a relation instead: `ARCHITECTURE.md`, \"From a recording to a finding\"",
    ))
}

fn strangers(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (expression, folder, home) in HOMES {
        let folder = workspace.path(folder);
        for file in rust_files(&folder)? {
            let name = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
            let text =
                fs::read_to_string(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
            if name != *home && makes(&name, &text, expression) {
                found.push(format!("`{expression}` is in {name}, and belongs into {home}"));
            }
        }
    }
    Ok(found)
}

/// Whether the code of a file that is no test has this expression.
fn makes(name: &str, text: &str, expression: &str) -> bool {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    !name.contains("/tests/") && code.contains(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_may_make_everything() {
        let expression = "Finding::new(";
        assert!(makes("a/src/b.rs", "let x = Finding::new(y);", expression));
        assert!(!makes("a/src/b.rs", "fn f() {}\n#[cfg(test)]\nlet x = Finding::new(y);", expression));
        assert!(!makes("a/tests/b.rs", "let x = Finding::new(y);", expression));
    }

    #[test]
    fn this_workspace_makes_each_in_its_home() {
        assert_eq!(strangers(&Workspace::here()).expect("sources"), Vec::<String>::new());
    }
}
