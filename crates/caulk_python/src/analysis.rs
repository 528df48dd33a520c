//! What a project does with memory over time: what grows, how often, for how long, and what goes in.

use crate::project::Project;

/// The result of looking at a whole project.
#[derive(Debug)]
pub struct Analysis {
    project: Project,
}

impl Analysis {
    /// Looks at all files of a project together.
    pub fn new(project: Project) -> Self {
        Self { project }
    }

    /// The files.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Files that could not be read whole, or took more than their budget; for people.
    pub fn problems(&self) -> &[String] {
        self.project.problems()
    }

    /// Why nothing is reported at a line: what the analysis knows of it.
    pub fn silence(&self, _path: &str, _line: u32) -> Vec<String> {
        Vec::new()
    }
}
