//! `DataLoader(rows, collate_fn=..)`: what is called for every batch, in the workers if there are any.

use ruff_python_ast as ast;

use crate::flow::event::Root;
use crate::flow::heap::Shape;
use crate::flow::ids::{LoopId, ObjectId};
use crate::flow::machine::calls::Given;
use crate::flow::machine::frame::Frame;
use crate::flow::machine::{Collation, Machine};
use crate::flow::scopes::located;
use crate::flow::value::{Kinds, Literal, Value};

const IN_WORKERS: &[LoopId] = &[LoopId::EPOCHS, LoopId::SAMPLES];
const HERE: &[LoopId] = &[LoopId::EPOCHS, LoopId::STEPS];

impl<'p> Machine<'p> {
    /// Notes what a `DataLoader` calls for every batch.
    pub(super) fn note_collation(&mut self, f: &mut Frame, given: &Given, call: &'p ast::ExprCall) {
        let named = |machine: &Self, wanted: &str| {
            let found = given.named.iter().find(|(name, _)| machine.symbols.name(*name) == wanted);
            found.map(|(_, value)| *value)
        };
        let Some(collate) = named(self, "collate_fn") else { return };
        let in_workers = named(self, "num_workers").is_some_and(|workers| workers.literal != Literal::Int(0));
        let mut sample = Value::NOTHING;
        // Nobody asks for a sample here.
        let noted = f.events.len();
        for dataset in given.first().objects.iter() {
            let index = Value::of(Kinds::NUMBER);
            if let Some(item) = self.call_method(f, dataset, self.names.getitem, &[index], call) {
                sample = sample.join(&item);
            }
        }
        f.events.truncate(noted);
        let list = self.heap.object(Shape::List, Some(located(f.file, call)), f.maker);
        self.heap.add_element(list, if sample.is_nothing() { Value::UNKNOWN } else { sample });
        let collation = Collation { samples: Value::object(list), in_workers };
        self.collates.extend(collate.objects.iter().map(|object| (object, collation)));
    }

    /// Whether a function puts batches together: it is called in another way than others that are handed over.
    pub(super) fn collates(&self, object: ObjectId) -> bool {
        self.collates.contains_key(&object)
    }

    /// Runs what puts batches together.
    pub(super) fn run_collations(&mut self) {
        let mut collates: Vec<(ObjectId, Collation)> =
            self.collates.iter().map(|(object, collation)| (*object, *collation)).collect();
        collates.sort_unstable_by_key(|(object, _)| *object);
        for (object, Collation { samples, in_workers }) in collates {
            let root = Root::Framework(if in_workers { IN_WORKERS } else { HERE });
            match self.heap.shape(object) {
                Shape::Function(id, closure) => self.run_function(object, id, closure, &[samples], root),
                Shape::Method(function, receiver) => {
                    self.run_given(function, receiver, &[samples], root, false);
                }
                Shape::Instance(class) => {
                    if let Some(function) = self.method(class, "__call__") {
                        self.run_given(function, object, &[samples], root, false);
                    }
                }
                _ => {}
            }
        }
    }
}
