//! What a program does with values over time: an abstract interpreter over the syntax trees of a whole project.
//!
//! Everything is run once in the abstract, from the outside in: module bodies, what frameworks call, then what nobody
//! calls. Calls are followed with the values that go in, remembered by these, and bounded in number. What happens (a
//! list grows, an attribute is bound anew, a backward pass) is an [`event::Event`] with the loops around it, relative to
//! the function it happens in; [`lifetime`] then puts the loops of the callers in front.

pub(crate) mod event;
pub(crate) mod heap;
pub(crate) mod ids;
mod joined;
pub(crate) mod lifetime;
pub(crate) mod machine;
pub(crate) mod run;
pub(crate) mod scopes;
pub(crate) mod symbols;
mod syntax;
pub(crate) mod value;
