//! Keys of things that are followed by name.

use caulk_wire::{Holder, StepKind, Trait};

/// What tells things that are followed by name apart.
pub(crate) fn key_of(holder: &Holder) -> String {
    format!("{}:{}", holder.function, holder.expression)
}

/// The fact of what is told by another name that it is the value of this local variable as well.
pub(crate) fn also_called(variable: &Holder) -> Trait {
    Trait::Also { function: variable.function.clone(), variable: variable.expression.clone() }
}

/// The same where all elements of a list are one matter.
pub(super) fn key_of_list(holder: &Holder) -> String {
    let mut key = key_of(holder);
    if holder.path.last().is_some_and(|step| step.kind == StepKind::Index) {
        key.truncate(key.rfind('[').unwrap_or(key.len()));
    }
    key
}
