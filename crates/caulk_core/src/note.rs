//! A line of a report that is no finding: what could not be looked at, what to know about the figures.

use caulk_wire::NoteCode;
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
}

impl Note {
    /// A note about this.
    pub fn new(code: NoteCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
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
    Note { code: String, text: String },
}

impl From<Written> for Note {
    fn from(written: Written) -> Self {
        match written {
            Written::Note { code, text } => Self::new(NoteCode::from_name(&code), text),
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
