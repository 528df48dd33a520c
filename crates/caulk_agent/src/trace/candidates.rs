//! Functions that could be the ones that grow a watched container: those whose code mentions its name.

use std::collections::HashSet;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::codes::{Codes, each_name, mentions};
use super::watch::{Target, Watch};
use crate::frames;
use crate::heap::{Address, AddressMap, AddressSet, loaded, member};
use crate::symbols;

/// A function's code that is watched while it runs.
pub(super) struct Candidate {
    /// Keeps the code object, and so its address, alive.
    pub(super) code: Py<PyAny>,
    pub(super) file: String,
    pub(super) function: String,
    pub(super) first_line: u32,
    pub(super) user: bool,
}

/// A name that more library functions than this mention says nothing about whose container it is.
const COMMON: usize = 16;

/// Methods that make a container grow: a helper that calls one may grow what it is handed under another name.
const MUTATORS: [&str; 12] = [
    "append",
    "appendleft",
    "extend",
    "insert",
    "add",
    "update",
    "setdefault",
    "put",
    "put_nowait",
    "push",
    "heappush",
    "__setitem__",
];

/// Finds the candidates for these watches, at most `most`: the likeliest of each watch first, then helpers of the user's
/// that those call.
pub(super) fn find(py: Python<'_>, watches: &[Watch], most: usize) -> AddressMap<Candidate> {
    let of_library: Vec<&Watch> = watches.iter().filter(|watch| !is_of_user(py, watch)).collect();
    let names: Vec<_> = of_library.iter().flat_map(|watch| names_of(py, watch)).collect();
    let homes = of_library.iter().flat_map(|watch| home_files(py, &watch.home)).collect();
    let codes = Codes::collect(py, &names, &homes);
    let mut lists: Vec<Vec<Likely<'_, '_>>> = watches.iter().map(|watch| codes.likely(py, watch)).collect();
    for (list, _) in
        lists.iter_mut().zip(watches).filter(|(list, watch)| list.is_empty() && watch.is_object())
    {
        *list = codes.growing(py);
    }
    let mut chosen = Chosen { found: AddressMap::default(), most };
    for rank in 0..lists.iter().map(Vec::len).max().unwrap_or(0) {
        for likely in lists.iter().filter_map(|list| list.get(rank)) {
            chosen.add(likely.code, likely.user);
        }
    }
    let of_user = lists.iter().flatten().filter(|likely| likely.user).map(|likely| likely.code);
    codes.helpers_of(of_user).for_each(|code| chosen.add(code, true));
    chosen.found
}

/// All of the user's functions, for a watch on the process's memory.
pub(super) fn of_user(py: Python<'_>, most: usize) -> AddressMap<Candidate> {
    let mut chosen = Chosen { found: AddressMap::default(), most };
    Codes::collect(py, &[], &HashSet::new()).user.iter().for_each(|code| chosen.add(code, true));
    chosen.found
}

/// Is the watched thing in code of the user's alone? Then functions of libraries need not be looked at.
fn is_of_user(py: Python<'_>, watch: &Watch) -> bool {
    let home = home_files(py, &watch.home);
    matches!(watch.target, Target::Local { .. })
        || watch.is_local
        || (!home.is_empty() && home.iter().all(|file| frames::is_user_file(file)))
}

/// Names by which code must mention what is watched, interned as names in code are.
fn names_of<'py>(py: Python<'py>, watch: &Watch) -> Vec<Bound<'py, PyString>> {
    let slot = match &watch.target {
        Target::Slot { name, .. } | Target::Local { name, .. } => Some(name),
        Target::Object(_) => None,
    };
    let names = slot.into_iter().chain(&watch.names);
    // An index mentions nothing.
    let names = names.filter(|name| !name.is_empty() && !name.bytes().all(|byte| byte.is_ascii_digit()));
    names.map(|name| PyString::intern(py, name)).collect()
}

struct Chosen {
    found: AddressMap<Candidate>,
    most: usize,
}

impl Chosen {
    fn add(&mut self, code: &Bound<'_, PyAny>, user: bool) {
        if self.found.len() >= self.most || self.found.contains_key(&(code.as_ptr() as Address)) {
            return;
        }
        let first_line = code.getattr(intern!(code.py(), "co_firstlineno")).and_then(|line| line.extract());
        let candidate = Candidate {
            code: code.clone().unbind(),
            file: frames::file_of(code),
            function: frames::function_of(code),
            first_line: first_line.unwrap_or(0),
            user,
        };
        self.found.insert(code.as_ptr() as Address, candidate);
    }
}

/// Code that mentions a watched name.
struct Likely<'a, 'py> {
    code: &'a Bound<'py, PyAny>,
    user: bool,
}

