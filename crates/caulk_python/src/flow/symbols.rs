//! Names as numbers.

use ruff_python_ast::{AtomicNodeIndex, NodeIndex};
use rustc_hash::FxHashMap;

/// An interned name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(u32);

/// All names of an analysis.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    known: FxHashMap<Box<str>, Symbol>,
    names: Vec<Box<str>>,
}

impl Symbols {
    /// The symbol of a name.
    pub(crate) fn intern(&mut self, name: &str) -> Symbol {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let symbol = Symbol(self.names.len() as u32);
        self.names.push(name.into());
        self.known.insert(name.into(), symbol);
        symbol
    }

    /// The symbol of the name at a node of a syntax tree, which remembers it. One analysis looks at a tree, no other.
    pub(crate) fn at(&mut self, node: &AtomicNodeIndex, name: &str) -> Symbol {
        if let Some(known) = node.load().as_u32() {
            debug_assert_eq!(&*self.names[known as usize], name, "the tree is another analysis's");
            return Symbol(known);
        }
        let symbol = self.intern(name);
        node.set(NodeIndex::from(symbol.0));
        symbol
    }

    /// The symbol of a name that was interned before.
    pub(crate) fn find(&self, name: &str) -> Option<Symbol> {
        self.known.get(name).copied()
    }

    /// The name of a symbol.
    pub(crate) fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }
}
