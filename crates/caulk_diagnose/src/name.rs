//! Names by which source may mention what grows.

use caulk_core::wire::{Holder, PathStep, StepKind};
use caulk_python::Owner;

/// A name, and whose it is.
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) owner: Owner,
    /// What grows is an element of what the name stands for.
    pub(crate) element: bool,
}

/// The names of what a holder leads to, the closest first: for `board.series['loss']` the key, which source may write
/// out, then `series`, of which it is an element.
pub(crate) fn names(holder: &Holder) -> Vec<Name> {
    let inside = |step: &&PathStep| step.kind != StepKind::Internal;
    let last = holder.path.iter().rev().find(inside).map(|step| step.kind);
    let mut names = vec![Name {
        text: holder.name.clone(),
        owner: owner(holder),
        element: last == Some(StepKind::Index),
    }];
    let of_container =
        |step: &PathStep| !matches!(step.kind, StepKind::Index | StepKind::Internal | StepKind::Key);
    if let Some(at) = holder.path.iter().rposition(of_container)
        && holder.path[at + 1..].iter().any(|step| step.kind == StepKind::Key)
    {
        let of_class = || at.checked_sub(1).map(|before| holder.path[before].type_name.clone());
        let owner = match holder.path[at].kind {
            StepKind::Attribute => {
                of_class().filter(|class| !class.is_empty()).map_or(Owner::Any, Owner::Class)
            }
            kind => of_variable(kind, holder),
        };
        names.push(Name { text: holder.path[at].name.clone(), owner, element: true });
    }
    names
}

/// Whose name a holder's last step is.
pub(crate) fn owner(holder: &Holder) -> Owner {
    let last =
        holder.path.iter().rev().find(|step| !matches!(step.kind, StepKind::Index | StepKind::Internal));
    match last.map(|step| step.kind) {
        Some(StepKind::Attribute | StepKind::ClassAttribute) if !holder.owner_type.is_empty() => {
            Owner::Class(holder.owner_type.clone())
        }
        Some(kind) => of_variable(kind, holder),
        None => Owner::Any,
    }
}

fn of_variable(kind: StepKind, holder: &Holder) -> Owner {
    match kind {
        StepKind::Local | StepKind::Closure if !holder.function.is_empty() => {
            Owner::Function(holder.function.clone())
        }
        StepKind::Global => Owner::Module,
        _ => Owner::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: StepKind, name: &str, type_name: &str) -> PathStep {
        PathStep { kind, name: name.into(), type_name: type_name.into() }
    }

    #[test]
    fn an_element_is_mentioned_by_its_key_and_by_its_container() {
        let path = vec![
            step(StepKind::Function, "main", ""),
            step(StepKind::Local, "board", "boards.Board"),
            step(StepKind::Attribute, "series", "dict"),
            step(StepKind::Key, "'loss'", "list"),
        ];
        let holder = Holder { path, name: "loss".into(), function: "main".into(), ..Holder::default() };
        let names = names(&holder);
        let told: Vec<_> = names.iter().map(|name| (name.text.as_str(), &name.owner, name.element)).collect();
        let class = Owner::Class("boards.Board".into());
        assert_eq!(told, [("loss", &Owner::Any, false), ("series", &class, true)]);
    }

    #[test]
    fn an_attribute_has_one_name() {
        let path =
            vec![step(StepKind::Local, "board", "boards.Board"), step(StepKind::Attribute, "rows", "list")];
        let holder =
            Holder { path, name: "rows".into(), owner_type: "boards.Board".into(), ..Holder::default() };
        let names = names(&holder);
        assert_eq!(names.len(), 1);
        assert!(!names[0].element && names[0].owner == Owner::Class("boards.Board".into()));
    }
}
