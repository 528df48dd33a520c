//! Imports: of the project's files, else of libraries.

use ruff_python_ast as ast;

use crate::flow::machine::Machine;
use crate::flow::machine::frame::Frame;
use crate::flow::value::Value;
use crate::project::FileId;

impl<'p> Machine<'p> {
    pub(super) fn import(&mut self, f: &mut Frame, import: &'p ast::StmtImport) {
        for alias in &import.names {
            let dotted = alias.name.as_str();
            let (bound, name) = if let Some(bound) = &alias.asname {
                (bound.as_str(), dotted)
            } else {
                let first = dotted.split('.').next().unwrap_or(dotted);
                (first, first)
            };
            let value = self.imported(f, name);
            let symbol = self.symbols.intern(bound);
            self.set_name(f, symbol, value);
        }
    }

    /// The module of a dotted name: the project's, else a library's.
    pub(super) fn imported(&mut self, f: &Frame, name: &str) -> Value {
        match self.project.module(f.file, name) {
            Some(file) => Value::object(self.module_object(file)),
            None => Value::object(self.external(name)),
        }
    }

    pub(super) fn import_from(&mut self, f: &mut Frame, import: &'p ast::StmtImportFrom) {
        let module = import.module.as_ref().map_or("", ast::Identifier::as_str);
        let file = if import.level > 0 {
            self.project.relative(f.file, import.level, module)
        } else {
            self.project.module(f.file, module)
        };
        for alias in &import.names {
            let name = alias.name.as_str();
            if name == "*" {
                if let Some(file) = file {
                    self.import_all(f, file);
                }
                continue;
            }
            let value = match file {
                Some(file) => self.member_of_module(f, file, import.level, module, name),
                None => self.member_of_folder(f, import.level, module, name),
            };
            let bound = self.symbols.intern(alias.asname.as_ref().unwrap_or(&alias.name).as_str());
            self.set_name(f, bound, value);
        }
    }

    pub(super) fn member_of_module(
        &mut self,
        f: &Frame,
        file: FileId,
        level: u32,
        module: &str,
        name: &str,
    ) -> Value {
        let symbol = self.symbols.intern(name);
        let object = self.module_object(file);
        if let Some(known) = self.heap.field(object, symbol) {
            return known;
        }
        match self.project.submodule(f.file, level, module, name) {
            Some(file) => Value::object(self.module_object(file)),
            // Not run yet.
            None => Value::NOTHING,
        }
    }

    /// A folder of the project without `__init__.py` is a package, too, that holds modules alone; else it is a library's.
    fn member_of_folder(&mut self, f: &Frame, level: u32, module: &str, name: &str) -> Value {
        match self.project.submodule(f.file, level, module, name) {
            Some(file) => Value::object(self.module_object(file)),
            None if level > 0 => Value::UNKNOWN,
            None => Value::object(self.external(&format!("{module}.{name}"))),
        }
    }

    pub(super) fn import_all(&mut self, f: &mut Frame, file: FileId) {
        let object = self.module_object(file);
        if Some(object) == f.variables {
            return;
        }
        let mine = self.module_object(f.file);
        let fields: Vec<_> =
            self.heap.get(object).fields.iter().map(|(name, value)| (*name, *value)).collect();
        for (name, value) in fields {
            self.heap.set_field(mine, name, value);
        }
    }
}
