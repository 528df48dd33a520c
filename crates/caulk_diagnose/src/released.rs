//! What a library or Python itself keeps, recognized by the types that were seen, and the release that it offers.
//!
//! Decided from the holder path and from the elements alone: the syntax of the line that fills it does not matter.

use caulk_core::LibraryHolder;
use caulk_core::wire::{ContainerKind, Contents, Holder, PathStep, StepKind, Trait};

/// Types of objects that keep what they are given, by the beginning of their qualified names. Subclasses of the program's own
/// are reached through the names of the attributes that their base classes give, see [`STATE`].
const KEEPERS: [(&str, LibraryHolder); 12] = [
    ("torchmetrics.", LibraryHolder::MetricState),
    ("ignite.metrics.", LibraryHolder::MetricState),
    ("accelerate.accelerator.Accelerator", LibraryHolder::Prepared),
    ("_pickle.Pickler", LibraryHolder::Pickled),
    ("pickle._Pickler", LibraryHolder::Pickled),
    ("_pickle.Unpickler", LibraryHolder::Unpickled),
    ("pickle._Unpickler", LibraryHolder::Unpickled),
    ("itertools.cycle", LibraryHolder::Cycled),
    ("itertools._tee", LibraryHolder::Teed),
    ("itertools.tee", LibraryHolder::Teed),
    ("contextlib.ExitStack", LibraryHolder::ExitStack),
    ("contextlib.AsyncExitStack", LibraryHolder::ExitStack),
];

/// Types of elements that stand for work which ends.
const WORK: [(&str, LibraryHolder); 4] = [
    ("_asyncio.Task", LibraryHolder::Tasks),
    ("asyncio.tasks.Task", LibraryHolder::Tasks),
    ("concurrent.futures._base.Future", LibraryHolder::Futures),
    ("threading.Timer", LibraryHolder::Timers),
];

/// The keeper, and its object as the program writes it.
pub(crate) struct Release {
    pub(crate) held: LibraryHolder,
    pub(crate) object: String,
}

/// The release for what a holder leads to. `text`: the line that fills it; `container`: the container as that line writes it.
pub(crate) fn of(
    holder: &Holder,
    kind: ContainerKind,
    contents: Option<&Contents>,
    text: &str,
    container: &str,
) -> Option<Release> {
    let own = |held| Release { held, object: container.to_owned() };
    by_keeper(holder, text)
        .or_else(|| (holder.name == "__warningregistry__").then(|| own(LibraryHolder::Warnings)))
        .or_else(|| by_elements(kind, contents?).map(own))
}

/// The innermost object on the path that is known to keep what it is given.
fn by_keeper(holder: &Holder, text: &str) -> Option<Release> {
    let known = |step: &PathStep| {
        let keeper = KEEPERS.iter().find(|(name, _)| step.type_name.starts_with(name));
        keeper.map(|(_, held)| *held)
    };
    let at = holder.path.iter().rposition(|step| known(step).is_some())?;
    let held = known(&holder.path[at])?;
    // A metric that is itself an element is one of many: their container grows, and not its state.
    if held == LibraryHolder::MetricState && at + 1 == holder.path.len() {
        return None;
    }
    let object = written(&holder.path[at].name, text).or_else(|| shortened(holder, at));
    Some(Release { held, object: object.unwrap_or_else(|| holder.path[at].name.clone()) })
}

/// The expression in a line that ends with a name: `self.metric` in `self.metric.update(x)`.
fn written(name: &str, text: &str) -> Option<String> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut words = text.split(|c| !part(c));
    words.find_map(|word| {
        let steps: Vec<&str> = word.split('.').collect();
        let at = steps.iter().position(|step| *step == name).filter(|_| !name.is_empty())?;
        Some(steps[..=at].join("."))
    })
}

/// The holder's expression up to a step of its path.
fn shortened(holder: &Holder, at: usize) -> Option<String> {
    let mut text = holder.expression.as_str();
    for step in holder.path[at + 1..].iter().rev() {
        let end = match step.kind {
            StepKind::Attribute | StepKind::ClassAttribute => format!(".{}", step.name),
            StepKind::Key | StepKind::Index => format!("[{}]", step.name),
            _ => continue,
        };
        text = text.strip_suffix(end.as_str())?;
    }
    Some(text.to_owned())
}

