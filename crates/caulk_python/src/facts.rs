//! What else the file says about a container: what bounds it, how it is read, what goes in.

use std::collections::HashSet;

use crate::index::Base;
use crate::index::{Action, Assignment, Nature, Op, Place};
use crate::limit;
use crate::lines::Lines;
use crate::loads::mentions;
use crate::path::{Path, Root, Step};
use crate::query::{
    answers, function_of_statement, last_name, narrowed, ops_of, owned, plain_function, spot,
};
use crate::resolve::Meaning;
use crate::sites::Owner;
use crate::spot::Spot;
use crate::value::names;

/// What limits a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoundKind {
    /// `deque(maxlen=..)`, `Queue(maxsize=..)`, a list of fixed length.
    Capacity,
    /// Elements are taken out: `pop`, `popleft`, `popitem`, `remove`, `discard`, `del x[..]`, `Queue.get`.
    Removed,
    /// Cut to a part of itself: `x = x[-n:]`, `del x[:n]`.
    Trimmed,
    /// `clear()`.
    Cleared,
    /// Bound to an empty value again outside of `__init__`, in the same function's loop or per call.
    Rebound,
    /// Its length is compared.
    LengthTest,
}

/// A statement that limits a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The statement.
    pub spot: Spot,
    /// How.
    pub kind: BoundKind,
    /// Conditions between function and statement, as in [`crate::GrowSite::conditions`].
    pub conditions: Vec<String>,
    /// The most elements that it leaves, where the file tells the number: a capacity, or the length from which on it
    /// takes elements out.
    pub most: Option<u64>,
    /// The function is called by name somewhere in this file, is called by Python or a framework, or is the one that
    /// grows the container. A `close()` that nobody calls limits nothing, nor does what runs once.
    pub called: bool,
}

/// The container as an argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fed {
    /// The statement.
    pub spot: Spot,
    /// The called expression as written: `self.policy`.
    pub callee: String,
    /// The object itself is called, as modules are; otherwise one of its methods.
    pub direct: bool,
}

/// Key of a subscript store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFact {
    /// As written.
    pub text: String,
    /// Variables in it; where a variable was bound to an expression of others just before, those too.
    pub names: Vec<String>,
}

/// A number meant as a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Where it is set.
    pub spot: Spot,
    /// As code writes it: `self.window`, `MAX_HISTORY`.
    pub expression: String,
    /// What it is set to, as written.
    pub value: String,
}

/// Facts of the file about one container or value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Read like a cache: `k in d`, `d.get(k)`, `d[k]`, `setdefault`.
    pub lookups: Vec<Spot>,
    /// What limits it.
    pub bounds: Vec<Bound>,
    /// The most elements that each of its elements is cut to where it grows: `del rows[:-40]` of `rows = self.by_key[key]`.
    pub most_inside: Option<u64>,
    /// Limits set for it (`*_window`, `max_*`, `maxlen`, `*_limit`, ...) and never read, the best match first.
    pub windows: Vec<Window>,
    /// Calls of non-library objects that it is an argument of.
    pub fed: Vec<Fed>,
    /// Where a value is made from its own predecessor: the container itself (`h = rnn(x, h)`,
    /// `self.hidden = hidden` after `_, hidden = net(x, self.hidden)`), or a local that is stored in it after a loop
    /// updated it from itself (`q = q - lr * grad`).
    pub loop_carried: Option<Spot>,
    /// Grown by arithmetic: `+=`, `x = x + y`.
    pub summed: bool,
    /// Every growth is under `no_grad` or `inference_mode`.
    pub under_no_grad: bool,
    /// The framework hook that grows it: `validation_step`, `on_train_batch_end`, `*_step` of a `*Module` class.
    pub step_hook: Option<String>,
    /// Keys of subscript stores.
    pub keys: Vec<KeyFact>,
    /// Variables that are stored.
    pub stored: Vec<String>,
}

