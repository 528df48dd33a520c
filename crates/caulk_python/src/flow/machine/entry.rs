//! What goes into a container.

use ruff_python_ast::Expr;

use crate::flow::value::Value;

/// What goes into a container.
#[derive(Clone, Copy)]
pub(super) struct Entry<'e> {
    pub(super) value: Value,
    pub(super) key: Value,
    /// The expression that is stored, where there is one.
    pub(super) stored: Option<&'e Expr>,
}