fn by_elements(kind: ContainerKind, contents: &Contents) -> Option<LibraryHolder> {
    let (first, _) = contents.element_types.first()?;
    let work = WORK.iter().find(|(name, _)| name == first).map(|(_, held)| *held);
    let keyed = match kind {
        ContainerKind::Dict => contents.traits.contains(&Trait::TensorKey),
        ContainerKind::Set => first == "torch.Tensor" || contents.traits.contains(&Trait::TensorKey),
        _ => false,
    };
    match work {
        Some(LibraryHolder::Tasks) if kind == ContainerKind::Set => Some(LibraryHolder::TasksInSet),
        Some(held) => Some(held),
        None => keyed.then_some(LibraryHolder::TensorKeys),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: StepKind, name: &str, type_name: &str) -> PathStep {
        PathStep { kind, name: name.into(), type_name: type_name.into() }
    }

    fn held_by(expression: &str, path: &[(StepKind, &str, &str)]) -> Holder {
        let path = path.iter().map(|(kind, name, type_name)| step(*kind, name, type_name)).collect();
        Holder { path, expression: expression.into(), ..Holder::default() }
    }

    fn check(holder: &Holder, text: &str, expected: Option<(LibraryHolder, &str)>) {
        let found = of(holder, ContainerKind::List, None, text, "kept");
        assert_eq!(found.as_ref().map(|found| (found.held, found.object.as_str())), expected);
    }

    #[test]
    fn an_object_of_a_library_is_named_as_the_line_writes_it() {
        let path = [
            (StepKind::Local, "job", "train.Job"),
            (StepKind::Attribute, "f1", "torchmetrics.classification.f_beta.MulticlassF1Score"),
            (StepKind::Attribute, "preds", "list"),
        ];
        let holder = held_by("job.f1.preds", &path);
        check(&holder, "self.f1.update(scores, labels)", Some((LibraryHolder::MetricState, "self.f1")));
        check(&holder, "step(scores)", Some((LibraryHolder::MetricState, "job.f1")));
        check(&held_by("job.f1", &path[..2]), "step(scores)", None);
    }

    #[test]
    fn what_has_no_name_in_the_expression_has_the_name_of_its_step() {
        let path = [(StepKind::Local, "writer", "_pickle.Pickler"), (StepKind::Internal, "memo", "dict")];
        check(&held_by("writer", &path), "out.dump(row)", Some((LibraryHolder::Pickled, "writer")));
        let path = [(StepKind::Local, "batches", "itertools.cycle"), (StepKind::Internal, "saved", "list")];
        check(&held_by("batches", &path), "x = next(batches)", Some((LibraryHolder::Cycled, "batches")));
        check(&held_by("rows", &[(StepKind::Local, "rows", "list")]), "rows.append(x)", None);
    }

    fn check_elements(
        kind: ContainerKind,
        type_name: &str,
        traits: &[Trait],
        expected: Option<LibraryHolder>,
    ) {
        let element_types = vec![(type_name.to_owned(), 8)];
        let contents = Contents { element_types, traits: traits.to_vec(), ..Contents::default() };
        let found = of(&Holder::default(), kind, Some(&contents), "", "kept");
        assert_eq!(
            found.map(|found| (found.held, found.object)),
            expected.map(|held| (held, "kept".to_owned()))
        );
    }

    #[test]
    fn the_container_s_type_decides_how_work_leaves_it() {
        check_elements(ContainerKind::Set, "_asyncio.Task", &[], Some(LibraryHolder::TasksInSet));
        check_elements(ContainerKind::List, "_asyncio.Task", &[], Some(LibraryHolder::Tasks));
        check_elements(ContainerKind::Dict, "threading.Timer", &[], Some(LibraryHolder::Timers));
        check_elements(ContainerKind::List, "torch.Tensor", &[Trait::Tensor], None);
    }

    #[test]
    fn tensors_as_keys_are_named() {
        check_elements(ContainerKind::Dict, "int", &[Trait::TensorKey], Some(LibraryHolder::TensorKeys));
        check_elements(ContainerKind::Set, "torch.Tensor", &[Trait::Tensor], Some(LibraryHolder::TensorKeys));
        check_elements(ContainerKind::Dict, "int", &[], None);
    }
}
