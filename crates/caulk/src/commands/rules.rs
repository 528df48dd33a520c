//! `caulk rule` and `caulk rules`: what the rules are and what they mean.

use std::collections::BTreeMap;

use anyhow::Context;
use caulk_check::Selection;
use caulk_core::{LeakClass, Severity};
use caulk_report::{markdown, sentence_case};
use caulk_rules::{ClassGrade, RULES, Rule, rule};
use serde_json::{Value, json};

use crate::cli::{Format, RulePageArgs, RulesArgs};
use crate::{exit, printer};

/// Prints the page of one rule, or of a class that has none because only a running program shows it.
///
/// # Errors
/// If there is no such rule, or the page cannot be written.
pub(crate) fn page(args: &RulePageArgs) -> anyhow::Result<i32> {
    let seen_in_runs = args.name.parse().ok().filter(|class| rule(*class).is_none());
    let (explanation, described) = if let Some(class) = seen_in_runs {
        (of_runs(class), described_by_runs(class))
    } else {
        // Names the rule that was meant where there is no such rule.
        Selection::classes(std::slice::from_ref(&args.name))?;
        let rule = args.name.parse().ok().and_then(rule);
        let is_group = || format!("`{}` is a group of rules\nhint: `caulk rules` lists them", args.name);
        let rule = rule.with_context(is_group)?;
        (rule.explanation.to_owned() + &rests_on(rule.class), described(rule))
    };
    let text = match args.output_format {
        Format::Text => markdown(&explanation, &printer::data_options()),
        Format::Json => format!("{described:#}\n"),
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
            let rules: Vec<Value> = RULES.iter().map(|rule| described(rule)).collect();
            let by_runs: Vec<Value> = unruled().map(described_by_runs).collect();
            format!("{:#}\n", json!({"rules": rules, "found_by_runs": by_runs}))
        }
    };
    printer::data(&text).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
}

/// The page of a class that no rule finds.
fn of_runs(class: LeakClass) -> String {
    let (name, summary) = (class.as_str(), sentence_case(class.summary()));
    let change = sentence_case(&class.advice().description);
    format!(
        "# {name}\n\n## What it finds\n\n{summary} `caulk run` finds it in a running program; source does not show it, so \
         that `caulk check` has no rule for it.\n\n## What to do\n\n{change}\n"
    )
}

/// Classes that no rule finds.
fn unruled() -> impl Iterator<Item = LeakClass> {
    LeakClass::ALL.iter().copied().filter(|class| rule(*class).is_none())
}

fn described_by_runs(class: LeakClass) -> Value {
    json!({
        "name": class,
        "group": class.group(),
        "summary": class.summary(),
        "severity": null,
        "default": false,
        "explanation": of_runs(class),
    })
}

fn described(rule: &Rule) -> Value {
    let grade = ClassGrade::of(rule.class);
    json!({
        "name": rule.class,
        "group": rule.class.group(),
        "summary": rule.class.summary(),
        "severity": grade.map(|grade| grade.highest),
        "proof": grade.map(|grade| grade.parts().into_iter().collect::<BTreeMap<_, _>>()),
        "default": rule.default,
        "explanation": rule.explanation,
    })
}

/// What the four parts of a proof mean for a class, as a section of its page.
fn rests_on(class: LeakClass) -> String {
    let Some(grade) = ClassGrade::of(class) else { return String::new() };
    let parts: Vec<String> =
        grade.parts().iter().map(|(name, meaning)| format!("- `{name}`: {meaning}\n")).collect();
    let why = if grade.by_proof {
        "An error needs all four parts proven, a warning three proven and the fourth likely. Anything less is a hint."
    } else {
        "This is a setting, a peak or an error of training: its severity does not depend on the proof."
    };
    format!("\n## Proof\n\n{}\nHighest severity: `{}`. {why}\n", parts.concat(), name_of(grade.highest))
}

const fn name_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
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
    lines.extend([String::new(), "found by `caulk run` alone".into()]);
    lines.extend(unruled().map(|class| format!("  {:width$}  {}", class.as_str(), class.summary())));
    lines.join("\n") + "\n"
}
