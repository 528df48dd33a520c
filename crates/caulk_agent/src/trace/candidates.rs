//! Functions that could be the ones that grow a watched container: those whose code mentions its name.

use std::collections::HashSet;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::watch::{Target, Watch};
use crate::frames;
use crate::heap::{Address, AddressMap, AddressSet, loaded, member, visit_tracked};
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

/// Code objects of the program, told apart by whose they are.
struct Codes<'py> {
    user: Vec<Bound<'py, PyAny>>,
    library: Vec<Bound<'py, PyAny>>,
}

/// Finds the candidates for these watches, at most `most`: the likeliest of each watch first, then helpers of the user's
/// that those call.
pub(super) fn find(py: Python<'_>, watches: &[Watch], most: usize) -> AddressMap<Candidate> {
    let codes = Codes::collect(py, true);
    let lists: Vec<Vec<Likely<'_, '_>>> = watches.iter().map(|watch| codes.likely(py, watch)).collect();
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

/// Code that mentions a watched name.
struct Likely<'a, 'py> {
    code: &'a Bound<'py, PyAny>,
    user: bool,
}

/// All of the user's functions, for a watch on the process's memory.
pub(super) fn of_user(py: Python<'_>, most: usize) -> AddressMap<Candidate> {
    let mut chosen = Chosen { found: AddressMap::default(), most };
    Codes::collect(py, false).user.iter().for_each(|code| chosen.add(code, true));
    chosen.found
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

/// Names to look for, compared by address: names in code are interned.
struct Names<'py> {
    names: Vec<Bound<'py, PyString>>,
}

impl<'py> Names<'py> {
    fn of(py: Python<'py>, watch: &Watch) -> Self {
        let slot = match &watch.target {
            Target::Slot { name, .. } | Target::Local { name, .. } => Some(name),
            Target::Object(_) => None,
        };
        let names = slot.into_iter().chain([&watch.name]);
        // An index mentions nothing.
        let names = names.filter(|name| !name.is_empty() && !name.bytes().all(|byte| byte.is_ascii_digit()));
        Self { names: names.map(|name| PyString::intern(py, name)).collect() }
    }

    fn mentioned_in(&self, code: &Bound<'py, PyAny>, thoroughly: bool) -> bool {
        let mut found = false;
        let mut look = |name: &Bound<'py, PyAny>| {
            found = found
                || self.names.iter().any(|other| other.is(name) || (thoroughly && is_same_text(other, name)));
        };
        each_name(code, "co_names", &mut look);
        each_name(code, "co_consts", &mut look);
        if thoroughly {
            for field in ["co_varnames", "co_freevars", "co_cellvars"] {
                each_name(code, field, &mut look);
            }
        }
        found
    }
}

/// Equal strings; keys that are no identifiers are not interned.
fn is_same_text(name: &Bound<'_, PyString>, other: &Bound<'_, PyAny>) -> bool {
    other.is_exact_instance_of::<PyString>() && name.as_any().eq(other).unwrap_or(false)
}

fn each_name<'py>(code: &Bound<'py, PyAny>, field: &str, visit: &mut dyn FnMut(&Bound<'py, PyAny>)) {
    let field = PyString::intern(code.py(), field);
    let Some(names) = code.getattr(field).ok().and_then(|names| names.cast_into::<PyTuple>().ok()) else {
        return;
    };
    for name in names.iter_borrowed() {
        visit(&name);
    }
}

fn each_nested<'py>(code: &Bound<'py, PyAny>, visit: &mut dyn FnMut(&Bound<'py, PyAny>)) {
    let Some(constants) = frames::constants(code) else { return };
    for constant in constants.iter_borrowed() {
        if Some(constant.get_type_ptr()) == symbols::code_type() {
            visit(&constant);
        }
    }
}

fn calls_mutator(code: &Bound<'_, PyAny>) -> bool {
    let mut found = false;
    each_name(code, "co_names", &mut |name| {
        found =
            found || name.cast::<PyString>().is_ok_and(|name| MUTATORS.contains(&&*name.to_string_lossy()));
    });
    found
}

/// Has the code a `STORE_SUBSCR`, as in `target[key] = value`?
fn stores_item(code: &Bound<'_, PyAny>) -> bool {
    // Opcode numbers of CPython, Lib/opcode.py, by minor version.
    let opcode = match symbols::minor() {
        Some(10..=12) => 60,
        Some(13) => 39,
        _ => return false,
    };
    let bytes = code.getattr(intern!(code.py(), "co_code")).ok();
    let bytes = bytes.and_then(|bytes| bytes.cast_into::<pyo3::types::PyBytes>().ok());
    bytes.is_some_and(|bytes| bytes.as_bytes().iter().step_by(2).any(|byte| *byte == opcode))
}

