//! A plan as YAML for people to keep, with the reason beside each setting that was changed.

use caulk_plan::Change;
use serde_json::Value;

use super::document::Document;

/// Names of settings in a file, where they differ from those of the changes.
const SETTINGS: [(&str, &str, &str); 12] = [
    ("training", "batch_size", "batch_size"),
    ("training", "accumulate_grad_batches", "accumulate_grad_batches"),
    ("training", "precision", "precision"),
    ("training", "gradient_checkpointing", "gradient_checkpointing"),
    ("training", "frames", "frames"),
    ("training", "size", "size"),
    ("loader", "num_workers", "num_workers"),
    ("loader", "prefetch_factor", "prefetch_factor"),
    ("loader", "pin_memory", "pin_memory"),
    ("loader", "persistent_workers", "persistent_workers"),
    ("validation", "batch_size", "validation_batch_size"),
    ("validation", "check_val_every_n_epoch", "validation_every"),
];

/// The file: `head` as comments, then the settings, then further advice as comments.
pub(crate) fn write(document: &Document, head: &[String], changes: &[Change], further: &[String]) -> String {
    let values = serde_json::to_value(document).unwrap_or_default();
    let mut lines: Vec<String> = head.iter().map(|line| comment(line)).collect();
    lines.push(format!("schema: {}", document.schema));
    for section in ["training", "loader", "validation"] {
        lines.push(format!("{section}:"));
        for (_, key, name) in SETTINGS.iter().filter(|(of, ..)| *of == section) {
            let value = &values[section][key];
            if !value.is_null() {
                let change = changes.iter().find(|change| change.setting == *name);
                let why = change.map_or_else(String::new, |c| format!("  # was {}: {}", c.before, c.why));
                lines.push(format!("  {key}: {}{why}", scalar(value)));
            }
        }
    }
    lines.extend(further.iter().map(|line| comment(line)));
    lines.join("\n") + "\n"
}

fn comment(line: &str) -> String {
    format!("# {line}").trim_end().to_owned()
}

/// Text stays as it is: all of ours is plain.
fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::document::{Loader, Training, Validation};

    #[test]
    fn a_file_says_why() {
        let document = Document {
            schema: 1,
            training: Training {
                batch_size: Some(4),
                precision: Some("16-mixed".into()),
                ..Default::default()
            },
            loader: Loader { pin_memory: Some(false), ..Loader::default() },
            validation: Validation::default(),
        };
        let change = Change {
            setting: "batch_size",
            before: "16".into(),
            after: "4".into(),
            why: "it fits".into(),
            gpu_saved: 0.0,
            host_saved: 0.0,
        };
        let text = write(&document, &["made".into()], &[change], &["more".into()]);
        let expected = "# made\nschema: 1\ntraining:\n  batch_size: 4  # was 16: it fits\n  precision: \"16-mixed\"\nloader:\n  \
                        pin_memory: false\nvalidation:\n# more\n";
        assert_eq!(text, expected);
    }
}
