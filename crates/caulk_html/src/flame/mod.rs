//! The heap by stack: wide is much, deep is called later. Machinery is folded, and the user's own frames come first.

mod draw;
mod fold;
mod tree;

pub(crate) use draw::flame;
