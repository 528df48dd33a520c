//! `caulk rule` and `caulk rules`: what the rules are and what they mean.

use anyhow::Context;
use caulk_check::Selection;
use caulk_report::markdown;
use caulk_rules::{RULES, Rule};
use serde_json::{Value, json};

use crate::cli::{Format, RulePageArgs, RulesArgs};
use crate::{exit, printer};

/// Prints the page of one rule.
///
/// # Errors
/// If there is no such rule, or the page cannot be written.
pub(crate) fn page(args: &RulePageArgs) -> anyhow::Result<i32> {
    // Names the rule that was meant where there is no such rule.
    Selection::classes(std::slice::from_ref(&args.name))?;
    let rule = RULES.iter().find(|rule| rule.class.as_str() == args.name);
    let rule =
        rule.with_context(|| format!("`{}` is a group of rules\nhint: `caulk rules` lists them", args.name))?;
    let text = match args.output_format {
        Format::Text => markdown(rule.explanation, &printer::data_options()),
        Format::Json => format!("{:#}\n", described(rule)),
    };
    printer::data(&text).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
}

/// Prints all rules.
///
/// # Errors
/// If the list cannot be written.
pub(crate) fn list(args: &RulesArgs) -> anyhow::Result<i32> {
    let text = match args.output_format {
        Format::Text => table(),
        Format::Json => {
            format!("{:#}\n", json!({"rules": RULES.iter().map(|rule| described(rule)).collect::<Vec<_>>()}))
        }
    };
    printer::data(&text).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
}

fn described(rule: &Rule) -> Value {
    json!({
        "name": rule.class,
        "group": rule.class.group(),
        "summary": rule.class.summary(),
        "severity": rule.severity,
        "default": rule.default,
        "explanation": rule.explanation,
    })
}

/// Rules by groups, in the order of their classes.
fn table() -> String {
    let mut rules: Vec<&Rule> = RULES.to_vec();
    rules.sort_by_key(|rule| rule.class);
    let width = rules.iter().map(|rule| rule.class.as_str().len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    let mut group = None;
    for rule in rules {
        if group.replace(rule.class.group()) != Some(rule.class.group()) {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.push(rule.class.group().as_str().to_owned());
        }
        let off = if rule.default { "" } else { " (off by default)" };
        lines.push(format!("  {:width$}  {}{off}", rule.class.as_str(), rule.class.summary()));
    }
    lines.join("\n") + "\n"
}
