//! The program's files: where their text comes from, and each of them parsed once.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use caulk_core::Diagnostic;
use caulk_python::{Analysis, FileId, Lines, Project, SourceFile};

/// Where the text of the program's files comes from.
pub trait Sources {
    /// Text of a file by the name that the program's code objects have; `None` where it cannot be read.
    fn read(&self, path: &str) -> Option<String>;
    /// The name as reports write it: relative to where caulk was started, when below it.
    fn display(&self, path: &str) -> String;
    /// Leak patterns that source alone shows in the projects of these files, under the names that reports write.
    fn patterns(&self, files: &BTreeSet<String>) -> Vec<Diagnostic>;
}

/// One of the program's files, with the analysis that it is part of.
#[derive(Clone)]
pub(crate) struct Source {
    analysis: Rc<Analysis>,
    file: FileId,
}

impl Source {
    /// Its lines, to be asked.
    pub(crate) fn lines(&self) -> Lines<'_> {
        self.analysis.lines(self.file)
    }
}

/// The program's files, each parsed once.
pub(crate) struct Files<'a> {
    sources: &'a dyn Sources,
    parsed: RefCell<HashMap<String, Option<Source>>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, parsed: RefCell::default() }
    }

    /// A file by the name that the program has for it; `None` where it cannot be read.
    pub(crate) fn source(&self, path: &str) -> Option<Source> {
        let mut parsed = self.parsed.borrow_mut();
        parsed.entry(path.to_owned()).or_insert_with(|| self.parse(path)).clone()
    }

    fn parse(&self, path: &str) -> Option<Source> {
        // Edits carry the name that reports use.
        let file = SourceFile { path: self.display(path), text: self.sources.read(path)? };
        let project = Project::new([file]);
        let file = project.ids().next()?;
        Some(Source { analysis: Rc::new(Analysis::new(project)), file })
    }

    pub(crate) fn display(&self, path: &str) -> String {
        self.sources.display(path)
    }
}
