//! Figures: what their elements lead to is the least of it. The buffers that they are drawn into, and what is computed for
//! that, lie with objects of C++; the heap profile has them at the lines that draw.

use caulk_core::wire::{HeapFrame, HeapStack, Trait};
use caulk_core::{Evidence, Rate, Series, State};

use super::item::Suspect;
use crate::heap::{Course, is_of_user, stays};
use crate::judged::Judged;
use crate::place::{is_figure_registry, is_of_drawing};
use crate::process::Process;

/// Charges the figures that are kept with what matplotlib allocates and does not give back while the program draws.
pub(super) fn weigh(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return };
    let keeps_figures = |suspect: &Suspect<'_>| {
        let is_drawn = is_figure_registry(suspect.holder) || is_of_drawing(suspect.holder);
        suspect.located.is_some() && (is_drawn || suspect.holds(&Trait::Figure))
    };
    let rates = |figures: bool| {
        let counted = suspects.iter().filter(move |suspect| {
            suspect.series == Series::InUse && suspect.located.is_some() && keeps_figures(suspect) == figures
        });
        counted.map(|suspect| suspect.rate.bytes_per_unit).sum::<f64>()
    };
    let (figures, others) = (rates(true), rates(false));
    let drawn: Vec<u32> =
        process.stacks.iter().filter(|(_, stack)| draws(stack)).map(|(id, _)| *id).collect();
    let Some(course) = Course::of([(process, drawn.as_slice())], scale) else { return };
    let judgement = course.judge(scale);
    let most = in_use.bytes_per_unit - others;
    let bytes = judgement.slope.min(most);
    // What a figure is kept by besides pyplot is no second weight.
    let keepers = suspects.iter_mut().filter(|suspect| keeps_figures(suspect));
    let known = |suspect: &Suspect<'_>| suspect.rate.bytes_per_unit as u64;
    let keeper = keepers.max_by_key(|suspect| (is_figure_registry(suspect.holder), known(suspect)));
    let Some(keeper) = keeper.filter(|_| stays(&judgement) && bytes > figures) else { return };
    keeper.rate.bytes_per_unit = bytes;
    keeper.rate.interval = Some(course.growth(&judgement).interval().map(|bound| bound.clamp(0.0, most)));
    keeper.beside = Some(Evidence::MadeByDrawing { rate: Rate::new(judgement.slope, scale.verdict_unit()) });
}

/// Parts of matplotlib that draw: what others of it allocate (images that are read, colours) is handed to the program.
const DRAWING: [&str; 3] = ["/matplotlib/backends/", "/matplotlib/figure.py", "/matplotlib/axes/"];

/// Does a line of the program's reach the allocation through what draws?
fn draws(stack: &HeapStack) -> bool {
    let blamed = stack.frames.iter().position(|frame| is_of_user(&frame.file));
    let is_drawing = |frame: &HeapFrame| DRAWING.iter().any(|part| frame.file.contains(part));
    blamed.is_some_and(|at| stack.frames[..at].iter().any(is_drawing))
}
