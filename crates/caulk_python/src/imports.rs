//! Which files of a project belong to a program: what its scripts import, directly or not.

use std::collections::BTreeSet;

use ruff_python_ast::Stmt;
use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};

use crate::project::{FileId, Project};

impl Project {
    /// Some files, what they import, and what that imports in turn; wherever the imports stand, in functions too. What is
    /// imported by a name made at run time is not among them.
    pub fn imported_by(&self, files: impl IntoIterator<Item = FileId>) -> BTreeSet<FileId> {
        let mut found = BTreeSet::new();
        let mut open: Vec<FileId> = files.into_iter().collect();
        while let Some(file) = open.pop() {
            if found.insert(file) {
                let mut imports = Imports { project: self, file, found: &mut open };
                imports.visit_body(&self.file(file).tree.body);
            }
        }
        found
    }
}

struct Imports<'a> {
    project: &'a Project,
    file: FileId,
    found: &'a mut Vec<FileId>,
}

impl Imports<'_> {
    /// `a.b.c` imports `a` and `a.b` as well.
    fn add(&mut self, level: u32, name: &str) {
        let ends = name.match_indices('.').map(|(end, _)| end).chain([name.len()]);
        let find = |end| match level {
            0 => self.project.module(self.file, &name[..end]),
            _ => self.project.relative(self.file, level, &name[..end]),
        };
        self.found.extend(ends.filter_map(find));
    }
}

impl StatementVisitor<'_> for Imports<'_> {
    fn visit_stmt(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.add(0, &alias.name);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                let dot = if module.is_empty() { "" } else { "." };
                for alias in &import.names {
                    self.add(import.level, &format!("{module}{dot}{}", alias.name));
                }
                self.add(import.level, module);
            }
            _ => walk_stmt(self, statement),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::SourceFile;

    fn check(files: &[(&str, &str)], script: &str, imported: &[&str]) {
        let source = |(path, text): &(&str, &str)| SourceFile { path: (*path).into(), text: (*text).into() };
        let project = Project::new(files.iter().map(source));
        let found = project.imported_by(project.find(script));
        let names: Vec<&str> = found.iter().map(|file| project.file(*file).path()).collect();
        assert_eq!(names, imported);
    }

    #[test]
    fn scripts_side_by_side_do_not_belong_together() {
        check(&[("a.py", "import os, torch"), ("b.py", "import a")], "a.py", &["a.py"]);
        check(&[("a.py", "import os, torch"), ("b.py", "import a")], "b.py", &["a.py", "b.py"]);
    }

    #[test]
    fn imports_count_wherever_they_stand() {
        let text = "def f():\n    if x:\n        import late\nclass C:\n    try:\n        from more import y\n    except E:\n        pass\n";
        check(&[("a.py", text), ("late.py", ""), ("more.py", "")], "a.py", &["a.py", "late.py", "more.py"]);
    }

    #[test]
    fn packages_on_the_way_are_imported_and_rings_end() {
        let files = [
            ("main.py", "import pkg.sub.leaf"),
            ("pkg/__init__.py", "from . import helper"),
            ("pkg/helper.py", "from .sub import leaf"),
            ("pkg/sub/__init__.py", ""),
            ("pkg/sub/leaf.py", "from ... import nothing\nfrom ..helper import x\nimport main"),
            ("pkg/alone.py", ""),
        ];
        let imported =
            ["main.py", "pkg/__init__.py", "pkg/helper.py", "pkg/sub/__init__.py", "pkg/sub/leaf.py"];
        check(&files, "main.py", &imported);
    }
}
