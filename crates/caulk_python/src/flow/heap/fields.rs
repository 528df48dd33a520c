//! What an object holds under names: a few for most objects, thousands for some.

use rustc_hash::FxHashMap;

use crate::flow::symbols::Symbol;
use crate::flow::value::Value;

/// From so many on, finding the place of a new one costs more than a table does.
const MANY: usize = 64;

/// Values under names.
#[derive(Debug, Clone)]
pub struct Fields(Repr);

#[derive(Debug, Clone)]
enum Repr {
    /// In order of their names.
    Few(Vec<(Symbol, Value)>),
    Many(FxHashMap<Symbol, Value>),
}

impl Default for Fields {
    fn default() -> Self {
        Self(Repr::Few(Vec::new()))
    }
}

impl Fields {
    /// The value under a name.
    pub fn get(&self, name: Symbol) -> Option<&Value> {
        match &self.0 {
            Repr::Few(few) => {
                few.binary_search_by_key(&name, |(name, _)| *name).ok().map(|position| &few[position].1)
            }
            Repr::Many(many) => many.get(&name),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Few(few) => few.len(),
            Repr::Many(many) => many.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them. The order is the same in every run.
    pub fn iter(&self) -> impl Iterator<Item = (&Symbol, &Value)> {
        let (few, many) = match &self.0 {
            Repr::Few(few) => (Some(few), None),
            Repr::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flatten().map(|(name, value)| (name, value));
        few.chain(many.into_iter().flatten())
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.iter().map(|(_, value)| value)
    }

    /// The value under a name; nothing where there was none.
    pub(super) fn slot(&mut self, name: Symbol) -> &mut Value {
        if self.len() == MANY
            && let Repr::Few(few) = &mut self.0
        {
            self.0 = Repr::Many(few.drain(..).collect());
        }
        match &mut self.0 {
            Repr::Many(many) => many.entry(name).or_insert(Value::NOTHING),
            Repr::Few(few) => {
                let position =
                    few.binary_search_by_key(&name, |(name, _)| *name).unwrap_or_else(|position| {
                        if few.len() == few.capacity() {
                            // Doubling would leave half of all memory unused: most objects have two or three.
                            few.reserve_exact((few.len() / 2).max(2));
                        }
                        few.insert(position, (name, Value::NOTHING));
                        position
                    });
                &mut few[position].1
            }
        }
    }
}
