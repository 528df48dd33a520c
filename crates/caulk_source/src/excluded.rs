//! What is left out of a project unless it is named: other people's code, build results, what git ignores.

use camino::Utf8Path;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::ignored;

/// Folders that hold nothing written in this project.
const FOLDERS: [&str; 21] = [
    "__pycache__",
    "__pypackages__",
    ".bzr",
    ".caulk",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
];

/// Whether a folder of this name is left out.
pub(crate) fn by_name(folder: &str) -> bool {
    FOLDERS.contains(&folder)
}

/// Whether git ignores a path, or a folder around it, by the `.gitignore` files from the repository's top down to it.
/// Outside of a repository all folders above count. A file of rules that cannot be read has none: whoever walks through
/// the folder says so.
pub(crate) fn by_git(path: &Utf8Path) -> bool {
    let mut bytes = 0;
    for folder in path.ancestors().skip(1) {
        let file = folder.join(".gitignore");
        let mut load = |file, folder| ignored::load(file, folder, &mut bytes, &mut Vec::new());
        if let Some(rules) = load(file.as_std_path(), folder.as_std_path()) {
            let found = rules.matched_path_or_any_parents(path, path.is_dir());
            if !found.is_none() {
                return found.is_ignore();
            }
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    false
}

/// Patterns of the user, as `.gitignore` writes them, relative to the project.
#[derive(Debug, Clone)]
pub struct Excludes(Gitignore);

impl Excludes {
    /// Compiles patterns; the error names the pattern that is none.
    ///
    /// # Errors
    /// What is wrong with a pattern, for people.
    pub fn new(root: &Utf8Path, patterns: &[String]) -> Result<Self, String> {
        let mut builder = GitignoreBuilder::new(root);
        for pattern in patterns {
            builder
                .add_line(None, pattern)
                .map_err(|error| format!("`{pattern}` is no pattern of files: {error}"))?;
        }
        builder.build().map(Self).map_err(|error| error.to_string())
    }

    /// Whether a path below the project is left out, by itself or by a folder around it.
    pub fn matches(&self, path: &Utf8Path, folder: bool) -> bool {
        path.starts_with(self.0.path()) && self.0.matched_path_or_any_parents(path, folder).is_ignore()
    }
}
