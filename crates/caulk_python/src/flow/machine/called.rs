//! A library's function as it is called.

use ruff_python_ast as ast;

use crate::flow::machine::calls::Given;
use crate::flow::value::{Traits, Value};

/// A library's function as it is called.
#[derive(Clone, Copy)]
pub(super) struct Called<'c, 'p> {
    /// Whose method; nothing of a function.
    pub receiver: &'c Value,
    pub given: &'c Given,
    /// Canonical dotted name.
    pub name: &'c str,
    pub call: &'p ast::ExprCall,
}

impl Called<'_, '_> {
    /// What it is about: the receiver, else the first argument.
    pub(super) fn subject(&self) -> Value {
        if self.receiver.is_nothing() { self.given.first() } else { *self.receiver }
    }

    /// What matters about everything that goes in.
    pub(super) fn inherited(&self) -> Traits {
        self.given.all().fold(self.receiver.traits, |traits, value| traits.with(value.traits))
    }
}
