//! The program's files: where their text comes from, and each of them parsed once.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use caulk_core::Diagnostic;
use caulk_python::Module;

/// Where the text of the program's files comes from.
pub trait Sources {
    /// Text of a file by the name that the program's code objects have; `None` where it cannot be read.
    fn read(&self, path: &str) -> Option<String>;
    /// The name as reports write it: relative to where caulk was started, when below it.
    fn display(&self, path: &str) -> String;
    /// Leak patterns that source alone shows in the projects of these files, under the names that reports write.
    fn patterns(&self, files: &BTreeSet<String>) -> Vec<Diagnostic>;
}

/// The program's files, each parsed once.
pub(crate) struct Files<'a> {
    sources: &'a dyn Sources,
    parsed: RefCell<HashMap<String, Option<Rc<Module>>>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, parsed: RefCell::default() }
    }

    pub(crate) fn module(&self, path: &str) -> Option<Rc<Module>> {
        let mut parsed = self.parsed.borrow_mut();
        let entry = parsed.entry(path.to_owned());
        // Edits carry the name that reports use.
        let parse = || Some(Rc::new(Module::parse(&self.display(path), &self.sources.read(path)?)));
        entry.or_insert_with(parse).clone()
    }

    pub(crate) fn display(&self, path: &str) -> String {
        self.sources.display(path)
    }
}
