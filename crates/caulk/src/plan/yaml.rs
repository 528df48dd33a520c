//! A plan as YAML for people to keep and edit, with the reason beside each setting that was changed.

use caulk_plan::Change;
use serde_json::{Map, Value, json};

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
        let settings =
            SETTINGS.iter().filter(|(of, key, _)| *of == section && !values[section][key].is_null());
        for (number, (_, key, name)) in settings.enumerate() {
            if number == 0 {
                lines.push(format!("{section}:"));
            }
            let change = changes.iter().find(|change| change.setting == *name);
            let why = change.map_or_else(String::new, |c| format!("  # was {}: {}", c.before, c.why));
            lines.push(format!("  {key}: {}{why}", scalar(&values[section][key])));
        }
    }
    if document.has_no_loader() {
        lines.push("loader:  # none was seen: nothing is set".into());
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

/// A file of settings that is not of this form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {what}\nhint: sections, and below them `name: value`, as `caulk plan --output` writes them"
)]
pub(crate) struct YamlError {
    /// Number of the line, from 1.
    pub(crate) line: usize,
    what: &'static str,
}

/// Reads the YAML that [`write`] writes and people edit: sections of names with plain values, and comments.
///
/// # Errors
/// [`YamlError`] for anything else that YAML can say.
pub(crate) fn read(text: &str) -> Result<Value, YamlError> {
    let mut document = Map::new();
    let mut section: Option<String> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |what| YamlError { line: number, what };
        let line = uncommented(line).trim_end();
        if line.is_empty() || line == "---" {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or(wrong("neither a section nor a setting"))?;
        let (indented, name, value) = (name.starts_with(' '), name.trim(), value.trim());
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(wrong("a name of letters, digits and `_` is expected before the colon"));
        }
        match (indented, &section) {
            (false, _) if value.is_empty() => {
                document.insert(name.into(), json!({}));
                section = Some(name.into());
            }
            (false, _) => {
                document.insert(name.into(), plain(value).ok_or(wrong("not a plain value"))?);
                section = None;
            }
            (true, None) => return Err(wrong("a setting outside of any section")),
            (true, Some(section)) => {
                document[section][name] = plain(value).ok_or(wrong("not a plain value"))?;
            }
        }
    }
    Ok(Value::Object(document))
}

/// The line before its comment; `#` within quotes or a word is none.
fn uncommented(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return &line[..at],
            _ => (),
        }
        before = c;
    }
    line
}

/// A number, a truth value, nothing, or text.
fn plain(value: &str) -> Option<Value> {
    if value.starts_with(['[', '{', '&', '*', '!', '|', '>', '-', '@', '`']) {
        return None;
    }
    let quoted = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    if let Some(text) = quoted('"').or_else(|| quoted('\'')) {
        return Some(text.into());
    }
    Some(match value {
        "true" | "True" => true.into(),
        "false" | "False" => false.into(),
        "" | "null" | "~" => Value::Null,
        _ => value.parse::<u64>().map_or_else(|_| value.into(), Value::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::document::{Loader, Training, Validation};

    #[test]
    fn what_is_written_is_read_again() {
        let document = Document {
            schema: 1,
            training: Training {
                batch_size: Some(4),
                accumulate_grad_batches: Some(8),
                precision: Some("bf16-mixed".into()),
                gradient_checkpointing: Some(true),
                frames: None,
                size: Some(224),
            },
            loader: Loader {
                num_workers: Some(0),
                prefetch_factor: None,
                pin_memory: Some(false),
                persistent_workers: Some(false),
            },
            validation: Validation { batch_size: Some(4), check_val_every_n_epoch: Some(2) },
        };
        let text = write(&document, &["a: # head".into()], &[], &["b".into()]);
        let read: Result<Document, _> = serde_json::from_value(read(&text).unwrap_or_default());
        assert_eq!(read.ok(), Some(document), "{text}");
    }

    #[test]
    fn a_plan_without_loaders_says_so() {
        let document = Document { schema: 1, ..Document::default() };
        let text = write(&document, &[], &[], &[]);
        assert_eq!(text, "schema: 1\nloader:  # none was seen: nothing is set\n");
        let read: Result<Document, _> = serde_json::from_value(read(&text).unwrap_or_default());
        assert_eq!(read.ok(), Some(document));
    }

    #[test]
    fn comments_end_lines_and_quotes_keep_them() {
        let text = "a:\n  b: \"x # y\" # z\n  c: 'd#e'\n  f: g#h\n  i: ~\n# j: 1\n";
        let expected = json!({ "a": { "b": "x # y", "c": "d#e", "f": "g#h", "i": null } });
        assert_eq!(read(text), Ok(expected));
    }

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
                        pin_memory: false\n# more\n";
        assert_eq!(text, expected);
    }
}
