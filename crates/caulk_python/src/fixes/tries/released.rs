//! What a line makes or fills, given back where it has been used.

use ruff_text_size::TextRange;

use super::places::{at_function_end, at_loop_end, below, loops_using};
use crate::edit::{replace, starts_line};
use crate::index::{Assignment, CallRecord, Place};
use crate::library::Keeper;
use crate::lines::Lines;
use crate::path::{Path, Root, Step};
use crate::query::spot;
use crate::sites::{EditTry, Holder, TryKind};

/// A call whose result has to be given back.
struct Release {
    made_by: &'static str,
    method: &'static str,
    /// It can stand in a `with` statement.
    managed: bool,
}

const fn release(made_by: &'static str, method: &'static str, managed: bool) -> Release {
    Release { made_by, method, managed }
}

/// Such calls, by the last part of their names: of Python's library, numpy, `OpenCV`, h5py, torch.
const RELEASES: [Release; 28] = [
    release("open", "close", true),
    release("fdopen", "close", true),
    release("TemporaryFile", "close", true),
    release("NamedTemporaryFile", "close", true),
    release("TemporaryDirectory", "cleanup", true),
    release("StringIO", "close", true),
    release("BytesIO", "close", true),
    release("ZipFile", "close", true),
    release("mmap", "close", true),
    release("socket", "close", true),
    release("create_connection", "close", true),
    release("connect", "close", false),
    release("SharedMemory", "close", false),
    release("FileHandler", "close", false),
    release("Popen", "wait", true),
    release("Timer", "cancel", false),
    release("Thread", "join", false),
    release("Process", "join", false),
    release("Pool", "terminate", true),
    release("ThreadPool", "terminate", true),
    release("Manager", "shutdown", true),
    release("ThreadPoolExecutor", "shutdown", true),
    release("ProcessPoolExecutor", "shutdown", true),
    release("Session", "close", true),
    release("File", "close", true),
    release("VideoCapture", "release", false),
    release("VideoWriter", "release", false),
    release("SummaryWriter", "close", true),
];

/// Objects of these packages keep what the first method is given, until the second one is called.
const METRICS: [(&str, &str, &str); 3] =
    [("torchmetrics", "update", "reset"), ("torcheval", "update", "reset"), ("ignite", "update", "reset")];

/// Edits that give back what a line makes, or what an object of a library was given there.
pub(super) fn releases(file: &Lines<'_>, line: u32) -> Vec<EditTry> {
    let called = file.index.calls.iter().filter(|call| spot(file, call.place.statement).covers(line));
    called
        .flat_map(|call| {
            let own = [at_end(file, call), with_block(file, call)].into_iter().flatten();
            own.chain(of_keeper(file, call)).collect::<Vec<_>>()
        })
        .collect()
}

fn known(call: &CallRecord) -> Option<&'static Release> {
    RELEASES.iter().find(|release| Some(release.made_by) == call.callee.last_name())
}

/// What a call makes is given back at the end of the loop around it, else of its function.
fn at_end(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let name = call.callee.last_name()?;
    let is_hook = name.starts_with("register_") && name.contains("hook");
    let method = known(call).map(|release| release.method).or(is_hook.then_some("remove"))?;
    let statement = file.index.statements[call.place.statement].range;
    starts_line(file, statement)?;
    let (target, mut edits) = match bound(file, call) {
        Some(assignment) => (file.source.inline(assignment.target_range), Vec::new()),
        None if statement == call.range => {
            let edit = replace(file, TextRange::empty(call.range.start()), "handle = ");
            ("handle".to_owned(), vec![edit])
        }
        None => return None,
    };
    let line = format!("{target}.{method}()");
    let around = file.index.loops_around(call.place.block).next();
    let function = file.index.function_scope(call.place.scope);
    // The loop is nearer if it is in the function.
    let in_function = |at: usize| {
        function.is_none_or(|scope| file.index.scopes[scope].range.contains_range(file.index.loops[at].range))
    };
    edits.push(match (around.filter(|at| in_function(*at)), function) {
        (Some(at), _) => at_loop_end(file, at, &line)?,
        (None, Some(scope)) => at_function_end(file, scope, &line)?,
        (None, None) => return None,
    });
    let description = format!("Give it back when it has been used: `{line}`.");
    Some(EditTry { kind: TryKind::Release, description, edits })
}

/// The variable that takes the result of a call.
fn bound<'m>(file: &'m Lines<'_>, call: &CallRecord) -> Option<&'m Assignment> {
    file.index.assignments.iter().find(|assignment| assignment.value == Some(call.range))
}

