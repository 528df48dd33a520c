//! The files of a project, parsed, and which file a dotted name means.
//!
//! No configuration: a module is looked for in the importing file's own folder, in the folder of the package around
//! it, in a `src` folder beside that, and in the folders further up. The nearest wins, so that folders side by side may
//! hold modules of the same name.

use std::collections::{HashMap, HashSet};

use caulk_core::{Problem, Site, SiteRole};
use ruff_python_ast::{ModModule, PySourceType};
use ruff_text_size::TextRange;

use crate::depth;
use crate::text::Source;

/// Problems of one file that are told one by one.
const MAX_PROBLEMS: usize = 5;

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path with `/`, as reports show it.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Position of a file in its [`Project`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

/// A range of characters in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Which file.
    pub file: FileId,
    /// From where to where.
    pub range: Span,
}

impl Location {
    /// Whether it is a part of another place.
    pub fn is_in(self, other: Self) -> bool {
        self.file == other.file && self.range.start >= other.range.start && self.range.end <= other.range.end
    }
}

/// [`TextRange`] with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

impl From<TextRange> for Span {
    fn from(range: TextRange) -> Self {
        Self { start: range.start().to_u32(), end: range.end().to_u32() }
    }
}

impl From<Span> for TextRange {
    fn from(span: Span) -> Self {
        Self::new(span.start.into(), span.end.into())
    }
}

/// One parsed file.
#[derive(Debug)]
pub struct Parsed {
    pub(crate) path: String,
    pub(crate) source: Source,
    pub(crate) tree: ModModule,
}

impl Parsed {
    /// As given in [`SourceFile::path`].
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The syntax tree.
    pub fn tree(&self) -> &ModModule {
        &self.tree
    }

    /// All of its text.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// Text of a range.
    pub fn slice(&self, range: TextRange) -> &str {
        self.source.slice(range)
    }
}

/// A project's files.
#[derive(Debug, Default)]
pub struct Project {
    files: Vec<Parsed>,
    by_path: HashMap<String, FileId>,
    /// What files and folders are called: most imports are of libraries, whose names are none of these.
    parts: HashSet<String>,
    problems: Vec<Problem>,
}

impl Project {
    /// Parses. What cannot be parsed is a problem, and what is around it is looked at all the same. The order of the files
    /// does not matter.
    pub fn new(files: impl IntoIterator<Item = SourceFile>) -> Self {
        let mut project = Self::default();
        let mut files: Vec<SourceFile> = files.into_iter().collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        for file in files {
            project.add(file);
        }
        project
    }

    fn add(&mut self, file: SourceFile) {
        let kind = PySourceType::try_from_path(&file.path).unwrap_or_default();
        let parsed = match depth::parse(&file.text, kind) {
            Ok(parsed) => parsed,
            Err(why) => return self.problems.push(Problem::of_file(&file.path, why.to_string())),
        };
        let source = Source::new(file.text);
        let errors = parsed.errors().iter().take(MAX_PROBLEMS);
        self.problems.extend(errors.map(|error| source.problem(&file.path, error)));
        let id = FileId(self.files.len() as u32);
        self.by_path.insert(file.path.clone(), id);
        for part in file.path.trim_end_matches(".py").split('/') {
            if !self.parts.contains(part) {
                self.parts.insert(part.to_owned());
            }
        }
        let mut tree = parsed.into_syntax();
        if depth::bound(&mut tree) {
            self.problems.push(Problem::of_file(&file.path, depth::Unparsed::Deep.to_string()));
        }
        self.files.push(Parsed { path: file.path, source, tree });
    }

    /// What could not be parsed.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// One file.
    pub fn file(&self, id: FileId) -> &Parsed {
        &self.files[id.0 as usize]
    }

    /// All files, in the order of their paths.
    pub fn ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    /// A place for people: `range` is the expression or statement to blame.
    pub fn site(&self, role: SiteRole, at: Location, function: &str) -> Site {
        let file = self.file(at.file);
        let spot = file.source.spot(at.range.into(), function.to_owned());
        Site {
            role,
            file: file.path.clone(),
            line: spot.line,
            end_line: spot.end_line,
            column: spot.column,
            function: spot.function,
            text: spot.text,
            cell: None,
        }
    }

    /// First line of a place, from 1.
    pub fn line(&self, at: Location) -> u32 {
        let range: TextRange = at.range.into();
        self.file(at.file).source.line_of(range.start())
    }

    /// First and last line of a place, from 1.
    pub fn lines(&self, at: Location) -> (u32, u32) {
        let range: TextRange = at.range.into();
        let source = &self.file(at.file).source;
        (source.line_of(range.start()), source.line_of(range.end()))
    }

    /// Text of a place.
    pub fn text(&self, at: Location) -> &str {
        self.file(at.file).source.slice(at.range.into())
    }

    /// The file with exactly this path.
    pub fn find(&self, path: &str) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    /// The file that `import name` means in a file; the package itself for a package.
    pub(crate) fn module(&self, from: FileId, name: &str) -> Option<FileId> {
        if !name.split('.').all(|part| self.parts.contains(part)) {
            return None;
        }
        let relative = name.replace('.', "/");
        let mut folder = parent(&self.file(from).path);
        loop {
            let found =
                self.in_folder(folder, &relative).or_else(|| self.in_folder(&join(folder, "src"), &relative));
            if found.is_some() || folder.is_empty() {
                return found;
            }
            folder = parent(folder);
        }
    }

    /// The file that `from ..name import` means, with as many dots as `level`.
    pub(crate) fn relative(&self, from: FileId, level: u32, name: &str) -> Option<FileId> {
        let mut folder = parent(&self.file(from).path);
        for _ in 1..level {
            folder = parent(folder);
        }
        self.in_folder(folder, &name.replace('.', "/"))
    }

    /// The file that `from ..package import name` means where `name` is a module. The package need not have an `__init__.py`.
    pub(crate) fn submodule(&self, from: FileId, level: u32, package: &str, name: &str) -> Option<FileId> {
        if !self.parts.contains(name) {
            return None;
        }
        let dot = if package.is_empty() { "" } else { "." };
        let dotted = format!("{package}{dot}{name}");
        if level > 0 { self.relative(from, level, &dotted) } else { self.module(from, &dotted) }
    }

    fn in_folder(&self, folder: &str, relative: &str) -> Option<FileId> {
        let base = join(folder, relative);
        let base = base.trim_end_matches('/');
        self.find(&format!("{base}.py")).or_else(|| self.find(join(base, "__init__.py").as_str()))
    }
}

/// The folder around a path, empty at the top.
fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
