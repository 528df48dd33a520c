//! One file of a project, as lines: what stands where, and what the analysis knows of it.

use crate::analysis::Analysis;
use crate::index::Index;
use crate::indexed::Indexed;
use crate::project::FileId;
use crate::resolve::{Meaning, Resolver};
use crate::text::Source;

/// A file, to be asked about its lines and names.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    path: &'a str,
    pub(crate) source: &'a Source,
    pub(crate) index: &'a Index,
    pub(crate) resolver: &'a Resolver,
    /// What every operation's path may stand for.
    pub(crate) meanings: &'a [Vec<Meaning>],
}

impl Analysis {
    /// The lines of a file. They are indexed when they are first asked for.
    pub fn lines(&self, file: FileId) -> Lines<'_> {
        let parsed = self.project().file(file);
        let Indexed { index, resolver, meanings } = self.indexed(file);
        Lines { path: parsed.path(), source: &parsed.source, index, resolver, meanings }
    }
}

impl<'a> Lines<'a> {
    /// Path of the file, as edits name it.
    pub fn path(&self) -> &'a str {
        self.path
    }

    /// Text of a line, without its end.
    pub fn line(&self, line: u32) -> Option<&'a str> {
        self.source.line(line)
    }
}
