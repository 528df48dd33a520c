//! What keeps an object alive: a forward search from ranked roots.
//!
//! Roots in order: the user's modules, the locals of every running function, all other modules, one large package after the
//! other. Module namespaces are closed: a path never passes through one on its way to somewhere else, so that it starts
//! where a person would look. So are the classes of libraries, until their modules are searched: from a base class, all of
//! a package is within reach. What modules of libraries keep directly comes before the rest of their packages. The search is breadth-first, hence paths from a kind of root are shortest, but for what is
//! behind an object that refers to thousands (a table of data in memory): its elements are compared with what is searched
//! for at once, and gone into after all else. It is bounded in nodes and in time. Roots are read before it
//! begins; while it lasts nothing is called, and what it found is kept alive.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

mod again;
mod registries;

pub(crate) use again::Roots;

use crate::frames;
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, loaded, member};
use crate::stopwatch::Stopwatch;

/// Where a path starts.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    /// The namespace of a module.
    Module(String),
    /// A local variable of a running function.
    Local { function: String, file: String, line: u32, variable: String, thread: Option<String> },
}

/// Which roots are searched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The user's modules and running functions: what the program itself keeps.
    User,
    /// All modules.
    All,
}

/// From a root to a target: the first node is the module's namespace, or the value of the local variable.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) root: Root,
    pub(crate) nodes: Vec<Address>,
}

impl Path {
    /// The part of it that ends with a node.
    pub(crate) fn up_to(&self, end: usize) -> Self {
        Self { root: self.root.clone(), nodes: self.nodes[..=end].to_vec() }
    }
}

/// Nodes looked at before the search gives up.
const NODE_LIMIT: usize = 2_000_000;
/// Longest search, in CPU time of the calling thread, which is looked at after so many references.
const TIME_LIMIT: Duration = Duration::from_millis(90);
const REFERENCES_PER_LOOK: usize = 1 << 14;
/// Longest search for what else refers to the value of a local variable.
const STORED_LIMIT: Duration = Duration::from_millis(30);
/// Referents of one object from which on they are gone into after all else.
const WIDE: usize = 2048;
/// Modules of a package that is searched before those of large ones.
const SMALL_PACKAGE: usize = 24;

struct Search<'a, 'py> {
    heap: &'a mut Heap<'py>,
    targets: &'a AddressSet,
    /// What is found too, as far as the program's own roots lead.
    besides: &'a AddressSet,
    only_targets: bool,
    /// Names of the user's modules, whose classes alone are entered; none, and all are.
    user_modules: Option<HashSet<String>>,
    /// How many of these are still to be found.
    missing: usize,
    visited: AddressSet,
    /// Object and index of the node that led to it; roots lead to themselves.
    nodes: Vec<(Address, u32)>,
    next: usize,
    /// Nodes that refer to very many, with their number: those of fewer come first.
    wide: BinaryHeap<Reverse<(usize, u32)>>,
    roots: AddressMap<Root>,
    found: AddressMap<u32>,
    started: Stopwatch,
    limit: Duration,
    /// References met since the time was looked at.
    references: usize,
    /// What the context variables of this thread are bound to.
    contexts: AddressMap<Address>,
}

/// Finds a path to each target that can be reached; the second value is false where the search hit its bound.
pub(crate) fn find(heap: &mut Heap<'_>, targets: &AddressSet, scope: Scope) -> (AddressMap<Path>, bool) {
    find_within(heap, targets, scope, TIME_LIMIT)
}

/// As [`find`], for somebody who waits for the answer: so much CPU time of the calling thread at most.
pub(crate) fn find_within(
    heap: &mut Heap<'_>,
    targets: &AddressSet,
    scope: Scope,
    limit: Duration,
) -> (AddressMap<Path>, bool) {
    search(heap, &Quest { scope, limit, ..Quest::whole(targets, &AddressSet::default()) })
}

