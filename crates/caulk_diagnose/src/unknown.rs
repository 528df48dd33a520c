//! Names that another version of caulk has recorded, and this one does not know.

use std::collections::BTreeSet;

use caulk_core::Note;
use caulk_core::wire::{NoteCode, Trait};

use crate::process::Process;

/// Names that are listed at most.
const LISTED: usize = 4;

/// A line about all of them; none where everything is known.
pub(crate) fn note(processes: &[Process<'_>]) -> Option<Note> {
    let looks = processes.iter().flat_map(|process| process.contents.values()).flatten();
    let traits = looks.flat_map(|look| &look.traits).filter_map(|fact| match fact {
        Trait::Unknown(name) => Some(name.as_str()),
        _ => None,
    });
    let codes = processes.iter().flat_map(|process| &process.notes).filter_map(|note| match &note.code {
        NoteCode::Unknown(name) => Some(name.as_str()),
        _ => None,
    });
    let names: BTreeSet<&str> = traits.chain(codes).collect();
    let listed: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| {
        let text = format!(
            "another version of caulk has recorded what this one does not know ({}); `caulk report` of that version shows it",
            listed.join(", ")
        );
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        Note::new(NoteCode::OtherVersion, text).with("names", names)
    })
}
