//! Segments of shared memory, given back when they are closed last.

use crate::edit::line_after;
use crate::index::{Assignment, CallRecord};
use crate::lines::Lines;
use crate::sites::{EditTry, TryKind};

/// `unlink()` behind `close()`: where the file opens such segments by name, else where it makes them.
pub(super) fn unlinked(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    is_made(call).then_some(())?;
    let opened = file.index.calls.iter().filter(|other| is_segment(other) && !is_made(other));
    let users: Vec<&CallRecord> = opened.collect();
    let last = if users.is_empty() { vec![call] } else { users };
    let edits: Option<Vec<_>> = last.into_iter().map(|user| unlink(file, user)).collect();
    let description = "Unlink the segment where it is closed last: `unlink()`.".to_owned();
    Some(EditTry { kind: TryKind::Release, description, edits: edits? })
}

fn is_segment(call: &CallRecord) -> bool {
    call.callee.last_name() == Some("SharedMemory")
}

fn is_made(call: &CallRecord) -> bool {
    is_segment(call) && call.arguments.iter().any(|argument| argument.name.as_deref() == Some("create"))
}

fn unlink(file: &Lines<'_>, user: &CallRecord) -> Option<caulk_core::Edit> {
    let bound = |assignment: &&Assignment| assignment.value == Some(user.range);
    let target = &file.index.assignments.iter().find(bound)?.target;
    let function = file.index.function_scope(user.place.scope);
    let closes = file.index.calls.iter().find(|call| {
        call.callee.last_name() == Some("close")
            && call.callee.root_name() == target.root_name()
            && file.index.function_scope(call.place.scope) == function
    })?;
    let statement = file.index.statements[closes.place.statement].range;
    line_after(file, statement, &format!("{}.unlink()", target.plain()?))
}
