//! The files of one crate, and which of them imports from which.
//!
//! `mod` and `pub use` are no imports: a name counts as imported from the file that defines it, through however many others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, anyhow};

use super::scan::{self, Import, Path, Scanned};

/// One crate's files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Paths, relative to the folder of sources.
    pub names: Vec<String>,
    folder: PathBuf,
    modules: Vec<Module>,
}

/// A module: a file, or a part of one.
#[derive(Debug)]
struct Module {
    file: usize,
    parent: usize,
    children: BTreeMap<String, usize>,
    scanned: Scanned,
}

/// One import that leads from a file to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    pub line: usize,
    pub path: String,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// Something that is defined in a module.
    Item(usize),
}

/// How many imports a name is followed through.
const DEEPEST: usize = 16;

impl Files {
    /// Reads a crate from its root file on.
    pub(crate) fn read(root: &FilePath) -> anyhow::Result<Self> {
        let mut files = Self { folder: root.parent().unwrap_or(root).to_path_buf(), ..Self::default() };
        files.add_file(root, 0)?;
        Ok(files)
    }

    /// Adds a file and those that it declares.
    fn add_file(&mut self, path: &FilePath, parent: usize) -> anyhow::Result<usize> {
        let name = path.strip_prefix(&self.folder).unwrap_or(path).display().to_string();
        let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        let scanned =
            scan::scan(&text).map_err(|error| anyhow!("failed to read {}: {error}", path.display()))?;
        self.names.push(name);
        let below = match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "mod") | None => path.parent().unwrap_or(path).to_path_buf(),
            Some(stem) => path.with_file_name(stem),
        };
        self.add_module(self.names.len() - 1, parent, scanned, &below)
    }

    /// Adds a module of a file, and the files that it declares in a folder `below`.
    fn add_module(
        &mut self,
        file: usize,
        parent: usize,
        mut scanned: Scanned,
        below: &FilePath,
    ) -> anyhow::Result<usize> {
        let declared = std::mem::take(&mut scanned.children);
        let this = self.modules.len();
        self.modules.push(Module { file, parent, children: BTreeMap::new(), scanned });
        for (name, inner) in declared {
            let child = match inner {
                Some(inner) => self.add_module(file, this, inner, &below.join(&name))?,
                None => self.add_file(&file_of(below, &name), this)?,
            };
            self.modules[this].children.insert(name, child);
        }
        Ok(this)
    }

    /// Every import that leads from one file to another, in order, once for each path.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        let mut edges = BTreeSet::new();
        for (index, module) in self.modules.iter().enumerate() {
            let counts = |import: &&Import| {
                !import.reexport
                    || import.name.as_ref().is_some_and(|name| module.scanned.bare.contains(name))
            };
            let imports = module.scanned.imports.iter().filter(counts);
            let imported = imports.map(|import| (&import.path, import.name.is_none()));
            for (path, all) in imported.chain(module.scanned.paths.iter().map(|path| (path, false))) {
                edges.extend(self.edge(index, path, all));
            }
        }
        edges.into_iter().collect()
    }

    /// The import that a path of a module makes, if it leads to another file.
    fn edge(&self, from: usize, path: &Path, all: bool) -> Option<Edge> {
        let to = match self.resolve(from, &path.names, DEEPEST)? {
            Target::Item(module) => module,
            Target::Module(module) if all => module,
            Target::Module(_) => return None,
        };
        let (from, to) = (self.modules[from].file, self.modules[to].file);
        let text = path.names.join("::") + if all { "::*" } else { "" };
        (from != to).then_some(Edge { from, to, line: path.line, path: text })
    }

    /// What a path leads to from a module; `None` where that is no part of this crate.
    fn resolve(&self, from: usize, names: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = names.split_first()?;
        let depth = depth.checked_sub(1)?;
        let start = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(self.modules[from].parent),
            name => self.member(from, name, rest.is_empty(), depth)?,
        };
        rest.iter().enumerate().try_fold(start, |reached, (index, name)| match reached {
            Target::Item(_) => Some(reached),
            Target::Module(module) if name == "super" => Some(Target::Module(self.modules[module].parent)),
            Target::Module(module) if name == "self" => Some(Target::Module(module)),
            // What no line defines is made by a macro of the module.
            Target::Module(module) => match self.member(module, name, index + 1 == rest.len(), depth) {
                None if self.brings_in(module, name) => None,
                found => Some(found.unwrap_or(Target::Item(module))),
            },
        })
    }

    /// What a name means in a module.
    fn member(&self, module: usize, name: &str, last: bool, depth: usize) -> Option<Target> {
        let this = &self.modules[module];
        if last && this.scanned.items.contains(name) {
            return Some(Target::Item(module));
        }
        if let Some(child) = this.children.get(name) {
            return Some(Target::Module(*child));
        }
        if this.scanned.items.contains(name) {
            return Some(Target::Item(module));
        }
        let mut named = this.scanned.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        if let Some(found) = named.find_map(|import| self.resolve(module, &import.path.names, depth)) {
            return Some(found);
        }
        let mut globs = this.scanned.imports.iter().filter(|import| import.name.is_none() && import.reexport);
        globs.find_map(|import| match self.resolve(module, &import.path.names, depth)? {
            Target::Module(other) => self.member(other, name, last, depth.checked_sub(1)?),
            Target::Item(_) => None,
        })
    }

    /// Whether a module imports a name, from wherever.
    fn brings_in(&self, module: usize, name: &str) -> bool {
        self.modules[module].scanned.imports.iter().any(|import| import.name.as_deref() == Some(name))
    }
}

/// The file of a module that is declared by its name.
fn file_of(below: &FilePath, name: &str) -> PathBuf {
    let file = below.join(format!("{name}.rs"));
    if file.exists() { file } else { below.join(name).join("mod.rs") }
}