impl Facts {
    /// Something limits it: a capacity, or a release that somebody calls. A length test alone does not.
    pub fn bounded(&self) -> bool {
        self.bounds.iter().any(|bound| bound.called && bound.kind != BoundKind::LengthTest)
    }

    /// It is handed to an object that is called like a file.
    pub fn fed_to_module(&self) -> bool {
        self.fed.iter().any(|fed| fed.direct)
    }

    /// Read and stored by key, as caches are.
    pub fn cache_like(&self) -> bool {
        !self.lookups.is_empty() && !self.keys.is_empty()
    }
}

/// Whose name `name` is in a function: what the function grows under it, else what it mentions.
pub(crate) fn owner(file: &Lines<'_>, name: &str, function: &str) -> Owner {
    let (wide, name, function) = (narrowed(name, &Owner::Any), last_name(name), plain_function(function));
    let here = |op: &&(usize, &Op, &Meaning, bool)| function_of_statement(file, op.1.place) == function;
    let mentioned: Vec<_> = ops_of(file, name, &wide).collect();
    let rank = |op: &(usize, &Op, &Meaning, bool)| match op.1.action {
        Action::Grow(kind) if kind.grows() => 0,
        Action::Grow(_) => 1,
        _ => 2,
    };
    // The most literal meaning of the most telling operation.
    let best = mentioned
        .iter()
        .filter(here)
        .min_by_key(|op| (rank(op), op.2.aliased, matches!(op.2.base, Base::Attribute(..)), op.0));
    let base = match best {
        Some((_, _, meaning, _)) => meaning.base.clone(),
        None => {
            match file.index.scopes.iter().position(|scope| scope.name == function && !function.is_empty()) {
                Some(scope) => file.index.lookup(name, scope),
                None => return Owner::Any,
            }
        }
    };
    match base {
        Base::Local(scope, _) => Owner::Function(file.index.function_name(scope)),
        Base::Global(_) => Owner::Module,
        Base::Attribute(Some(class), _) => Owner::Class(file.index.classes[class].name.clone()),
        Base::Attribute(None, _) => Owner::Attribute,
        Base::Other => Owner::Any,
    }
}

/// Everything in the file about an owner's name.
pub(crate) fn facts(file: &Lines<'_>, name: &str, owner: &Owner) -> Facts {
    let name = last_name(name);
    let ops: Vec<(&Op, bool)> =
        unique(ops_of(file, name, owner).map(|(id, op, _, element)| (id, op, element)));
    let growing = |grows: bool| {
        let of_kind =
            move |(op, _): &&(&Op, bool)| matches!(op.action, Action::Grow(kind) if kind.grows() == grows);
        ops.iter().filter(of_kind).map(|(op, _)| *op)
    };
    // Plain assignments are looked at where nothing else grows it.
    let growth: Vec<&Op> =
        if growing(true).next().is_some() { growing(true).collect() } else { growing(false).collect() };
    let mut facts = Facts {
        bounds: bounds(file, name, owner, &ops, &growth),
        most_inside: most_inside(file, &ops, &growth),
        windows: windows(file, name, owner),
        fed: fed(file, name, owner),
        loop_carried: loop_carried(file, &ops),
        summed: ops.iter().any(|(op, _)| op.arithmetic),
        under_no_grad: !growth.is_empty() && growth.iter().all(|op| file.index.without_grad(op.place)),
        step_hook: growth.iter().find_map(|op| step_hook(file, op.place)),
        ..Facts::default()
    };
    for (op, element) in &ops {
        if op.action == Action::Lookup && !element {
            facts.lookups.push(spot(file, op.place.statement));
        }
    }
    for op in growth {
        if let Some(key) = &op.key {
            let names = key_names(file, &key.reads, op.place);
            let fact = KeyFact { text: key.text.clone(), names };
            if !facts.keys.contains(&fact) {
                facts.keys.push(fact);
            }
        }
        for stored in op.value.iter().flat_map(|value| &value.names) {
            if !facts.stored.contains(stored) {
                facts.stored.push(stored.clone());
            }
        }
    }
    facts
}

