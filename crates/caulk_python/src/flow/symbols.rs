//! Names as numbers.

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

    /// The symbol of a name that was interned before.
    pub(crate) fn find(&self, name: &str) -> Option<Symbol> {
        self.known.get(name).copied()
    }

    /// The name of a symbol.
    pub(crate) fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }
}
