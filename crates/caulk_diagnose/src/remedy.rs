//! What to change, per class; as an edit where the source allows one.

use caulk_core::wire::{ContainerKind, Contents, Holder, Trait};
use caulk_core::{Advice, Cause, Fix, LeakClass, LibraryHolder, Remedy};
use caulk_python::GrowKind;

use crate::place::Located;
use crate::released;
use crate::table::class_of;

/// Facts of a growing container on which the change depends.
#[derive(Clone, Copy)]
pub(crate) struct Growing<'a> {
    pub(crate) holder: &'a Holder,
    pub(crate) kind: ContainerKind,
    pub(crate) contents: Option<&'a Contents>,
    pub(crate) located: Option<&'a Located>,
}

/// The change for something that grows.
pub(crate) fn of_kind(class: LeakClass, growing: Growing<'_>, name: &str) -> Remedy {
    let Growing { kind, contents, located, .. } = growing;
    if let Some(release) = release(class, growing) {
        return release;
    }
    let advice = beyond_bounds(class, kind, located).map(Remedy::from);
    let copy = || {
        let arrays = class == LeakClass::ViewPinsStorage && holds_arrays(contents);
        let located = located.filter(|_| arrays)?;
        located.source.lines().copy_fix(located.grow.as_ref()?).map(Remedy::from)
    };
    advice.or_else(copy).unwrap_or_else(|| of(class, located, name))
}

/// The release that the holder or the elements offer.
fn release(class: LeakClass, growing: Growing<'_>) -> Option<Remedy> {
    let Growing { holder, kind, contents, located } = growing;
    let by_type = [
        LeakClass::UnboundedHistory,
        LeakClass::GlobalAccumulation,
        LeakClass::UnboundedCache,
        LeakClass::ThreadNeverEnds,
    ];
    if !by_type.contains(&class) {
        return None;
    }
    let text = located.map_or("", |located| located.spot.text.as_str());
    let container = located.map_or(holder.expression.as_str(), |located| located.container.as_str());
    let released::Release { held, object } = released::of(holder, kind, contents, text, container)?;
    let lines = located.map(|located| located.source.lines());
    let leave = |lines: &caulk_python::Lines<'_>| lines.leave_when_done(&object);
    let discards = || lines.as_ref()?.discard_fix(located?.grow.as_ref()?);
    let remedy = match held {
        LibraryHolder::Tasks | LibraryHolder::TasksInSet if lines.as_ref().is_some_and(leave) => {
            Advice::Release(LibraryHolder::TasksPending, object).into()
        }
        LibraryHolder::TasksInSet => {
            discards().map_or_else(|| Advice::Release(held, object).into(), Remedy::from)
        }
        held => Advice::Release(held, object).into(),
    };
    Some(remedy)
}

/// Arrays of numpy, and no tensors?
fn holds_arrays(contents: Option<&Contents>) -> bool {
    let holds = |fact: &Trait| contents.is_some_and(|contents| contents.traits.contains(fact));
    holds(&Trait::Array) && !holds(&Trait::Tensor)
}

/// The change for a cause at a line.
pub(crate) fn of_cause(cause: &Cause, located: Option<&Located>, name: &str) -> Remedy {
    of(class_of(cause), located, name)
}

fn of(class: LeakClass, located: Option<&Located>, name: &str) -> Remedy {
    let edit = located.and_then(|located| edit(class, located, name));
    edit.map_or_else(|| Advice::Class(class).into(), Remedy::from)
}

/// What to do about histories that no `maxlen` bounds.
fn beyond_bounds(class: LeakClass, kind: ContainerKind, located: Option<&Located>) -> Option<Advice> {
    if !matches!(class, LeakClass::UnboundedHistory | LeakClass::GlobalAccumulation) {
        return None;
    }
    let grow = located.map(|located| located.grow.as_ref().map(|grow| grow.kind));
    match (kind, grow?) {
        (ContainerKind::Chain, _) => Some(Advice::CutChain),
        (ContainerKind::Tensor, _) => Some(Advice::LastRows),
        (ContainerKind::Set, Some(GrowKind::Add | GrowKind::Update)) => Some(Advice::Discard),
        (ContainerKind::Buffer, _) => Some(Advice::WriteOut),
        (_, Some(GrowKind::Register)) => Some(Advice::RegisterOnce),
        // Each replaces the one before, and is no history for itself.
        (_, Some(GrowKind::Assign)) => Some(Advice::BoundSource),
        // The object of the call is no dict: the library behind it keeps a list.
        (ContainerKind::List | ContainerKind::Deque, Some(GrowKind::Update | GrowKind::SetDefault))
            if located.is_some_and(|located| located.library.is_some()) =>
        {
            Some(Advice::UndoCall)
        }
        // The line calls a library, which stores into a container of its own.
        (_, None) => Some(Advice::CallOnce),
        _ => None,
    }
}

fn edit(class: LeakClass, located: &Located, name: &str) -> Option<Fix> {
    let (source, line) = (&located.source, located.spot.line);
    let grow = located.grow.as_ref();
    match class {
        LeakClass::GraphKeptInContainer | LeakClass::LossKeptWithGraph | LeakClass::StateNotDetached => {
            source.lines().detach_fix(grow?)
        }
        LeakClass::GraphRetained if grow.is_none() => source.lines().grad_none_fix(line),
        LeakClass::GraphRetained => source.lines().detach_fix(grow?),
        LeakClass::StepOutputsNotCleared => source.lines().clear_fix(grow?),
        LeakClass::UnboundedHistory | LeakClass::GlobalAccumulation | LeakClass::UnboundedCache => {
            source.lines().bound_fix(grow?)
        }
        LeakClass::UnboundedQueue => {
            let made = source.lines().creations_of(name, &located.owner).into_iter().next();
            source.lines().queue_fix(made.map_or(line, |made| made.spot.line))
        }
        LeakClass::HookNeverRemoved => source.lines().remove_handle_fix(line),
        LeakClass::FigureNotClosed => source.lines().close_figure_fix(line),
        LeakClass::ExceptionKeepsFrames => source.lines().traceback_fix(grow?),
        LeakClass::ViewPinsStorage => source.lines().clone_fix(grow?),
        LeakClass::CacheKeyedByTensor | LeakClass::CachedMethod => {
            source.lines().uncache_fix(&located.spot.function)
        }
        LeakClass::GradientsNeverCleared => source.lines().zero_grad_fix(line),
        _ => None,
    }
}
