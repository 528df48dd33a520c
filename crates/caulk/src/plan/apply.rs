//! `caulk run --apply`: a plan's settings for the loaders of a program.

use std::fs;

use anyhow::{Context, bail};
use camino::Utf8Path;
use serde_json::Value;

use super::document::{Document, SCHEMA};
use super::yaml;

/// Reads a plan, YAML or JSON.
///
/// # Errors
/// If it cannot be read, is not of that form, or sets nothing that could be applied.
pub(crate) fn read(path: &Utf8Path) -> anyhow::Result<Document> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read the plan `{path}`"))?;
    parse(&text).with_context(|| format!("`{path}` is no plan"))
}

fn parse(text: &str) -> anyhow::Result<Document> {
    let value: Value =
        if text.trim_start().starts_with('{') { serde_json::from_str(text)? } else { yaml::read(text)? };
    let says_loader = value.get("loader").is_some();
    let document: Document = serde_json::from_value(value)?;
    if document.schema != SCHEMA {
        bail!("it is of form {}, this caulk knows {SCHEMA}", document.schema);
    }
    // One that was made for a program without a loader says so.
    if document.setting().is_empty() && !says_loader {
        bail!("it sets nothing of a loader");
    }
    Ok(document)
}

impl Document {
    /// As the hook in the program reads it: `num_workers:2,pin_memory:0`.
    pub(crate) fn setting(&self) -> String {
        let (loader, truth) = (&self.loader, |set: Option<bool>| set.map(u64::from));
        let all = [
            ("num_workers", loader.num_workers),
            ("prefetch_factor", loader.prefetch_factor),
            ("pin_memory", truth(loader.pin_memory)),
            ("persistent_workers", truth(loader.persistent_workers)),
            ("training_batch", self.training.batch_size),
            ("validation_batch", self.validation.batch_size),
        ];
        let set = all.into_iter().filter_map(|(name, value)| Some(format!("{name}:{}", value?)));
        set.collect::<Vec<_>>().join(",")
    }

    /// What of it the program must set itself.
    pub(crate) fn left_to_the_program(&self) -> Option<String> {
        let training = &self.training;
        let many = training.accumulate_grad_batches.filter(|many| *many > 1);
        let parts = [
            many.map(|many| {
                format!("accumulate_grad_batches {many}, or the effective batch becomes smaller")
            }),
            training.precision.as_ref().filter(|p| *p != "32-true").map(|p| format!("precision {p}")),
            training.gradient_checkpointing.filter(|on| *on).map(|_| "gradient_checkpointing".into()),
            self.validation
                .check_val_every_n_epoch
                .filter(|every| *every > 1)
                .map(|every| format!("check_val_every_n_epoch {every}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_plan_in_yaml_or_json_becomes_settings() {
        let yaml = "# mine\nschema: 1\ntraining:\n  batch_size: 4  # was 16: it fits\n  accumulate_grad_batches: 4\n  \
                    precision: \"16-mixed\"\nloader:\n  num_workers: 2\n  pin_memory: false\n";
        let document = parse(yaml).unwrap();
        assert_eq!(document.setting(), "num_workers:2,pin_memory:0,training_batch:4");
        let told = document.left_to_the_program().unwrap();
        assert!(told.contains("accumulate_grad_batches 4") && told.contains("16-mixed"), "{told}");
        let json = parse("{\"schema\": 1, \"loader\": {\"num_workers\": 0}, \"advice\": []}").unwrap();
        assert_eq!((json.setting().as_str(), json.left_to_the_program()), ("num_workers:0", None));
        let none = parse("schema: 1\nloader:  # none was seen\n").unwrap();
        assert!(none.setting().is_empty() && none.has_no_loader());
    }

    #[test]
    fn what_is_no_plan_says_why() {
        let check = |text: &str, expected: &str| {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        check("", "missing field `schema`");
        check("schema: 1\n", "sets nothing of a loader");
        check("schema: 2\nloader:\n  num_workers: 1\n", "form 2");
        check("schema: 1\nloader:\n  num_worker: 1\n", "unknown field `num_worker`");
        check("schema: 1\nloader:\n  num_workers: -1\n", "line 3: not a plain value");
        check("schema: 1\nloader:\n  num_workers: many\n", "invalid type");
        check("schema: 1\n  num_workers: 1\n", "line 2: a setting outside");
        check("hello\n", "line 1: neither");
        check("schema: 1\nloader: [1]\n", "line 2: not a plain value");
    }
}
