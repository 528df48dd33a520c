//! Calls of what libraries have: where, with what, in which loops; and things that are made and have to be given back.

use crate::analysis::Analysis;
use crate::flow::event::{Guards, Root, What};
use crate::flow::heap::Shape;
use crate::flow::ids::{FunctionId, LoopId, ObjectId};
use crate::flow::lifetime::{Chain, Duration};
use crate::flow::symbols::Symbol;
use crate::flow::value::{Kinds, Value};
use crate::project::Location;

/// A library's function that is called.
#[derive(Debug, Clone)]
pub struct CallFact {
    /// Canonical dotted name.
    pub name: Symbol,
    /// The call.
    pub at: Location,
    /// The statement.
    pub statement: Location,
    /// The function around it.
    pub function: FunctionId,
    /// Whose method.
    pub receiver: Value,
    /// The first argument.
    pub argument: Value,
    /// All arguments, by name where they have one.
    pub given: Vec<(Option<Symbol>, Value)>,
    /// What it gives.
    pub result: Value,
    /// The loops around it, with those of callers.
    pub around: Chain,
    /// Conditions around it.
    pub guards: Guards,
    /// So many of the loops around it do not repeat it.
    pub(crate) once: usize,
    /// Why it is run at all.
    pub root: Root,
    /// Nobody in the project calls the function around it.
    pub is_left_to_users: bool,
}

impl CallFact {
    /// The argument at a position or with a name.
    pub fn argument(&self, analysis: &Analysis, position: Option<usize>, name: &str) -> Option<Value> {
        let positional = self.given.iter().filter(|(name, _)| name.is_none());
        let by_position = position.and_then(|position| positional.map(|(_, value)| *value).nth(position));
        by_position.or_else(|| {
            let name = analysis.symbol(name)?;
            self.given.iter().find(|(known, _)| *known == Some(name)).map(|(_, value)| *value)
        })
    }
}

impl Analysis {
    /// Every call of a library's function, by its canonical name, once for every way there.
    pub fn calls(&self, names: &[&str]) -> Vec<CallFact> {
        let wanted: Vec<Symbol> = names.iter().filter_map(|name| self.symbol(name)).collect();
        self.calls_that(|name, _| wanted.contains(&name))
    }

    /// The same of functions that give something back, without those that an exception follows: a run without one has not
    /// come by.
    pub fn releasing_calls(&self, names: &[&str]) -> Vec<CallFact> {
        let mut calls = self.calls(names);
        calls.retain(|call| !call.guards.has(Guards::RAISES));
        calls
    }

    /// Every noted call of a library's function that gives something of these kinds, once for every way there.
    pub fn calls_giving(&self, kinds: Kinds) -> Vec<CallFact> {
        self.calls_that(|_, result| result.kinds.has(kinds))
    }

    fn calls_that(&self, fits: impl Fn(Symbol, &Value) -> bool) -> Vec<CallFact> {
        let mut found = Vec::new();
        for (id, number) in &self.ran().noted {
            let activation = &self.ran().run.activations[id.0 as usize];
            let event = &activation.events[*number as usize];
            let What::Library { name, receiver, argument, given, result } = event.what else { continue };
            if !fits(name, self.ran().run.values.get(result)) {
                continue;
            }
            let [receiver, argument, result] =
                [receiver, argument, result].map(|value| *self.ran().run.values.get(value));
            let given: Vec<_> = activation
                .given(given)
                .iter()
                .map(|(name, value)| (*name, *self.ran().run.values.get(*value)))
                .collect();
            for way in &self.ran().lifetimes.ways[id.0 as usize] {
                let mut around = way.chain.clone();
                around.extend(activation.loops(event));
                found.push(CallFact {
                    name,
                    at: event.at,
                    statement: event.statement,
                    function: activation.function,
                    receiver,
                    argument,
                    given: given.clone(),
                    result,
                    around,
                    guards: way.guards_at(activation.loops(event), event),
                    once: way.once_at(event),
                    root: way.root,
                    is_left_to_users: way.root == Root::Uncalled && way.from.is_none(),
                });
            }
        }
        found
    }

    /// Objects of libraries that a value refers to, directly or in containers, attributes and variables.
    pub fn resources(&self, value: &Value) -> Vec<ObjectId> {
        const MOST: usize = 64;
        let mut found = Vec::new();
        let mut seen: Vec<ObjectId> = value.objects.iter().collect();
        let mut next = 0;
        while let Some(&id) = seen.get(next) {
            next += 1;
            let object = self.object(id);
            match object.shape {
                Shape::Foreign(_) => found.push(id),
                Shape::Module(_) | Shape::Class(_) | Shape::External(_) => {}
                _ => {
                    for inner in object.fields.values().chain([&object.elements]) {
                        for id in inner.objects.iter() {
                            if seen.len() < MOST && !seen.contains(&id) {
                                seen.push(id);
                            }
                        }
                    }
                }
            }
        }
        found
    }

    /// For how long what a call makes piles up, when it is given back in these loops.
    pub fn piling(&self, made: &CallFact, given_back: impl Iterator<Item = Chain>) -> Duration {
        let shared = |other: &[LoopId]| {
            made.around.iter().zip(other).take_while(|(mine, theirs)| mine == theirs).count()
        };
        let once = if made.guards.once() { made.around.len() } else { made.once };
        let start = given_back.map(|chain| shared(&chain)).fold(once, usize::max).min(made.around.len());
        Duration {
            growing: made.around[start..].to_vec(),
            around: made.around.clone(),
            guards: made.guards,
            root: made.root,
            released_by: None,
            of_call: false,
        }
    }
}