/// Of the targets that were found as the value of a local variable, paths to those that the program stores elsewhere as
/// well: such a variable may be but another name for what an object keeps.
pub(crate) fn find_stored(heap: &mut Heap<'_>, found: &AddressMap<Path>) -> AddressMap<Path> {
    let is_variable = |path: &Path| path.nodes.len() == 1 && matches!(path.root, Root::Local { .. });
    let variables: AddressSet =
        found.iter().filter(|(_, path)| is_variable(path)).map(|(target, _)| *target).collect();
    if variables.is_empty() {
        return AddressMap::default();
    }
    let besides = AddressSet::default();
    let quest = Quest { limit: STORED_LIMIT, only_stored: true, ..Quest::whole(&variables, &besides) };
    search(heap, &quest).0
}

/// Where paths begin: the first `longest` nodes of those to each target that can be reached, and to those `besides` that the
/// program itself keeps.
pub(crate) fn find_beginnings(
    heap: &mut Heap<'_>,
    targets: &AddressSet,
    besides: &AddressSet,
    longest: usize,
    limit: Duration,
) -> AddressMap<Path> {
    search(heap, &Quest { longest, limit, scope: Scope::All, ..Quest::whole(targets, besides) }).0
}

/// What is searched for, and how.
struct Quest<'a> {
    targets: &'a AddressSet,
    /// What is found too, as far as the program's own roots lead.
    besides: &'a AddressSet,
    /// Nodes of a path that are told.
    longest: usize,
    scope: Scope,
    limit: Duration,
    /// That a local variable has a target as its value is no path.
    only_stored: bool,
}

impl<'a> Quest<'a> {
    /// Whole paths from the program's own roots.
    fn whole(targets: &'a AddressSet, besides: &'a AddressSet) -> Self {
        let (longest, scope, limit) = (usize::MAX, Scope::User, TIME_LIMIT);
        Self { targets, besides, longest, scope, limit, only_stored: false }
    }
}

fn search(heap: &mut Heap<'_>, quest: &Quest<'_>) -> (AddressMap<Path>, bool) {
    let &Quest { targets, besides, longest, scope, limit, only_stored } = quest;
    let py = heap.py;
    let modules = modules(py);
    let frames = frames::all_frames(py);
    let locals = locals(py, &frames);
    let variables = context_variables(py);
    let contexts = variables
        .iter()
        .map(|(variable, value)| (variable.as_ptr() as Address, value.as_ptr() as Address))
        .collect();
    let mut search = Search {
        heap,
        targets,
        besides,
        only_targets: false,
        user_modules: Some(
            modules.iter().filter(|module| module.user).map(|module| module.name.clone()).collect(),
        ),
        missing: targets.union(besides).count(),
        visited: AddressSet::default(),
        nodes: Vec::new(),
        next: 0,
        wide: BinaryHeap::new(),
        roots: AddressMap::default(),
        found: AddressMap::default(),
        started: Stopwatch::start(),
        limit,
        references: 0,
        contexts,
    };
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    for module in &modules {
        *sizes.entry(package_of(&module.name)).or_default() += 1;
        search.visited.insert(module.address);
        search.visited.insert(module.namespace());
    }
    // Frames keep each other through `f_back`: they are roots, never a way.
    for (_, stack) in &frames {
        search.visited.extend(stack.iter().map(|frame| frame.as_ptr() as Address));
    }
    for module in modules.iter().filter(|module| module.user) {
        search.start(module.namespace(), Root::Module(module.name.clone()));
    }
    let mut complete = search.run(false);
    for (root, value) in &locals {
        let value = value.as_ptr() as Address;
        let is_told = !only_stored || !targets.contains(&value);
        if is_told && search.visited.insert(value) {
            search.start(value, root.clone());
        }
    }
    complete = complete && search.run(true);
    search.only_targets = true;
    search.user_modules = None;
    search.missing = targets.iter().filter(|target| !search.found.contains_key(target)).count();
    // The modules of small packages (`weakref`, `logging`) are soon gone through, and hold what they are given; then one
    // package after the other, the largest last (a program with pyplot has a tenth as many modules of it as of torch).
    let turn = |module| {
        let package = package_of(module);
        let size = sizes[package];
        if size <= SMALL_PACKAGE { (0, "") } else { (size, package) }
    };
    let mut libraries: Vec<_> = modules
        .iter()
        .filter(|module| !module.user && scope == Scope::All)
        .map(|module| (turn(&module.name), module))
        .collect();
    libraries.sort_by_key(|(turn, _)| *turn);
    let mut seen = AddressSet::default();
    for (_, module) in &libraries {
        search.look_at_registries(&module.name, module.namespace(), &mut seen);
    }
    for package in libraries.chunk_by(|(one, _), (next, _)| one == next) {
        for (_, module) in package {
            search.start(module.namespace(), Root::Module(module.name.clone()));
        }
        complete = complete && search.run(false);
    }
    complete = complete && search.run(true);
    // While the roots that were read are alive still.
    (search.paths(longest), complete)
}