/// Operations without repetition, where several callers lead to one.
fn unique<'m>(ops: impl Iterator<Item = (usize, &'m Op, bool)>) -> Vec<(&'m Op, bool)> {
    let mut seen = HashSet::new();
    ops.filter(|(id, ..)| seen.insert(*id)).map(|(_, op, element)| (op, element)).collect()
}

/// Assignments to an owner's name.
pub(crate) fn assignments<'m>(
    file: &'m Lines<'_>,
    name: &'m str,
    owner: &'m Owner,
) -> impl Iterator<Item = &'m Assignment> {
    file.index.assignments.iter().filter(move |assignment| {
        let ends = |step: &Step| matches!(step, Step::Attr(last) | Step::Key(last) if last == name);
        let candidate = assignment.target.steps.last().map_or(assignment.target.plain() == Some(name), ends);
        candidate && {
            let meanings = file.resolver.meanings(file.index, &assignment.target, assignment.place, true);
            meanings
                .iter()
                .any(|meaning| answers(meaning, name) == Some(false) && owned(file, meaning, owner))
        }
    })
}

/// The conditions of a release that the growth beside it does not have as well.
fn beyond<'c>(file: &Lines<'_>, conditions: &'c [String], growth: &[&Op]) -> &'c [String] {
    let shared = |op: &&Op| {
        let others = file.index.conditions(op.place.block);
        conditions.iter().zip(&others).take_while(|(one, other)| one == other).count() == others.len()
    };
    let most =
        growth.iter().filter(|op| shared(op)).map(|op| file.index.conditions(op.place.block).len()).max();
    &conditions[most.unwrap_or(0).min(conditions.len())..]
}

fn bounds(file: &Lines<'_>, name: &str, owner: &Owner, ops: &[(&Op, bool)], growth: &[&Op]) -> Vec<Bound> {
    let grown_in: Vec<String> = growth.iter().map(|op| function_of_statement(file, op.place)).collect();
    let mut found = Vec::new();
    for assignment in assignments(file, name, owner) {
        let Some(capacity) = &assignment.capacity else { continue };
        let spot = spot(file, assignment.place.statement);
        let most = limit::number(file, capacity);
        found.push(Bound { spot, kind: BoundKind::Capacity, conditions: Vec::new(), most, called: true });
    }
    for (op, element) in ops {
        let kind = match op.action {
            Action::Remove => BoundKind::Removed,
            Action::Trim => BoundKind::Trimmed,
            Action::Clear => BoundKind::Cleared,
            Action::Reset if resets(file, op) => BoundKind::Rebound,
            Action::LengthTest => BoundKind::LengthTest,
            _ => continue,
        };
        // What leaves one element of it leaves it as long as it was.
        if *element && kind != BoundKind::LengthTest {
            continue;
        }
        let spot = spot(file, op.place.statement);
        let conditions = file.index.conditions(op.place.block);
        // Lightning's check before training clears what it gathered, once.
        let once = conditions.iter().any(|condition| condition.contains("sanity"));
        let called = !once && (grown_in.contains(&spot.function) || is_called(file, op.place));
        let takes_out = matches!(kind, BoundKind::Removed | BoundKind::Trimmed | BoundKind::Cleared);
        // What else is asked for may never come, and what another function takes out, nobody may call.
        let most = match beyond(file, &conditions, growth) {
            [test] if takes_out && grown_in.contains(&spot.function) => limit::compared(file, name, test),
            [] if kind == BoundKind::Trimmed && grown_in.contains(&spot.function) => left(file, op),
            _ => None,
        };
        found.push(Bound { spot, kind, conditions, most, called });
    }
    found.sort_by_key(|bound| (bound.spot.line, bound.spot.column));
    found.dedup();
    found
}

