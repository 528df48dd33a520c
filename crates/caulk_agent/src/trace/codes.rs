//! Code objects of the program, told apart by whose they are, and the names in them.
//!
//! A process with torch has 75,000 functions. Each is asked for its file and its names; where these fields are in a code
//! object is found out once, from a few code objects whose attributes are known, so that a search takes milliseconds.

use std::collections::HashSet;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::census::CollectorPaused;
use crate::frames;
use crate::heap::{Address, AddressMap, AddressSet, visit_in_order};
use crate::holders::library_namespaces;
use crate::symbols;

/// The user's code objects, and those of libraries that mention a watched name: where its holder is defined, as a variable
/// or a string as well.
pub(super) struct Codes<'py> {
    pub(super) stores: Stores,
    pub(super) user: Vec<Bound<'py, PyAny>>,
    pub(super) library: Vec<Bound<'py, PyAny>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    User,
    Library,
    /// A file of a library in which the type or module of a watched holder is defined.
    Home,
    /// caulk and the import system are never watched.
    Nobody,
}

impl Whose {
    fn of(code: &Bound<'_, PyAny>, homes: &HashSet<String>) -> Self {
        let file = field(code, Field::File).and_then(|file| file.cast_into::<PyString>().ok());
        let Some(file) = file else { return Self::Nobody };
        let file = file.to_string_lossy();
        match () {
            () if frames::is_caulk_file(&file) || file.starts_with("<frozen") => Self::Nobody,
            () if frames::is_user_file(&file) => Self::User,
            () if homes.contains(&*file) => Self::Home,
            () => Self::Library,
        }
    }
}

impl<'py> Codes<'py> {
    /// Code of every function and running frame: all of the user's, with the functions inside; of libraries, what has one
    /// of these names (interned strings), in the files of `homes` also as a variable or a string.
    pub(super) fn collect(py: Python<'py>, names: &[Bound<'py, PyString>], homes: &HashSet<String>) -> Self {
        let _paused = CollectorPaused::new(py);
        let texts = names;
        let names: Vec<Address> = names.iter().map(|name| name.as_ptr() as Address).collect();
        let mut codes = Self { stores: Stores::known(), user: Vec::new(), library: Vec::new() };
        let mut seen = AddressSet::default();
        for (code, whose) in function_codes(py, names.is_empty(), homes) {
            let mentioned = match whose {
                Whose::User => {
                    codes.add_user(code, &mut seen);
                    continue;
                }
                Whose::Library => has_name(&code, &names),
                Whose::Home => mentions(&code, texts, true),
                Whose::Nobody => false,
            };
            if mentioned && seen.insert(code.as_ptr() as Address) {
                codes.library.push(code);
            }
        }
        for (_, stack) in frames::all_frames(py) {
            for frame in &stack {
                let code = frames::code_of(frame);
                if Whose::of(&code, homes) == Whose::User {
                    codes.add_user(code, &mut seen);
                }
            }
        }
        codes
    }

    fn add_user(&mut self, code: Bound<'py, PyAny>, seen: &mut AddressSet) {
        if !seen.insert(code.as_ptr() as Address) {
            return;
        }
        let nested = frames::constants(&code);
        for constant in nested.iter().flat_map(PyTupleMethods::iter) {
            if Some(constant.get_type_ptr()) == symbols::code_type() {
                self.add_user(constant, seen);
            }
        }
        self.user.push(code);
    }
}

/// Code of every Python function that exists, and whose it is; or only of the user's.
///
/// Memory is touched once per object and function, and no more for functions that are not wanted: whose a function is
/// depends on its module, which is told by its globals.
fn function_codes<'py>(
    py: Python<'py>,
    only_user: bool,
    homes: &HashSet<String>,
) -> Vec<(Bound<'py, PyAny>, Whose)> {
    let mut modules: AddressMap<Whose> = AddressMap::default();
    let mut codes = Vec::new();
    let functions = functions(py, &if only_user { library_namespaces(py) } else { AddressSet::default() });
    calibrate(py, &functions);
    for function in functions {
        let (Some(code_of), Some(globals_of)) = (symbols::function_code(), symbols::function_globals())
        else {
            return Vec::new();
        };
        // SAFETY: a function; a borrowed reference.
        let globals = unsafe { globals_of(function.as_ptr()) } as Address;
        let known = modules.get(&globals).copied();
        if only_user && matches!(known, Some(Whose::Library | Whose::Nobody)) {
            continue;
        }
        // SAFETY: a function; a borrowed reference or null.
        let code = unsafe { Bound::from_borrowed_ptr_or_opt(py, code_of(function.as_ptr())) };
        if let Some(code) = code {
            let whose = known.unwrap_or_else(|| Whose::of(&code, homes));
            modules.insert(globals, whose);
            codes.push((code, whose));
        }
    }
    codes
}