fn package_of(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}

/// Context variables of the running thread, with what they are bound to.
fn context_variables(py: Python<'_>) -> Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    let context = loaded(py, "_contextvars").and_then(|module| member(&module, "copy_context")?.call0().ok());
    let items = context.and_then(|context| context.call_method0("items").ok()?.try_iter().ok());
    items.map_or_else(Vec::new, |items| items.flatten().filter_map(|item| item.extract().ok()).collect())
}

/// Locals of the user's functions in all threads, of a thread the outermost function first: it lives longest.
fn locals<'py>(py: Python<'py>, threads: &[(u64, Vec<Bound<'py, PyAny>>)]) -> Vec<(Root, Bound<'py, PyAny>)> {
    let mut roots = Vec::new();
    for (thread, stack) in threads {
        let name =
            Some(frames::thread_name(py, *thread)).filter(|name| !name.is_empty() && name != "MainThread");
        for frame in stack.iter().rev() {
            let place = frames::place(frame);
            if !frames::is_user_file(&place.file) {
                continue;
            }
            frames::for_each_local(frame, &mut |variable, value| {
                let root = Root::Local {
                    function: place.function.clone(),
                    file: place.file.clone(),
                    line: place.line,
                    variable: variable.to_owned(),
                    thread: name.clone(),
                };
                roots.push((root, value.clone()));
            });
        }
    }
    roots
}

impl Search<'_, '_> {
    fn start(&mut self, object: Address, root: Root) {
        let index = self.nodes.len() as u32;
        self.nodes.push((object, index));
        self.note(object, index);
        self.roots.entry(index as Address).or_insert(root);
    }

    /// Goes on until everything reachable was seen, every target found (true), or a bound hit (false). What refers to very
    /// many waits until it is run with these.
    fn run(&mut self, with_wide: bool) -> bool {
        let mut children = Vec::new();
        while let Some((parent, may_wait)) = self.next_node(with_wide) {
            if self.missing == 0 {
                return true;
            }
            if self.nodes.len() > NODE_LIMIT || self.is_out_of_time() {
                return false;
            }
            let (object, _) = self.nodes[parent as usize];
            children.clear();
            self.heap.referents(object, &mut |child| children.push(child));
            children.extend(self.contexts.get(&object));
            self.references += children.len() + 1;
            if may_wait && children.len() > WIDE {
                self.wide.push(Reverse((children.len(), parent)));
                children.retain(|child| self.is_wanted(*child));
            }
            for child in &children {
                self.meet(*child, parent);
            }
        }
        true
    }

    /// The next node to be gone into, and whether that may wait.
    fn next_node(&mut self, with_wide: bool) -> Option<(u32, bool)> {
        if self.next < self.nodes.len() {
            self.next += 1;
            return Some((self.next as u32 - 1, true));
        }
        let wide = if with_wide { self.wide.pop() } else { None };
        wide.map(|Reverse((_, node))| (node, false))
    }

    fn is_out_of_time(&mut self) -> bool {
        if self.references < REFERENCES_PER_LOOK {
            return false;
        }
        self.references = 0;
        self.started.work() > self.limit
    }

    fn meet(&mut self, child: Address, parent: u32) {
        let wanted = self.is_wanted(child);
        let info = self.heap.type_of(child);
        if !wanted && (!info.collected || matches!(info.shape, Shape::Code | Shape::Module | Shape::Frame)) {
            return;
        }
        if !wanted && info.shape == Shape::Type && self.is_closed(child) {
            return;
        }
        if self.visited.insert(child) {
            let index = self.nodes.len() as u32;
            self.nodes.push((child, parent));
            self.note(child, index);
        }
    }

    /// Is this a library's class, while those are no way?
    fn is_closed(&self, class: Address) -> bool {
        let Some(user_modules) = &self.user_modules else { return false };
        let module = self.heap.module_of_class(class);
        !module.is_some_and(|module| module.to_str().is_ok_and(|name| user_modules.contains(name)))
    }

    fn is_wanted(&self, object: Address) -> bool {
        self.targets.contains(&object) || (!self.only_targets && self.besides.contains(&object))
    }

    fn note(&mut self, object: Address, index: u32) {
        if self.is_wanted(object) && !self.found.contains_key(&object) {
            self.found.insert(object, index);
            self.missing -= 1;
        }
    }

    /// The paths that were found, at most so many nodes of each, with everything on them kept alive.
    fn paths(self, longest: usize) -> AddressMap<Path> {
        let before = |index: u32| Some(self.nodes[index as usize].1).filter(|before| *before != index);
        let trace = |index: u32| {
            let way = || std::iter::successors(Some(index), |index| before(*index));
            let cut = way().count().saturating_sub(longest);
            let indices: Vec<u32> = way().skip(cut).collect();
            let root = indices.last().map_or(index, |index| *index);
            let nodes = indices.iter().rev().map(|index| self.nodes[*index as usize].0).collect();
            Path { root: self.roots[&(root as Address)].clone(), nodes }
        };
        let paths: AddressMap<Path> =
            self.found.iter().map(|(target, index)| (*target, trace(*index))).collect();
        self.heap.keep(paths.values().flat_map(|path| &path.nodes).copied());
        paths
    }
}

struct ModuleRoot<'py> {
    name: String,
    address: Address,
    namespace: Bound<'py, PyDict>,
    user: bool,
}

