//! What objects of libraries keep of what their methods are given: a list or dict in the object, which nobody sees.

use ruff_python_ast as ast;

use crate::flow::event::{Growth, Release, What};
use crate::flow::heap::Shape;
use crate::flow::ids::ObjectId;
use crate::flow::machine::Machine;
use crate::flow::machine::calls::Given;
use crate::flow::machine::entry::Entry;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::located;
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Value};
use crate::library::Keeper;

impl Machine<'_> {
    /// Under this name an object holds its list.
    pub(crate) fn kept_name(&self) -> Symbol {
        self.names.kept
    }

    /// Gives an object of a library its list, if its class has one.
    pub(super) fn make_keeper(&mut self, f: &mut Frame, object: ObjectId, name: &str, call: &ast::ExprCall) {
        if let Some(keeper) = Keeper::made_by(name) {
            f.event(What::Birth(object), located(f.file, call));
            let shape = if keeper.is_keyed() { Shape::Dict } else { Shape::List };
            let kept = self.container(f, shape, call);
            if keeper.is_keyed() {
                self.heap.set_looked_up(kept);
            }
            self.heap.set_field(object, self.names.kept, Value::object(kept));
        }
    }

    /// A method of such an object is called: its arguments go into the list, or something is taken out.
    pub(super) fn keep(
        &mut self,
        f: &mut Frame,
        object: ObjectId,
        class: &str,
        attribute: &ast::ExprAttribute,
        given: &Given,
    ) {
        let (Some(keeper), Some(kept)) = (Keeper::made_by(class), self.heap.field(object, self.names.kept))
        else {
            return;
        };
        let (method, owner) = (attribute.attr.as_str(), &*attribute.value);
        for list in kept.objects.iter() {
            if keeper.keeps(method) {
                let value = given.all().fold(Value::NOTHING, Value::join);
                self.grow(f, list, Growth::Append, Entry { value, key: Value::NOTHING, stored: None }, owner);
            } else if keeper.keeps_keyed(method) {
                // What it makes for a key is some objects with their numbers.
                let value = Value::of(Kinds::ARRAY);
                for key in given.all() {
                    self.grow(f, list, Growth::Store, Entry { value, key: *key, stored: None }, owner);
                }
            } else if keeper.gives_back(method) {
                f.event(What::Release { object: list, how: Release::Clear }, located(f.file, owner));
            }
        }
    }
}