/// Every Python function that exists outside these namespaces, kept alive: names are interned on the way, for which the
/// GIL is let go. The others are not touched: a forked process would copy them.
fn functions<'py>(py: Python<'py>, apart: &AddressSet) -> Vec<Bound<'py, PyAny>> {
    let (Some(function_type), Some(globals_of)) = (symbols::function_type(), symbols::function_globals())
    else {
        return Vec::new();
    };
    let mut functions = Vec::new();
    let complete = visit_in_order(py, &mut |object| {
        let object = object as *mut ffi::PyObject;
        // SAFETY: the collector's list holds live objects.
        let is_function = unsafe { ffi::Py_TYPE(object) } == function_type;
        // SAFETY: a function; a borrowed reference.
        if is_function && !apart.contains(&(unsafe { globals_of(object) } as Address)) {
            // SAFETY: as above.
            functions.push(unsafe { Bound::from_borrowed_ptr(py, object) });
        }
        true
    });
    if complete { functions } else { Vec::new() }
}

/// Fields of a code object that are plain references in every version.
#[derive(Clone, Copy)]
enum Field {
    Names,
    File,
}

impl Field {
    fn attribute(self, py: Python<'_>) -> &Bound<'_, PyString> {
        match self {
            Self::Names => intern!(py, "co_names"),
            Self::File => intern!(py, "co_filename"),
        }
    }
}

/// A field of a code object, read in place where that is known.
fn field<'py>(code: &Bound<'py, PyAny>, field: Field) -> Option<Bound<'py, PyAny>> {
    let py = code.py();
    let Some(offset) = OFFSETS.get().and_then(|offsets| offsets[field as usize]) else {
        return code.getattr(field.attribute(py)).ok();
    };
    // SAFETY: the offset lies in every code object.
    let value = unsafe { *((code.as_ptr() as Address + offset) as *const *mut ffi::PyObject) };
    // SAFETY: a reference that the code object owns.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, value) }
}

/// Byte offsets of the fields; `None` where they cannot be told for certain.
static OFFSETS: OnceLock<[Option<usize>; 2]> = OnceLock::new();

/// Finds the offsets, once, from some of the functions that were found.
fn calibrate(py: Python<'_>, functions: &[Bound<'_, PyAny>]) {
    if OFFSETS.get().is_some() {
        return;
    }
    let Some(code_of) = symbols::function_code() else { return };
    let sample = functions.iter().step_by(7).take(40);
    // SAFETY: functions that were just found; a borrowed reference or null.
    let sample = sample
        .filter_map(|function| unsafe { Bound::from_borrowed_ptr_or_opt(py, code_of(function.as_ptr())) });
    let sample: Vec<_> = sample.collect();
    let found = [Field::Names, Field::File].map(|field| find_offset(py, &sample, field));
    // Another thread may have been as fast; it has found the same.
    OFFSETS.get_or_init(|| found);
}

/// Where all of a sample of code objects have the value of their attribute, if that is one place.
fn find_offset(py: Python<'_>, sample: &[Bound<'_, PyAny>], field: Field) -> Option<usize> {
    // SAFETY: a static type of the interpreter.
    let code_type: Bound<'_, PyAny> =
        unsafe { Bound::from_borrowed_ptr_or_opt(py, symbols::code_type()?.cast()) }?;
    let size: usize = code_type.getattr(intern!(py, "__basicsize__")).ok()?.extract().ok()?;
    let value =
        |code: &Bound<'_, PyAny>| code.getattr(field.attribute(py)).map(|value| value.as_ptr() as Address);
    let values: Vec<Address> = sample.iter().map(value).collect::<PyResult<_>>().ok()?;
    let word = |code: &Bound<'_, PyAny>, offset: usize| {
        // SAFETY: the offset is below the size that every code object has at least.
        unsafe { *((code.as_ptr() as Address + offset) as *const Address) }
    };
    let agrees =
        |offset: &usize| sample.iter().zip(&values).all(|(code, value)| word(code, *offset) == *value);
    let mut offsets = (16..size / 8 * 8).step_by(8).filter(agrees);
    let distinct = values.iter().collect::<HashSet<_>>().len();
    offsets.next().filter(|_| distinct >= 4 && offsets.next().is_none())
}