impl<'py> Codes<'py> {
    /// Code that mentions what is watched: the user's that also makes something grow or binds the name again, the rest of
    /// the user's, then that of libraries where the name says enough or nobody else mentions it.
    fn likely(&self, py: Python<'py>, watch: &Watch) -> Vec<Likely<'_, 'py>> {
        let names = names_of(py, watch);
        let mentioning = self.user.iter().filter(|code| mentions(code, &names, true));
        let (mut likely, others): (Vec<_>, Vec<_>) = mentioning.partition(|code| {
            calls_mutator(code) || self.stores.item_in(code) || self.stores.name_in(code, &names)
        });
        likely.extend(others);
        let home = home_files(py, &watch.home);
        let (mut at_home, mut elsewhere): (Vec<_>, Vec<_>) =
            self.library.iter().partition(|code| home.contains(&frames::file_of(code)));
        at_home.retain(|code| mentions(code, &names, true));
        elsewhere.retain(|code| mentions(code, &names, false));
        // A module may mention the name in many functions: those that make something grow come first, of the class itself
        // before others.
        let of_class = |code: &Bound<'_, PyAny>| {
            let function = frames::function_of(code);
            function.rsplit_once('.').is_some_and(|(class, _)| watch.home.ends_with(class))
        };
        at_home.sort_by_cached_key(|code| (!self.grows_something(code), !of_class(code)));
        let telling = elsewhere.len() <= COMMON || (likely.is_empty() && at_home.is_empty());
        let elsewhere = elsewhere.into_iter().take(if telling { COMMON } else { 0 });
        let library = at_home.into_iter().take(COMMON).chain(elsewhere);
        let user = likely.into_iter().map(|code| Likely { code, user: true });
        user.chain(library.map(|code| Likely { code, user: false })).collect()
    }

    /// The user's functions that make anything grow, under whatever name they were handed it: those that running code
    /// calls first, then those that these call.
    fn growing(&self, py: Python<'py>) -> Vec<Likely<'_, 'py>> {
        let mut by_name: AddressMap<Vec<usize>> = AddressMap::default();
        for (at, code) in self.user.iter().enumerate() {
            if let Ok(name) = code.getattr(intern!(py, "co_name")) {
                by_name.entry(name.as_ptr() as Address).or_default().push(at);
            }
        }
        let running: AddressSet = frames::all_frames(py)
            .iter()
            .flat_map(|(_, stack)| stack.iter().map(|frame| frames::code_of(frame).as_ptr() as Address))
            .collect();
        let runs = |at: &usize| running.contains(&(self.user[*at].as_ptr() as Address));
        let mut order: Vec<usize> = (0..self.user.len()).filter(runs).collect();
        let mut met: HashSet<usize> = order.iter().copied().collect();
        let mut next = 0;
        while let Some(at) = order.get(next).copied() {
            next += 1;
            each_name(&self.user[at], &mut |name| {
                let called = by_name.get(&(name.as_ptr() as Address)).into_iter().flatten();
                order.extend(called.copied().filter(|at| met.insert(*at)));
            });
        }
        order.extend((0..self.user.len()).filter(|at| !met.contains(at)));
        let codes = order.into_iter().map(|at| &self.user[at]);
        let growing = codes.filter(|code| self.grows_something(code));
        growing.map(|code| Likely { code, user: true }).collect()
    }

    /// The user's functions that these call by name and that make something grow: they may be handed the container.
    fn helpers_of<'a>(
        &'a self,
        callers: impl Iterator<Item = &'a Bound<'py, PyAny>>,
    ) -> impl Iterator<Item = &'a Bound<'py, PyAny>> {
        let mut called = AddressSet::default();
        for code in callers {
            each_name(code, &mut |name| {
                called.insert(name.as_ptr() as Address);
            });
        }
        self.user.iter().filter(move |code| {
            let name = code.getattr(intern!(code.py(), "co_name"));
            name.is_ok_and(|name| called.contains(&(name.as_ptr() as Address))) && self.grows_something(code)
        })
    }

    fn grows_something(&self, code: &Bound<'_, PyAny>) -> bool {
        calls_mutator(code) || self.stores.item_in(code)
    }
}

fn calls_mutator(code: &Bound<'_, PyAny>) -> bool {
    let mut found = false;
    each_name(code, &mut |name| {
        let is_mutator = |name: &Bound<'_, PyString>| MUTATORS.contains(&&*name.to_string_lossy());
        found = found || name.cast::<PyString>().is_ok_and(is_mutator);
    });
    found
}

/// File in which a class's first method was written. Its metaclass, which may be the program's, is not asked.
fn file_of_methods(class: &Bound<'_, PyType>) -> Option<String> {
    let of_types = class.py().get_type::<PyType>().getattr(intern!(class.py(), "__dict__")).ok()?;
    let namespace = of_types.get_item("__dict__").ok()?.call_method1("__get__", (class,)).ok()?;
    let members = namespace.call_method0("values").ok()?;
    let mut functions = members
        .try_iter()
        .ok()?
        .flatten()
        .filter(|value| Some(value.get_type_ptr()) == symbols::function_type())
        // What a decorator puts around it was written elsewhere.
        .filter(|function| !function.hasattr(intern!(function.py(), "__wrapped__")).unwrap_or(true));
    let code = functions.next()?.getattr(intern!(class.py(), "__code__")).ok()?;
    Some(frames::file_of(&code))
}

/// Files of the module or type named, and of the type's base classes.
fn home_files(py: Python<'_>, home: &str) -> HashSet<String> {
    let mut files = HashSet::new();
    let mut add_module = |name: &str| {
        let file = loaded(py, name).and_then(|module| member(&module, "__file__")?.extract::<String>().ok());
        files.extend(file);
    };
    add_module(home);
    if let Some((module, class)) = home.rsplit_once('.') {
        add_module(module);
        let class = loaded(py, module).and_then(|module| member(&module, class)?.cast_into::<PyType>().ok());
        let bases = class.iter().flat_map(|class| class.mro().iter().collect::<Vec<_>>());
        let bases: Vec<_> = bases.filter_map(|base| base.cast_into::<PyType>().ok()).collect();
        for base in &bases {
            if let Ok(module) = base.module() {
                add_module(&module.to_string_lossy());
            }
        }
        // A class may say that it is of another module than it was written in: `torch.Tensor`.
        files.extend(bases.iter().filter_map(|base| file_of_methods(base)));
    }
    files
}