/// The most elements that a trim leaves.
fn left(file: &Lines<'_>, trim: &Op) -> Option<u64> {
    limit::left(file, file.line(spot(file, trim.place.statement).line)?)
}

fn most_inside(file: &Lines<'_>, ops: &[(&Op, bool)], growth: &[&Op]) -> Option<u64> {
    let beside = |trim: &&Op| {
        let same =
            |grow: &&&Op| function_of_statement(file, grow.place) == function_of_statement(file, trim.place);
        growth.iter().any(|grow| same(&grow))
            && beyond(file, &file.index.conditions(trim.place.block), growth).is_empty()
    };
    let inside = ops.iter().filter(|(op, element)| *element && op.action == Action::Trim).map(|(op, _)| *op);
    inside.filter(beside).filter_map(|trim| left(file, trim)).max()
}

/// Whether binding to something empty is more than the first binding.
fn resets(file: &Lines<'_>, op: &Op) -> bool {
    let in_loop = file.index.loops_around(op.place.block).next().is_some();
    let function = function_of_statement(file, op.place);
    let first = matches!(op.path.steps.as_slice(), []) && !declared_elsewhere(file, op)
        || function == "<module>"
        || function.rsplit('.').next() == Some("__init__");
    in_loop || !first
}

/// A plain name that belongs to an outer scope: `global x`.
fn declared_elsewhere(file: &Lines<'_>, op: &Op) -> bool {
    let scope = &file.index.scopes[op.place.scope];
    op.path.plain().is_some_and(|name| scope.globals.contains(name) || scope.nonlocals.contains(name))
}

/// Hooks that run once, at the beginning or the end of everything.
const ONCE: &[&str] = &[
    "on_sanity_check_start",
    "on_sanity_check_end",
    "on_fit_start",
    "on_fit_end",
    "on_train_start",
    "on_train_end",
    "setup",
    "teardown",
];

/// Whether the function around a place runs again and again, as far as this file tells.
fn is_called(file: &Lines<'_>, place: Place) -> bool {
    let Some(scope) = file.index.function_scope(place.scope) else { return true };
    let name = file.index.scopes[scope].name.rsplit('.').next().unwrap_or("");
    if ONCE.contains(&name) {
        return false;
    }
    let by_framework = name.starts_with("on_")
        || name.starts_with("__") && !matches!(name, "__init__" | "__del__" | "__exit__")
        || name.ends_with("_step")
        || name.ends_with("_epoch_end")
        || name.ends_with("_epoch_start")
        || matches!(name, "forward" | "run" | "emit" | "main");
    let by_name = || file.index.calls.iter().any(|call| call.callee.last_name() == Some(name));
    let handed_on = || {
        file.index.calls.iter().any(|call| {
            let ends =
                call.callee.last_name() == Some("register") && call.callee.root_name() == Some("atexit");
            !ends && call.arguments.iter().any(|argument| argument.path.last_name() == Some(name))
        })
    };
    by_framework || file.resolver.is_called(scope) || by_name() || handed_on()
}

/// Words of which names of limits are made.
const LIMITS: &[&str] = &["window", "max", "maxlen", "maxsize", "limit", "capacity", "keep", "horizon"];
/// Words that say nothing about what is limited.
const GENERIC: &[&str] =
    &["len", "length", "size", "history", "last", "n", "num", "items", "entries", "records", "buffer"];

