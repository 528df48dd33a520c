//! What `caulk top` shows: runs that go on, from what their supervisors record.

mod find;
mod keys;
mod machine;
mod text;
mod view;

pub(crate) use self::find::{Running, running};
pub(crate) use self::keys::listen;
pub(crate) use self::machine::Machine;
pub(crate) use self::text::text;
pub(crate) use self::view::View;
