//! What becomes of autograd graphs: where models are applied, what loops carry, what leaves a function.

use crate::analysis::{Analysis, Holder};
use crate::flow::event::{Place, Root, What};
use crate::flow::heap::Shape;
use crate::flow::ids::{FunctionId, ObjectId, PlaceId};
use crate::flow::lifetime::Chain;
use crate::project::Location;

/// A model that is applied, once for every way there.
#[derive(Debug, Clone)]
pub struct ApplicationFact {
    /// The call.
    pub at: Location,
    /// The statement.
    pub statement: Location,
    /// The function around it.
    pub function: FunctionId,
    /// The loops around it, with those of callers.
    pub around: Chain,
    /// Why it is run at all.
    pub root: Root,
    /// Graphs are recorded there.
    pub recording: bool,
}

impl Analysis {
    /// Every application of a model.
    pub fn applications(&self) -> Vec<ApplicationFact> {
        let mut found = Vec::new();
        for (id, activation, event) in self.events() {
            let What::Forward = event.what else { continue };
            for way in &self.ran().lifetimes.ways[id.0 as usize] {
                let mut around = way.chain.clone();
                around.extend(activation.loops(event));
                found.push(ApplicationFact {
                    at: event.at,
                    statement: event.statement,
                    function: activation.function,
                    around,
                    root: way.root,
                    recording: event.recording,
                });
            }
        }
        found
    }

    /// Whether a function gives back tensors with their graphs, for its callers to use.
    pub fn returns_graph(&self, function: FunctionId) -> bool {
        let activations =
            self.ran().run.activations.iter().filter(|activation| activation.function == function);
        activations.map(|activation| &activation.result).any(|result| self.contents(result).graph.is_some())
    }

    /// Whether an attribute of that name is emptied where it is not known whose it is.
    pub(super) fn is_emptied_elsewhere(&self, object: ObjectId) -> bool {
        matches!(self.holder(object), Holder::Attribute(_, name) if self.ran().run.emptied.contains(&name))
    }

    /// Whether another method that nobody in the project calls, `reset` or `clear`, empties the attribute that holds an
    /// object, or what contains it there: whoever uses the class calls it in time.
    pub(super) fn is_left_to_users(&self, object: ObjectId, growing: FunctionId) -> bool {
        if let Shape::Held(_) = self.object(object).shape {
            return self.ran().lifetimes.is_cut_by_users(&self.ran().run, object, growing);
        }
        let around = self.ran().run.containers.get(&object).into_iter().flatten().copied();
        let made: Vec<_> = around.chain([object]).filter_map(|object| self.object(object).at).collect();
        let mut left = self.ran().lifetimes.left_to_users.iter();
        matches!(self.holder(object), Holder::Attribute(..))
            && left.any(|(at, by)| made.contains(at) && *by != growing)
    }

    /// What holds what a place holds.
    pub fn holder_of(&self, place: PlaceId) -> Holder {
        let Place::Field(object, name) = self.place(place) else { return Holder::Local };
        self.field_of(object, name).unwrap_or_else(|| self.holder(object))
    }
}
