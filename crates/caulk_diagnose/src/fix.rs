//! What to change, per class; as an edit where the source allows one.

use caulk_core::wire::{ContainerKind, Contents, Holder, Trait};
use caulk_core::{Applicability, Fix, LeakClass, LibraryHolder};
use caulk_python::GrowKind;

use crate::place::Located;
use crate::released;

/// Facts of a growing container on which the change depends.
#[derive(Clone, Copy)]
pub(crate) struct Growing<'a> {
    pub(crate) holder: &'a Holder,
    pub(crate) kind: ContainerKind,
    pub(crate) contents: Option<&'a Contents>,
    pub(crate) located: Option<&'a Located>,
}

/// The change for something that grows.
pub(crate) fn of_kind(class: LeakClass, growing: Growing<'_>, name: &str) -> Fix {
    let Growing { kind, contents, located, .. } = growing;
    if let Some(release) = release(class, growing) {
        return release;
    }
    let advice = beyond_bounds(class, kind, located).map(display);
    let copy = || {
        let arrays = class == LeakClass::ViewPinsStorage && holds_arrays(contents);
        let located = located.filter(|_| arrays)?;
        located.source.lines().copy_fix(located.grow.as_ref()?)
    };
    advice.or_else(copy).unwrap_or_else(|| of(class, located, name))
}

/// The release that the holder or the elements offer.
fn release(class: LeakClass, growing: Growing<'_>) -> Option<Fix> {
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
    match held {
        LibraryHolder::Tasks | LibraryHolder::TasksInSet if lines.as_ref().is_some_and(leave) => {
            Some(LibraryHolder::TasksPending.release(&object))
        }
        LibraryHolder::TasksInSet => {
            let edit = lines.zip(located.and_then(|located| located.grow.as_ref()));
            let edit = edit.and_then(|(lines, grow)| lines.discard_fix(grow));
            Some(edit.unwrap_or_else(|| held.release(&object)))
        }
        held => Some(held.release(&object)),
    }
}

/// Arrays of numpy, and no tensors?
fn holds_arrays(contents: Option<&Contents>) -> bool {
    let holds = |fact: &Trait| contents.is_some_and(|contents| contents.traits.contains(fact));
    holds(&Trait::Array) && !holds(&Trait::Tensor)
}

/// The change for a finding.
pub(crate) fn of(class: LeakClass, located: Option<&Located>, name: &str) -> Fix {
    let edit = located.and_then(|located| edit(class, located, name));
    edit.unwrap_or_else(|| class.advice())
}

/// What to do about figures that a container of the program's own keeps: closing does nothing for them.
pub(crate) const KEPT_FIGURES: &str = "let go of each figure once it is saved (keep its file, or the numbers that it shows), or draw on one figure again \
                                       after `fig.clear()`";
/// ... and about artists that pile up on one Axes.
pub(crate) const PILED_ARTISTS: &str = "wipe the Axes before drawing again, `ax.clear()`, or change what is drawn: `line.set_data(...)`, \
                                        `points.set_offsets(...)`, `image.set_data(...)`";

/// What to do about histories that no `maxlen` bounds.
fn beyond_bounds(class: LeakClass, kind: ContainerKind, located: Option<&Located>) -> Option<&'static str> {
    if !matches!(class, LeakClass::UnboundedHistory | LeakClass::GlobalAccumulation) {
        return None;
    }
    let grow = located.map(|located| located.grow.as_ref().map(|grow| grow.kind));
    match (kind, grow?) {
        (ContainerKind::Chain, _) => Some(
            "keep of the object before only what is needed of it (a number, say), or let go of what it refers to itself",
        ),
        (ContainerKind::Tensor, _) => Some(
            "keep the last rows alone (`x = x[-most:].clone()`), or a mean or another summary that is updated",
        ),
        (ContainerKind::Set, Some(GrowKind::Add | GrowKind::Update)) => Some(
            "take each element out when it is done with (`.discard(element)`), or empty the set (`.clear()`)",
        ),
        (ContainerKind::Buffer, _) => {
            Some("write it to a file as it comes, or empty it (`.clear()`) once it is used")
        }
        (_, Some(GrowKind::Register)) => {
            Some("register it once, before the loop, or take it out again when it is done with")
        }
        // Each replaces the one before, and is no history for itself.
        (_, Some(GrowKind::Assign)) => {
            Some("it is made anew of something that grows: bound that, or keep less of it here")
        }
        // The object of the call is no dict: the library behind it keeps a list.
        (ContainerKind::List | ContainerKind::Deque, Some(GrowKind::Update | GrowKind::SetDefault))
            if located.is_some_and(|located| located.library.is_some()) =>
        {
            Some("undo this call, or reset what it is called on, when what it adds is done with")
        }
        // The line calls a library, which stores into a container of its own.
        (_, None) => Some("make this call once, or undo it when what it adds is done with"),
        _ => None,
    }
}

/// A change in words.
pub(crate) fn display(description: &str) -> Fix {
    Fix { applicability: Applicability::DisplayOnly, description: description.to_owned(), edits: Vec::new() }
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
