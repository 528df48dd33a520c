//! Metaclasses of the project: their work on each class, and on each of its objects.

use ruff_python_ast as ast;

use crate::flow::heap::Shape;
use crate::flow::ids::{ClassId, ObjectId};
use crate::flow::machine::Machine;
use crate::flow::machine::calls::Given;
use crate::flow::machine::frame::Frame;
use crate::flow::value::Value;

/// Classes that are searched for one with a metaclass.
const MAX_BASES: usize = 24;

impl<'p> Machine<'p> {
    /// Runs the `__init__` of a class's metaclass on the class that was just defined.
    pub(super) fn begin_class(
        &mut self,
        f: &mut Frame,
        id: ClassId,
        class: ObjectId,
        definition: &'p ast::StmtClassDef,
    ) {
        let keyword = definition.arguments.as_ref().and_then(|arguments| arguments.find_keyword("metaclass"));
        if let Some(keyword) = keyword {
            let value = self.eval(f, &keyword.value);
            let meta = value.objects.iter().find_map(|object| match self.heap.shape(object) {
                Shape::Class(meta) => Some(meta),
                _ => None,
            });
            if let Some(meta) = meta
                && self.metaclasses.insert(id, meta) != Some(meta)
            {
                self.heap.changed = true;
            }
        }
        let Some(init) = self.metaclass_member(id, "__init__") else { return };
        let name = self.symbols.at(&definition.name.node_index, definition.name.as_str());
        let given = [Value::text(name), Value::UNKNOWN, Value::UNKNOWN];
        self.call_function(f, init, Some(class), &given, &[], definition);
    }

    /// Runs the `__call__` of a class's metaclass for an object that was just made. It may keep the object; what it gives is
    /// taken to be the object.
    pub(super) fn call_metaclass(
        &mut self,
        f: &mut Frame,
        id: ClassId,
        class: ObjectId,
        made: Value,
        given: &Given,
        call: &'p ast::ExprCall,
    ) {
        let Some(function) = self.metaclass_member(id, "__call__") else { return };
        self.heap.set_field(class, self.names.made, made);
        self.call_function(f, function, Some(class), &given.positional, &given.named, call);
    }

    /// `super().__call__(..)` in a metaclass: an object of the class.
    pub(super) fn call_of_type(&self, receiver: &Value, attribute: &ast::ExprAttribute) -> Option<Value> {
        if attribute.attr.as_str() != "__call__" {
            return None;
        }
        receiver.objects.iter().find_map(|object| match self.heap.shape(object) {
            Shape::Super(_, class) if matches!(self.heap.shape(class), Shape::Class(_)) => {
                self.heap.field(class, self.names.made)
            }
            _ => None,
        })
    }

    /// A method of the class's metaclass, or of that of one of its bases.
    fn metaclass_member(&mut self, id: ClassId, name: &str) -> Option<ObjectId> {
        if self.metaclasses.is_empty() {
            return None;
        }
        let (mut open, mut seen) = (vec![id], Vec::new());
        while let Some(class) = open.pop() {
            if let Some(&meta) = self.metaclasses.get(&class) {
                let name = self.symbols.intern(name);
                let member = self.class_member(meta, name)?;
                let mut functions = member.objects.iter();
                return functions.find(|object| matches!(self.heap.shape(*object), Shape::Function(..)));
            }
            if seen.len() < MAX_BASES && !seen.contains(&class) {
                seen.push(class);
                open.extend(self.bases_of(class));
            }
        }
        None
    }
}
