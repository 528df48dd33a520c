//! Functions whose results are remembered by their arguments: with what and how often they are called.

use crate::analysis::Analysis;
use crate::flow::event::Root;
use crate::flow::ids::{FunctionId, ObjectId};
use crate::flow::lifetime::Chain;
use crate::flow::value::Value;
use crate::project::Location;

/// A function under `functools.lru_cache` or `functools.cache`.
#[derive(Debug, Clone)]
pub struct MemoFact {
    /// The decorator.
    pub decorator: Location,
    /// The function.
    pub function: FunctionId,
    /// Nothing is ever dropped.
    pub unbounded: bool,
    /// Every way in which it is called.
    pub calls: Vec<MemoCall>,
}

/// A way in which such a function is called.
#[derive(Debug, Clone)]
pub struct MemoCall {
    /// Whose method it is.
    pub receiver: Option<ObjectId>,
    /// The other arguments.
    pub arguments: Vec<Value>,
    /// The loops around the call, with those of callers.
    pub around: Chain,
    /// Why it is run at all.
    pub root: Root,
}

impl Analysis {
    /// Every function that remembers its results.
    pub fn memos(&self) -> Vec<MemoFact> {
        let mut found = Vec::new();
        for (at, function) in self.ran().run.functions.iter().enumerate() {
            let Some(memo) = function.memo else { continue };
            let function = FunctionId(at as u32);
            found.push(MemoFact {
                decorator: memo.decorator,
                function,
                unbounded: memo.unbounded,
                calls: self.memo_calls(function),
            });
        }
        found
    }

    fn memo_calls(&self, function: FunctionId) -> Vec<MemoCall> {
        let mut calls = Vec::new();
        for (activation, ways) in self.ran().run.activations.iter().zip(&self.ran().lifetimes.ways) {
            if activation.function != function {
                continue;
            }
            let own = usize::from(activation.receiver.is_some());
            for way in ways.iter().filter(|way| way.root != Root::Test) {
                calls.push(MemoCall {
                    receiver: activation.receiver,
                    arguments: activation.parameters.iter().skip(own).copied().collect(),
                    around: way.chain.clone(),
                    root: way.root,
                });
            }
        }
        calls
    }
}
