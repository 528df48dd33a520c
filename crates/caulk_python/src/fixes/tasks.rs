//! Work that leaves its container when it is done.

use caulk_core::Fix;

use super::change;
use crate::edit::line_after;
use crate::facts::owner;
use crate::index::Action;
use crate::lines::Lines;
use crate::path::Path;
use crate::query::{answers, last_name, ops_of, owned};
use crate::sites::{GrowKind, GrowSite};
use crate::value::Shape;

/// `task.add_done_callback(running.discard)` behind `running.add(task)`, where nothing but `add` uses the set: what waits for
/// its tasks or reads their results later must find them there.
pub(crate) fn discard_when_done(file: &Lines<'_>, site: &GrowSite) -> Option<Fix> {
    let value = site.value.as_ref().filter(|value| value.shape == Shape::Variable)?;
    let name = last_name(&site.container);
    let owner = owner(file, &site.container, &site.spot.function);
    let added = |action| matches!(action, Action::Grow(GrowKind::Add | GrowKind::Assign) | Action::Reset);
    let only_added = ops_of(file, name, &owner).all(|(_, op, _, element)| added(op.action) && !element);
    let grown: Vec<usize> =
        ops_of(file, name, &owner).map(|(_, op, ..)| op.container.start().to_usize()).collect();
    let read = file.index.reads.iter().any(|(path, place)| {
        let meant = |path: &Path| {
            let meanings = file.resolver.meanings(file.index, path, *place, false);
            meanings.iter().any(|meaning| answers(meaning, name).is_some() && owned(file, meaning, &owner))
        };
        !grown.contains(&place.offset.to_usize()) && path.last_name() == Some(name) && meant(path)
    });
    if site.kind != GrowKind::Add || !only_added || read {
        return None;
    }
    let op = file.index.ops.get(site.op)?;
    let line = format!("{}.add_done_callback({}.discard)", value.text, site.container);
    let edit = line_after(file, file.index.statements[op.place.statement].range, &line)?;
    change(format!("Have each task leave `{}` when it is done: `{line}`.", site.container), vec![edit])
}

/// Does something discard what a container holds when it is done: `task.add_done_callback(running.discard)`?
pub(crate) fn leave_when_done(file: &Lines<'_>, container: &str) -> bool {
    let name = last_name(container);
    file.index.calls.iter().any(|call| {
        call.callee.last_name() == Some("add_done_callback")
            && call.arguments.iter().any(|argument| {
                let text = &argument.value.text;
                ["discard", "remove", "pop"].iter().any(|method| text.contains(&format!("{name}.{method}")))
            })
    })
}
