//! One file of a project of its own, to be asked about its lines.

use caulk_core::Problem;
use caulk_python::{Analysis, Lines, Project, SourceFile};

/// A file, with the analysis that answers for it.
pub(crate) struct File(Analysis, String);

impl File {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        // In place of a text that nobody writes, and that is not parsed, stands an empty one.
        let files = [(path, text), ("empty.py", "")];
        let file = |(path, text): (&str, &str)| SourceFile { path: path.into(), text: text.into() };
        Self(Analysis::new(Project::new(files.map(file))), path.into())
    }

    /// What could not be parsed.
    pub(crate) fn problems(&self) -> &[Problem] {
        self.0.project().problems()
    }

    /// Its lines.
    #[expect(clippy::expect_used, reason = "a test fails by panicking")]
    pub(crate) fn lines(&self) -> Lines<'_> {
        let project = self.0.project();
        let file = project.find(&self.1).or_else(|| project.ids().next());
        self.0.lines(file.expect("it was parsed"))
    }
}
