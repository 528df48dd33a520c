//! Everything that refers to one object, each with a path from a root.

use pyo3::prelude::*;

use crate::census::{CollectorPaused, PATIENCE};
use crate::frames;
use crate::heap::{Address, AddressSet, Heap, Shape, visit_tracked};
use crate::holders::{self, Path, Root, Scope};
use crate::label;

/// Referrers that are looked at.
const MOST: usize = 64;

/// One holder in words: the expression that a person would type, the steps of the path, function, file and line of the
/// frame that it starts from (empty and 0 where it starts from a module).
pub(super) type Words = (String, Vec<String>, String, String, u32);

/// Expressions by which an object can be reached, from every object and running function that refers to it.
///
/// The caller's own frame and those within caulk are left out: they refer to it because they ask.
#[pyfunction]
pub(super) fn holders_of(py: Python<'_>, object: &Bound<'_, PyAny>) -> Vec<Words> {
    let _paused = CollectorPaused::new(py);
    let target = object.as_ptr() as Address;
    let mut heap = Heap::new(py);
    let mut referrers = Vec::new();
    let mut found = false;
    visit_tracked(py, &mut |referrer| {
        let info = heap.type_of(referrer);
        if !matches!(info.shape, Shape::Frame | Shape::Module) && referrers.len() < MOST {
            found = false;
            heap.referents_of(referrer, info, &mut |child| found |= child == target);
            if found {
                referrers.push(referrer);
            }
        }
        true
    });
    heap.keep(referrers.iter().copied());
    let mut told: Vec<Words> = locals_of(py, target)
        .into_iter()
        .map(|root| words(&mut heap, &Path { root, nodes: vec![target] }))
        .collect();
    let targets: AddressSet = referrers.iter().copied().collect();
    let (paths, _) = holders::find_within(&mut heap, &targets, Scope::All, PATIENCE);
    for referrer in referrers {
        if let Some(path) = paths.get(&referrer) {
            let nodes = path.nodes.iter().copied().chain([target]).collect();
            told.push(words(&mut heap, &Path { root: path.root.clone(), nodes }));
        }
    }
    told.dedup();
    told
}

pub(super) fn words(heap: &mut Heap<'_>, path: &Path) -> Words {
    let holder = label::describe(heap, path).holder;
    let steps = holder
        .path
        .iter()
        .map(|step| format!("{} {}", step.kind.as_str(), step.name).trim().to_owned())
        .collect();
    (holder.expression, steps, holder.function, holder.file, holder.line)
}

/// Variables of running functions that are the object itself, the innermost function outside caulk left out.
fn locals_of(py: Python<'_>, target: Address) -> Vec<Root> {
    let mut roots = Vec::new();
    for (thread, stack) in frames::all_frames(py) {
        let own = stack.iter().filter(|frame| !frames::is_caulk_file(&frames::place(frame).file));
        let asks = usize::from(
            frames::current(py).is_some_and(|frame| stack.first().is_some_and(|first| first.is(&frame))),
        );
        let name = frames::thread_name(py, thread);
        let name = Some(name).filter(|name| !name.is_empty() && name != "MainThread");
        for frame in own.skip(asks) {
            let place = frames::place(frame);
            frames::for_each_local(frame, &mut |variable, value| {
                if value.as_ptr() as Address == target {
                    roots.push(Root::Local {
                        function: place.function.clone(),
                        file: place.file.clone(),
                        line: place.line,
                        variable: variable.to_owned(),
                        thread: name.clone(),
                    });
                }
            });
        }
    }
    roots
}