fn windows(file: &Lines<'_>, name: &str, owner: &Owner) -> Vec<Window> {
    let words = |name: &str| -> Vec<String> {
        name.to_ascii_lowercase().split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let about = words(name);
    let mut found: Vec<(usize, Window)> = Vec::new();
    for assignment in &file.index.assignments {
        let Some(limit) = assignment.target.last_name() else { continue };
        let parts = words(limit);
        let number = !matches!(assignment.nature, Nature::Definition | Nature::Caught | Nature::Part);
        let Some(value) = assignment.value.filter(|_| number) else { continue };
        if limit == name
            || !parts.iter().any(|word| LIMITS.contains(&word.as_str()))
            || is_read(file, &assignment.target, limit)
        {
            continue;
        }
        let meanings = file.resolver.meanings(file.index, &assignment.target, assignment.place, true);
        let together = meanings.first().is_some_and(|meaning| match (owner, &meaning.base) {
            (_, Base::Global(_)) => true,
            (Owner::Class(_) | Owner::Attribute, Base::Attribute(..))
            | (Owner::Function(_), Base::Local(..)) => owned(file, meaning, owner),
            _ => false,
        });
        let shared = parts.iter().filter(|word| about.contains(word)).count();
        let generic =
            parts.iter().all(|word| LIMITS.contains(&word.as_str()) || GENERIC.contains(&word.as_str()));
        let score = shared * 2 + usize::from(generic);
        let window = Window {
            spot: spot(file, assignment.place.statement),
            expression: file.source.inline(assignment.target_range),
            value: file.source.inline(value),
        };
        if together && score > 0 && !found.iter().any(|(_, known)| known.expression == window.expression) {
            found.push((score, window));
        }
    }
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, window)| window).collect()
}

/// Whether anything reads the variable, or an attribute of that name of whatever object.
fn is_read(file: &Lines<'_>, target: &Path, name: &str) -> bool {
    let attribute = !target.steps.is_empty();
    let same = |path: &Path| path.last_name() == Some(name) && path.steps.is_empty() != attribute;
    attribute && file.index.named_reads.contains(name) || file.index.reads.iter().any(|(path, _)| same(path))
}

fn fed(file: &Lines<'_>, name: &str, owner: &Owner) -> Vec<Fed> {
    let named = |read: &Path| {
        let part = |step: &Step| matches!(step, Step::Attr(part) | Step::Key(part) if part == name);
        let detached = matches!(read.steps.last(), Some(Step::Call));
        !detached && (read.root_name() == Some(name) || read.steps.iter().any(part))
    };
    let mine = |read: &Path, place: Place| {
        let meanings = file.resolver.meanings(file.index, read, place, false);
        meanings.iter().any(|meaning| answers(meaning, name).is_some() && owned(file, meaning, owner))
    };
    let mut found = Vec::new();
    for call in &file.index.calls {
        let mut given = call.arguments.iter().flat_map(|argument| &argument.value.reads);
        if given.any(|read| named(read) && mine(read, call.place))
            && let Some(direct) = foreign(file, &call.callee, call.place)
        {
            let callee = file.source.inline(call.callee_range);
            found.push(Fed { spot: spot(file, call.place.statement), callee, direct });
        }
    }
    found
}

/// Whether a called object comes from elsewhere than functions, classes and imports: a file, a policy. `Some(false)`
/// where one of its methods is called.
fn foreign(file: &Lines<'_>, callee: &Path, place: Place) -> Option<bool> {
    let Root::Name(root) = &callee.root else { return None };
    let name = callee.last_name()?;
    if file.index.imports.contains_key(root)
        || crate::loads::growth_of(name).is_some()
        || file.resolver.function_of(file.index, callee, place.scope).is_some()
        || name.chars().next().is_some_and(char::is_uppercase)
    {
        return None;
    }
    let base = file.index.lookup(root, place.scope);
    if let Base::Global(_) = base {
        // A builtin, or a name from a star import.
        let known = file.index.assignments.iter().any(|assignment| assignment.target.plain() == Some(root));
        known.then_some(())?;
    }
    let instance = file.resolver.class_of(file.index, &callee.root, &[], place.scope).is_some();
    match callee.steps.as_slice() {
        [] => Some(true),
        [Step::Attr(_), rest @ ..] if instance => {
            Some(rest.iter().all(|step| !matches!(step, Step::Attr(_))))
        }
        _ => Some(false),
    }
}