impl ModuleRoot<'_> {
    fn namespace(&self) -> Address {
        self.namespace.as_ptr() as Address
    }
}

/// Namespaces of the modules whose files are not the user's: told without touching what is in them.
pub(crate) fn library_namespaces(py: Python<'_>) -> AddressSet {
    let has_file = |module: &&ModuleRoot<'_>| module.namespace.contains("__file__").unwrap_or(false);
    let modules = modules(py);
    modules.iter().filter(|module| !module.user).filter(has_file).map(ModuleRoot::namespace).collect()
}

/// Loaded modules, `__main__` first, caulk's own left out.
fn modules(py: Python<'_>) -> Vec<ModuleRoot<'_>> {
    // SAFETY: a borrowed reference to `sys.modules`, or null.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, pyo3::ffi::PyImport_GetModuleDict()) };
    let Some(modules) = modules.and_then(|modules| modules.cast_into::<PyDict>().ok()) else {
        return Vec::new();
    };
    let mut roots = Vec::new();
    for (name, module) in modules.iter() {
        let (Ok(name), Ok(module)) = (name.extract::<String>(), module.cast_into::<PyModule>()) else {
            continue;
        };
        if name == "caulk" || name.starts_with("caulk.") {
            continue;
        }
        let namespace = module.dict();
        let file =
            namespace.get_item("__file__").ok().flatten().and_then(|file| file.extract::<String>().ok());
        let user = name == "__main__" || file.is_some_and(|file| frames::is_user_file(&file));
        roots.push(ModuleRoot { name, address: module.as_ptr() as Address, namespace, user });
    }
    roots.sort_by_key(|root| root.name != "__main__");
    roots
}
