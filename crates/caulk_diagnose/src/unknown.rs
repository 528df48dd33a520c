//! Names that another version of caulk has recorded, and this one does not know.

use std::collections::BTreeSet;

use caulk_core::Remark;
use caulk_core::wire::{NoteCode, Trait};

use crate::process::Process;

/// All of them; nothing if every name is known.
pub(crate) fn remark(processes: &[Process<'_>]) -> Option<Remark> {
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
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    (!names.is_empty()).then_some(Remark::OtherVersion { names })
}
