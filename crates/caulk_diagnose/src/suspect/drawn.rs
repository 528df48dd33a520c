//! Figures: what their elements lead to is the least of it. The buffers that they are drawn into, and what is computed for
//! that, lie with objects of C++; the heap profile has them at the lines that draw.

use caulk_core::wire::HeapStack;
use caulk_core::{Bytes, Evidence, State};

use super::Suspect;
use crate::heap::{Course, is_of_user};
use crate::place::is_figure_registry;
use crate::process::Process;
use crate::verdicts::Judged;

/// Charges the figures that are kept with what matplotlib allocates and does not give back while the program draws.
pub(super) fn weigh(process: &Process<'_>, judged: &Judged, suspects: &mut [Suspect<'_>]) {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return };
    let keeps_figures = |suspect: &Suspect<'_>| is_figure_registry(suspect.holder) || suspect.holds("figure");
    // What a figure is kept by besides pyplot is no second weight.
    let mut keepers: Vec<&mut Suspect<'_>> =
        suspects.iter_mut().filter(|suspect| suspect.located.is_some() && keeps_figures(suspect)).collect();
    keepers.sort_by_key(|suspect| !is_figure_registry(suspect.holder));
    let Some(keeper) = keepers.into_iter().next() else { return };
    let drawn: Vec<u32> =
        process.stacks.iter().filter(|(_, stack)| draws(stack)).map(|(id, _)| *id).collect();
    let Some(course) = Course::of([(process, drawn.as_slice())], scale) else { return };
    let judgement = course.judge(scale);
    let stays = judgement.state == State::Grows || judgement.interval.is_some_and(|[low, _]| low > 0.0);
    let bytes = judgement.slope.min(in_use.bytes_per_unit);
    if stays && bytes > keeper.rate.bytes_per_unit {
        keeper.rate.bytes_per_unit = bytes;
        keeper.rate.interval = Some(course.growth(&judgement).interval().map(|bound| bound.max(0.0)));
        let (live, margin) = (Bytes(course.last.bytes as u64), Bytes(course.last.margin() as u64));
        keeper.beside = Some(Evidence {
            kind: "heap-profile".into(),
            text: format!(
                "{live} allocated by matplotlib while the program draws live at the last look, give or take {margin} \
                 (sampled)"
            ),
        });
    }
}

/// Does a line of the program's reach the allocation through matplotlib?
fn draws(stack: &HeapStack) -> bool {
    let blamed = stack.frames.iter().position(|frame| is_of_user(&frame.file));
    let of_matplotlib =
        |at: usize| stack.frames[..at].iter().any(|frame| frame.file.contains("/matplotlib/"));
    blamed.is_some_and(of_matplotlib)
}