/// Where a value is made from its predecessor.
fn loop_carried(file: &Lines<'_>, ops: &[(&Op, bool)]) -> Option<Spot> {
    let index = file.index;
    let in_loop = |place: Place| index.loops_around(place.block).next().is_some();
    let itself = ops.iter().map(|(op, _)| *op).find(|op| {
        matches!(op.action, Action::Grow(crate::sites::GrowKind::Rebind))
            && (!op.path.steps.is_empty() || in_loop(op.place))
    });
    if let Some(op) = itself {
        return Some(spot(file, op.place.statement));
    }
    for (op, _) in ops {
        let (Action::Grow(kind), Some(value)) = (op.action, &op.value) else { continue };
        for read in value.reads.iter().filter(|read| read.plain().is_some()) {
            if !kind.grows() {
                // `self.hidden = hidden` after `_, hidden = net(x, self.hidden)`.
                if made_from(file, read, &op.path, op.place, 0) {
                    return Some(spot(file, op.place.statement));
                }
            } else if let Some(update) = updated_in_loop(file, read, op.place) {
                return Some(spot(file, update));
            }
        }
    }
    None
}

/// Whether a variable was bound to something that reads `target`.
fn made_from(file: &Lines<'_>, variable: &Path, target: &Path, place: Place, depth: usize) -> bool {
    let Some(name) = variable.plain().filter(|_| depth < 3) else { return false };
    let base = file.index.lookup(name, place.scope);
    file.resolver.reaching(file.index, &base, place).any(|assignment| {
        assignment.reads.iter().any(|read| mentions(target, read))
            || assignment
                .reads
                .iter()
                .any(|read| read != variable && made_from(file, read, target, assignment.place, depth + 1))
    })
}

/// The statement in a loop that binds a variable to something made from itself.
fn updated_in_loop(file: &Lines<'_>, variable: &Path, place: Place) -> Option<usize> {
    let name = variable.plain()?;
    let base = file.index.lookup(name, place.scope);
    matches!(base, Base::Local(..)).then_some(())?;
    let mut reaching = file.resolver.reaching(file.index, &base, place);
    let update = reaching.find(|assignment| {
        matches!(assignment.nature, Nature::Itself { .. })
            && file.index.loops_around(assignment.place.block).next().is_some()
    })?;
    Some(update.place.statement)
}

fn step_hook(file: &Lines<'_>, place: Place) -> Option<String> {
    let scope = &file.index.scopes[file.index.function_scope(place.scope)?];
    let name = scope.name.rsplit('.').next()?;
    let class = &file.index.classes[scope.class?];
    let framework = class.bases.iter().any(|base| base.ends_with("Module") || base.ends_with("Callback"));
    let hook = matches!(name, "training_step" | "validation_step" | "test_step" | "predict_step")
        || framework && name.ends_with("_step")
        || name.starts_with("on_") && name.ends_with("_batch_end");
    hook.then(|| name.to_owned())
}

/// Variables of a key, and those of what these were bound to.
fn key_names(file: &Lines<'_>, reads: &[Path], place: Place) -> Vec<String> {
    let variables = |reads: &[Path]| {
        let mut found = names(reads);
        found.retain(|name| !file.index.imports.contains_key(name));
        found
    };
    let mut found = variables(reads);
    let mut next: Vec<(Path, Place)> = reads.iter().map(|read| (read.clone(), place)).collect();
    for _ in 0..3 {
        let mut further = Vec::new();
        for (read, place) in next {
            let Some(name) = read.plain() else { continue };
            let base = file.index.lookup(name, place.scope);
            for assignment in file.resolver.reaching(file.index, &base, place) {
                for name in variables(&assignment.reads) {
                    if !found.contains(&name) {
                        found.push(name);
                    }
                }
                further.extend(assignment.reads.iter().map(|read| (read.clone(), assignment.place)));
            }
        }
        further.truncate(64);
        next = further;
    }
    found
}
