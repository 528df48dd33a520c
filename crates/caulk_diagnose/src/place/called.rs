//! Lines that the source shows by the calls in them: what grows is a table of Python's own.

use caulk_core::wire::Holder;
use caulk_python::Call;

use super::located::Located;
use crate::claim::Witness;
use crate::files::{Files, Source};
use crate::heap;
use crate::process::Process;

/// The one line of the program that makes threads of the type that becomes more.
pub(super) fn started_thread(files: &Files<'_>, process: &Process<'_>, id: u32) -> Option<Located> {
    let contents = process.contents.get(&id)?.last()?;
    let (type_name, _) = contents.element_types.first()?;
    let class = type_name.rsplit('.').next()?;
    let of_program = process.files().into_iter().filter(|path| heap::is_of_user(path));
    let sources: Vec<(&str, Source)> =
        of_program.filter_map(|path| Some((path, files.source(path)?))).collect();
    let calls = sources.iter().flat_map(|(path, source)| {
        let calls = source.lines().calls(class).into_iter();
        calls.map(move |call| (*path, source.clone(), call))
    });
    first(calls)
}

/// The line that registers what is to run at exit, time after time: in a loop, else in a function.
pub(super) fn registered_at_exit(files: &Files<'_>, process: &Process<'_>) -> Option<Located> {
    let sources = process.files().into_iter().filter_map(|path| Some((path, files.source(path)?)));
    let sources: Vec<(&str, Source)> = sources.collect();
    let of = |source: &Source, name: &str| {
        let calls = source.lines().calls(name).into_iter();
        calls.filter(|call| call.callee == format!("atexit.{name}")).collect::<Vec<Call>>()
    };
    // Before 3.14 what is taken out again counts on.
    if sources.iter().any(|(_, source)| !of(source, "unregister").is_empty()) {
        return None;
    }
    let again = |source: &Source, call: &Call| {
        !source.lines().loops_at(call.spot.line).is_empty() || call.spot.function != "<module>"
    };
    let calls = sources.iter().flat_map(|(path, source)| {
        let calls = of(source, "register").into_iter().filter(|call| again(source, call));
        calls.map(move |call| (*path, source.clone(), call))
    });
    first(calls)
}

/// The line that calls a function of `itertools` for an iterator: in the file that binds the name, else in any.
pub(super) fn made_by(
    files: &Files<'_>,
    process: &Process<'_>,
    holder: &Holder,
    function: &str,
) -> Option<Located> {
    let others = process.files().into_iter().filter(|path| *path != holder.file);
    let all = std::iter::once(holder.file.as_str()).chain(others);
    let sources: Vec<(&str, Source)> = all.filter_map(|path| Some((path, files.source(path)?))).collect();
    let calls = sources.iter().flat_map(|(path, source)| {
        let calls = source.lines().calls(function).into_iter();
        calls.map(move |call| (*path, source.clone(), call))
    });
    Some(Located { container: holder.expression.clone(), ..first(calls)? })
}

/// The first of some calls: the line, if it is the only one.
fn first<'a>(mut calls: impl Iterator<Item = (&'a str, Source, Call)>) -> Option<Located> {
    let (path, source, call) = calls.next()?;
    let witness = if calls.next().is_none() { Witness::OnlyLine } else { Witness::Signs };
    Some(Located::at(source, path.to_owned(), call.spot, call.callee, witness))
}