impl<'py> Codes<'py> {
    /// Code that mentions what is watched: the user's that also calls something that makes containers grow, the rest of
    /// the user's, then that of libraries where the name says enough or nobody else mentions it.
    fn likely(&self, py: Python<'py>, watch: &Watch) -> Vec<Likely<'_, 'py>> {
        let names = Names::of(py, watch);
        let home = home_files(py, &watch.home);
        let mentioning = self.user.iter().filter(|code| names.mentioned_in(code, true));
        let (mut likely, others): (Vec<_>, Vec<_>) = mentioning.partition(|code| calls_mutator(code));
        likely.extend(others);
        let mentioning = self.library.iter().filter(|code| names.mentioned_in(code, false));
        let (at_home, elsewhere): (Vec<_>, Vec<_>) =
            mentioning.partition(|code| home.contains(&frames::file_of(code)));
        let telling = elsewhere.len() <= COMMON || (likely.is_empty() && at_home.is_empty());
        let elsewhere = elsewhere.into_iter().take(if telling { COMMON } else { 0 });
        let library = at_home.into_iter().take(COMMON).chain(elsewhere);
        let user = likely.into_iter().map(|code| Likely { code, user: true });
        user.chain(library.map(|code| Likely { code, user: false })).collect()
    }

    /// The user's functions that these call by name and that make something grow: they may be handed the container.
    fn helpers_of<'a>(
        &'a self,
        callers: impl Iterator<Item = &'a Bound<'py, PyAny>>,
    ) -> impl Iterator<Item = &'a Bound<'py, PyAny>> {
        let mut called = AddressSet::default();
        for code in callers {
            each_name(code, "co_names", &mut |name| {
                called.insert(name.as_ptr() as Address);
            });
        }
        self.user.iter().filter(move |code| {
            let name = code.getattr(intern!(code.py(), "co_name"));
            name.is_ok_and(|name| called.contains(&(name.as_ptr() as Address)))
                && (calls_mutator(code) || stores_item(code))
        })
    }

    /// Code of every function, of the functions inside them (of the user's), and of running frames.
    fn collect(py: Python<'py>, library: bool) -> Self {
        let mut codes = Self { user: Vec::new(), library: Vec::new() };
        let mut seen = AddressSet::default();
        // By the address of the file name: the functions of a file share it.
        let mut files: AddressMap<Whose> = AddressMap::default();
        let mut add = |code: Bound<'py, PyAny>| codes.add(code, library, &mut seen, &mut files);
        for function in functions(py) {
            if let Ok(code) = function.getattr(intern!(py, "__code__")) {
                add(code);
            }
        }
        for (_, stack) in frames::all_frames(py) {
            for frame in &stack {
                add(frames::code_of(frame));
            }
        }
        codes
    }

    fn add(
        &mut self,
        code: Bound<'py, PyAny>,
        library: bool,
        seen: &mut AddressSet,
        files: &mut AddressMap<Whose>,
    ) {
        if !seen.insert(code.as_ptr() as Address) {
            return;
        }
        let Ok(file) = code.getattr(intern!(code.py(), "co_filename")) else { return };
        // The code object keeps the file name, and `self` or its function keeps the code object.
        match *files.entry(file.as_ptr() as Address).or_insert_with(|| Whose::of(&file)) {
            Whose::User => {
                each_nested(&code, &mut |nested| self.add(nested.clone(), library, seen, files));
                self.user.push(code);
            }
            Whose::Library if library => self.library.push(code),
            Whose::Library | Whose::Nobody => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Whose {
    User,
    Library,
    /// caulk and the import system are never watched.
    Nobody,
}

impl Whose {
    fn of(file: &Bound<'_, PyAny>) -> Self {
        let Ok(file) = file.cast::<PyString>() else { return Self::Nobody };
        let file = file.to_string_lossy();
        match () {
            () if frames::is_caulk_file(&file) || file.starts_with("<frozen") => Self::Nobody,
            () if frames::is_user_file(&file) => Self::User,
            () => Self::Library,
        }
    }
}

/// Every Python function that exists.
fn functions(py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
    let Some(function_type) = symbols::function_type() else { return Vec::new() };
    let mut addresses = Vec::new();
    let complete = visit_tracked(py, &mut |object| {
        // SAFETY: the collector's list holds live objects.
        if unsafe { ffi::Py_TYPE(object as *mut ffi::PyObject) } == function_type {
            addresses.push(object);
        }
        true
    });
    if !complete {
        return Vec::new();
    }
    // SAFETY: no Python code has run since the walk, so what it found is alive.
    addresses
        .into_iter()
        .map(|object| unsafe { Bound::from_borrowed_ptr(py, object as *mut ffi::PyObject) })
        .collect()
}

/// Files of the module or type named, and of the type's base classes.
fn home_files(py: Python<'_>, home: &str) -> HashSet<String> {
    let mut files = HashSet::new();
    let mut add_module = |name: &str| {
        let file = loaded(py, name).and_then(|module| member(&module, "__file__")?.extract::<String>().ok());
        if let Some(file) = file {
            files.insert(file);
        }
    };
    add_module(home);
    if let Some((module, class)) = home.rsplit_once('.') {
        add_module(module);
        let class = loaded(py, module)
            .and_then(|module| member(&module, class)?.cast_into::<pyo3::types::PyType>().ok());
        for base in class.iter().flat_map(|class| class.mro().iter().collect::<Vec<_>>()) {
            let base = base.cast_into::<pyo3::types::PyType>().ok();
            if let Some(module) = base.and_then(|base| base.module().ok()) {
                add_module(&module.to_string_lossy());
            }
        }
    }
    files
}
