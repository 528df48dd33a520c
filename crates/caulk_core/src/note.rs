//! A line of a report that is no finding: what could not be looked at, what to know about the figures.

use caulk_wire::NoteCode;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

/// A note: what it is about, and the line for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!from))]
#[serde(from = "Written")]
pub struct Note {
    /// What it is about.
    #[serde(serialize_with = "name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub code: NoteCode,
    /// For people.
    pub text: String,
    /// The figures in the text, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, NoteFact>,
}

/// A figure of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum NoteFact {
    /// Bytes, or a number of things.
    Number(i64),
    /// A name.
    Name(String),
    /// Names.
    Names(Vec<String>),
}

impl From<u64> for NoteFact {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for NoteFact {
    fn from(number: f64) -> Self {
        Self::Number(number as i64)
    }
}

impl From<&str> for NoteFact {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<Vec<String>> for NoteFact {
    fn from(names: Vec<String>) -> Self {
        Self::Names(names)
    }
}

impl Note {
    /// A note about this.
    pub fn new(code: NoteCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), facts: BTreeMap::new() }
    }

    /// The note with one more figure.
    #[must_use]
    pub fn with(mut self, name: &str, fact: impl Into<NoteFact>) -> Self {
        self.facts.insert(name.to_owned(), fact.into());
        self
    }
}

impl From<&caulk_wire::Note> for Note {
    fn from(note: &caulk_wire::Note) -> Self {
        Self::new(note.code.clone(), note.text.clone())
    }
}

/// How recordings have written notes: earlier versions as mere texts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Note {
        code: String,
        text: String,
        #[serde(default)]
        facts: BTreeMap<String, NoteFact>,
    },
}

impl From<Written> for Note {
    fn from(written: Written) -> Self {
        match written {
            Written::Note { code, text, facts } => Self { code: NoteCode::from_name(&code), text, facts },
            Written::Text(text) => {
                let begins = |code: &NoteCode| text.starts_with(&format!("{code}: "));
                let code = [NoteCode::Alarm, NoteCode::Guard].into_iter().find(begins);
                Self::new(code.unwrap_or_default(), text)
            }
        }
    }
}

fn name<S: Serializer>(code: &NoteCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}
