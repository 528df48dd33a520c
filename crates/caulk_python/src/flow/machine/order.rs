//! The order in which bodies of modules run: imported files before those that import them, as in Python. Names of files do
//! not matter, except in circles of imports.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Identifier, Stmt};

use crate::flow::ids::FunctionId;
use crate::project::{FileId, Project};

/// The bodies of all files, which are given in the order of the files.
pub(super) fn import_order(project: &Project, modules: &[FunctionId]) -> Vec<FunctionId> {
    let mut order = Vec::with_capacity(modules.len());
    let mut seen = vec![false; modules.len()];
    for file in project.ids() {
        // Files whose imports are being looked at, with those that are left.
        let mut open: Vec<(FileId, std::vec::IntoIter<FileId>)> = Vec::new();
        let mut next = Some(file);
        loop {
            if let Some(file) = next.filter(|file| !std::mem::replace(&mut seen[file.0 as usize], true)) {
                open.push((file, imports(project, file).into_iter()));
            }
            let Some((file, left)) = open.last_mut() else { break };
            next = left.next();
            if next.is_none() {
                order.push(modules[file.0 as usize]);
                open.pop();
            }
        }
    }
    order
}

/// The files that a file imports when it is imported itself.
fn imports(project: &Project, file: FileId) -> Vec<FileId> {
    let mut imports = Imports { project, file, found: Vec::new() };
    imports.visit_body(&project.file(file).tree().body);
    imports.found
}

struct Imports<'p> {
    project: &'p Project,
    file: FileId,
    found: Vec<FileId>,
}

impl Visitor<'_> for Imports<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            // Run later, or never.
            Stmt::FunctionDef(_) => {}
            Stmt::Import(import) => {
                let files =
                    import.names.iter().filter_map(|alias| self.project.module(self.file, &alias.name));
                self.found.extend(files);
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", Identifier::as_str);
                let whole = match import.level {
                    0 => self.project.module(self.file, module),
                    level => self.project.relative(self.file, level, module),
                };
                let parts = import
                    .names
                    .iter()
                    .filter_map(|alias| self.project.submodule(self.file, import.level, module, &alias.name));
                let found: Vec<FileId> = whole.into_iter().chain(parts).collect();
                self.found.extend(found);
            }
            _ => visitor::walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, _: &Expr) {}
}