fn has_name(code: &Bound<'_, PyAny>, names: &[Address]) -> bool {
    let Some(used) = field(code, Field::Names).and_then(|used| used.cast_into::<PyTuple>().ok()) else {
        return false;
    };
    used.iter_borrowed().any(|name| names.contains(&(name.as_ptr() as Address)))
}

/// Calls `visit` with every item of a tuple of a code object.
fn each_item<'py>(
    code: &Bound<'py, PyAny>,
    attribute: &Bound<'py, PyString>,
    visit: &mut dyn FnMut(&Bound<'py, PyAny>),
) {
    let items = code.getattr(attribute).ok().and_then(|items| items.cast_into::<PyTuple>().ok());
    for item in items.iter().flat_map(PyTupleMethods::iter) {
        visit(&item);
    }
}

/// Attributes, globals and methods that the code names.
pub(super) fn each_name<'py>(code: &Bound<'py, PyAny>, visit: &mut dyn FnMut(&Bound<'py, PyAny>)) {
    each_item(code, intern!(code.py(), "co_names"), visit);
}

/// Does the code mention one of these names (interned strings) as an attribute, global or method, or, `thoroughly`, as a
/// variable or a string?
pub(super) fn mentions(code: &Bound<'_, PyAny>, names: &[Bound<'_, PyString>], thoroughly: bool) -> bool {
    let py = code.py();
    let mut found = false;
    let mut look = |name: &Bound<'_, PyAny>| found = found || names.iter().any(|other| other.is(name));
    each_name(code, &mut look);
    if thoroughly {
        for variables in [intern!(py, "co_varnames"), intern!(py, "co_freevars"), intern!(py, "co_cellvars")]
        {
            each_item(code, variables, &mut look);
        }
        // Keys that are no identifiers are not interned.
        each_item(code, intern!(py, "co_consts"), &mut |constant| {
            found = found
                || (constant.is_exact_instance_of::<PyString>()
                    && names.iter().any(|name| name.as_any().eq(constant).unwrap_or(false)));
        });
    }
    found
}

/// Instructions that bind a name or store an element, by their numbers (CPython, Lib/opcode.py and `Include/opcode_ids.h`).
pub(super) struct Stores {
    /// `STORE_ATTR`, `STORE_GLOBAL`, `STORE_NAME`: their argument is the index of the name.
    of_names: &'static [u8],
    /// `STORE_SUBSCR`, and `STORE_SLICE` of 3.12 and later.
    of_items: &'static [u8],
}

impl Stores {
    /// Those of this interpreter.
    pub(super) fn known() -> Self {
        let (of_names, of_items): (&[u8], &[u8]) = match symbols::minor() {
            Some(10 | 11) => (&[95, 97, 90], &[60]),
            Some(12) => (&[95, 97, 90], &[60, 27]),
            Some(13) => (&[108, 113, 114], &[39, 38]),
            Some(14) => (&[110, 115, 116], &[38, 37]),
            _ => (&[], &[]),
        };
        Self { of_names, of_items }
    }

    /// Does the code store an element, as in `target[key] = value`?
    pub(super) fn item_in(&self, code: &Bound<'_, PyAny>) -> bool {
        instructions(code)
            .is_some_and(|bytes| bytes.as_bytes().chunks_exact(2).any(|one| self.of_items.contains(&one[0])))
    }

    /// Does the code bind one of these names (interned strings) again, as in `self.items += more`?
    pub(super) fn name_in(&self, code: &Bound<'_, PyAny>, names: &[Bound<'_, PyString>]) -> bool {
        let mut indices = Vec::new();
        let mut at = 0_usize;
        each_name(code, &mut |name| {
            // Of a longer index, the lower half stands beside the instruction.
            indices.extend(names.iter().any(|other| other.is(name)).then_some(at as u8));
            at += 1;
        });
        let binds = |one: &[u8]| self.of_names.contains(&one[0]) && indices.contains(&one[1]);
        !indices.is_empty()
            && instructions(code).is_some_and(|bytes| bytes.as_bytes().chunks_exact(2).any(binds))
    }
}

fn instructions<'py>(code: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
    code.getattr(intern!(code.py(), "co_code")).ok()?.cast_into().ok()
}
