//! Edits that may end a leak and may do harm: only a run with one shows which. Bold where the other fixes are careful.

mod arrays;
mod caches;
mod chains;
mod closed;
mod collected;
mod emptied;
mod library;
mod limits;
mod moved;
mod places;
mod raised;
mod registered;
mod released;
mod saved;
mod segments;
mod stored;
mod torch;
mod ungraphed;
mod unread;

use caulk_core::{Edit, Fix};

use super::{
    bound, clear, clone, close_figure, detach, float, grad_none, remove_handle, traceback, uncache, zero_grad,
};
pub(crate) use chains::cut as cut_chain;
pub(crate) use collected::{by_calls, callers, left_on};
pub(crate) use raised::without_frames;
pub(crate) use saved::close_saved;

use crate::index::CallRecord;
use crate::lines::Lines;
use crate::query::{grows_at, spot};
use crate::sites::{EditTry, GrowSite, TryKind};

/// Edits to try for growth at a line, the most promising of each kind first.
pub(crate) fn tries(file: &Lines<'_>, line: u32, function: &str) -> Vec<EditTry> {
    let mut found: Vec<EditTry> = grows_at(file, line).iter().flat_map(|site| of_site(file, site)).collect();
    let careful = [
        close_figure(file, line),
        remove_handle(file, line),
        grad_none(file, line),
        zero_grad(file, line),
        uncache(file, function),
    ];
    found.extend(careful.into_iter().flatten().map(|fix| of_fix(TryKind::Release, fix)));
    found.extend(released::releases(file, line));
    found.extend(caches::limited(file, function));
    found.extend(closed::closes(file, function));
    found.extend(closed::takes_off(file, function));
    found.extend(library::begins_again(file, line));
    found.extend(collected::by_the_loop(file, line));
    found.extend(moved::out_of_loop(file, line));
    let called = file.index.calls.iter().filter(|call| spot(file, call.place.statement).covers(line));
    found.extend(called.flat_map(|call| of_call(file, call)));
    found.extend(ungraphed::without_graphs(file, line, function));
    found.retain(|one| !one.edits.is_empty());
    let mut seen: Vec<Vec<Edit>> = Vec::new();
    found.retain(|one| {
        let new = !seen.contains(&one.edits);
        seen.push(one.edits.clone());
        new
    });
    found
}

/// Edits to a call that keeps something by design, or leaves it to the program.
fn of_call(file: &Lines<'_>, call: &CallRecord) -> Vec<EditTry> {
    let known = [
        library::forgets_calls(file, call),
        library::logs_text(file, call),
        library::waits(file, call),
        registered::kept_with_others(file, call),
        registered::taken_off_by_itself(file, call),
        segments::unlinked(file, call),
        torch::forgets_groups(file, call),
        torch::profiles_once(file, call),
        torch::workers_end(file, call),
        unread::not_set(file, call),
    ];
    known.into_iter().flatten().collect()
}

/// Edits to what is stored, how much of it, and for how long.
fn of_site(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    if let Some(made) = library::queue(file, site) {
        return library::bounded(file, made).into_iter().collect();
    }
    let careful = [
        (TryKind::Value, detach(file, site)),
        (TryKind::Value, traceback(file, site)),
        (TryKind::Value, clone(file, site, false)),
        (TryKind::Value, float(file, site)),
        (TryKind::Bound, bound(file, site)),
        (TryKind::Clear, clear(file, site)),
    ];
    let mut found: Vec<EditTry> = unread::not_kept(file, site).into_iter().collect();
    found.extend(careful.into_iter().filter_map(|(kind, fix)| Some(of_fix(kind, fix?))));
    found.extend(stored::values(file, site));
    let is_cache = caches::is_cache(file, site);
    if is_cache {
        found.extend(caches::bounded(file, site));
    }
    found.extend(limits::limits(file, site));
    found.extend(emptied::clears_after_reading(file, site));
    found.extend(emptied::clears(file, site));
    found.extend(emptied::clears_in_class(file, site));
    // What a cache has is looked for again.
    if !is_cache {
        found.extend(emptied::takes_out(file, site));
        found.extend(caches::bounded(file, site));
    }
    found.extend(arrays::arrays(file, site));
    found
}

fn of_fix(kind: TryKind, fix: Fix) -> EditTry {
    EditTry { kind, description: fix.description, edits: fix.edits }
}