/// `with open(..) as log:` instead of `log = open(..)`, around the statements that use it.
fn with_block(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    known(call).filter(|release| release.managed)?;
    let assignment = bound(file, call)?;
    let name = assignment.target.plain()?;
    let statement = file.index.statements[call.place.statement].range;
    let first = file.source.line_of(statement.end()) + 1;
    let last = last_use(file, call, name, first)?;
    let header = format!("with {} as {name}:", file.source.slice(call.range));
    let edit = below(file, statement.start(), first..=last, &header)?;
    let description = format!("Close it when it has been used: `{header}`.");
    Some(EditTry { kind: TryKind::Release, description, edits: vec![edit] })
}

/// The last line of the statements behind a call that use a name, in its block. What hangs on such a statement belongs to it.
fn last_use(file: &Lines<'_>, call: &CallRecord, name: &str, first: u32) -> Option<u32> {
    let function = file.index.function_scope(call.place.scope);
    let block = call.place.block;
    let reads = file.index.reads.iter().map(|(path, place)| (path, *place));
    let calls = file.index.calls.iter().map(|call| (&call.callee, call.place));
    let used = reads.chain(calls).filter(|(path, place)| {
        path.root_name() == Some(name)
            && file.index.function_scope(place.scope) == function
            && file.index.encloses(block, place.block)
    });
    let line = |place: Place| file.source.line_of(file.index.statements[place.statement].range.end());
    let last = used.map(|(_, place)| line(place)).filter(|line| *line >= first).max()?;
    let depth = |line: u32| {
        let text = file.source.line(line)?;
        (!text.trim().is_empty()).then(|| text.len() - text.trim_start().len())
    };
    let own = depth(file.source.line_of(call.range.start()))?;
    let deeper = (last + 1..).map_while(|line| file.source.line(line).map(|_| line));
    let hanging = deeper.take_while(|line| depth(*line).is_none_or(|depth| depth > own));
    Some(hanging.filter(|line| depth(*line).is_some()).last().unwrap_or(last))
}

/// An object that keeps what its method is given, emptied where loops around the call end.
fn of_keeper(file: &Lines<'_>, call: &CallRecord) -> Vec<EditTry> {
    let Some((method, object)) = keeper(file, call) else { return Vec::new() };
    let holder = match (&call.callee.root, object.contains('.')) {
        (Root::Name(name), true) if name == "self" => Holder::Attribute,
        _ => Holder::Global,
    };
    let function = file.index.function_name(call.place.scope);
    let places = loops_using(file, call.place.block, &function, &object, holder);
    let empty = |(at, object): (usize, String)| {
        let line = format!("{object}.{method}()");
        let edit = at_loop_end(file, at, &line)?;
        let header = spot(file, file.index.loops[at].statement);
        let description = format!("Empty it at the end of the loop of line {}: `{line}`.", header.line);
        Some(EditTry { kind: TryKind::Release, description, edits: vec![edit] })
    };
    places.into_iter().filter_map(empty).collect()
}

/// The method that gives back what a call has an object keep, and the object as written.
fn keeper(file: &Lines<'_>, call: &CallRecord) -> Option<(&'static str, String)> {
    let (Step::Attr(called), before) = call.callee.steps.split_last()? else { return None };
    let object = Path { root: call.callee.root.clone(), steps: before.to_vec() };
    let made = file.index.assignments.iter().filter(|assignment| assignment.target == object);
    let text = file.source.inline(call.callee_range);
    let text = text.rsplit_once('.')?.0.trim_end().to_owned();
    made.filter_map(|assignment| dotted(file, assignment.callee.as_ref()?))
        .find_map(|maker| {
            let metric = METRICS
                .iter()
                .find(|(package, keeps, _)| maker.split('.').next() == Some(*package) && keeps == called);
            let keeper = Keeper::made_by(&maker).filter(|keeper| keeper.keeps(called));
            metric.map(|(_, _, method)| *method).or(keeper.map(Keeper::first_release))
        })
        .map(|method| (method, text))
}

/// The dotted name of what is called, from the imports.
fn dotted(file: &Lines<'_>, callee: &Path) -> Option<String> {
    let root = callee.root_name()?;
    let mut name = file.index.imports.get(root).cloned().unwrap_or_else(|| root.to_owned());
    for step in &callee.steps {
        match step {
            Step::Attr(attribute) => {
                name.push('.');
                name.push_str(attribute);
            }
            _ => return None,
        }
    }
    Some(name)
}
