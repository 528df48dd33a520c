//! Python source, as far as leaks need it. Text in, values out: knows no files, processes or clocks; no input makes it panic.
//!
//! Two ways to look at it:
//! - [`Module`] is one file: functions, the places where containers grow, what bounds them, and edits. `caulk run` asks it
//!   for the lines that were seen at run time. Names are resolved by Python's rules inside that file (through `self`,
//!   aliases, bound methods, properties and helper functions); other files are not looked at.
//! - [`Analysis`] is a whole [`Project`], run in the abstract: calls are followed across files with the values that go in.
//!   `caulk check` asks it, through the facts in [`program`]: what grows, in which loops, what goes in, what holds it.

mod analysis;
mod bind;
mod collect;
mod depth;
mod edit;
mod facts;
mod fixes;
mod flow;
mod imports;
mod index;
mod library;
mod likely;
mod limit;
mod loads;
mod module;
mod path;
mod project;
mod proof;
mod query;
mod resolve;
mod sites;
mod text;
mod value;

pub use analysis::Analysis;
pub use depth::{MAX_BYTES, Unparsed, parse, with_room};
pub use edit::apply;
pub use facts::{Bound, BoundKind, Facts, Fed, KeyFact, Window};
pub use module::Module;
pub use project::{FileId, Location, Parsed, Project, SourceFile, Span};
pub use proof::detaches_safely;
pub use sites::{Call, Creation, Decorated, GrowKind, GrowSite, Holder, Loop, Owner, Spot, Statement};
pub use value::Value;

/// Facts about a whole program, as [`Analysis`] finds them.
pub mod program {
    pub use crate::analysis::{
        ApplicationFact, BindFact, CallFact, CarryCase, CarryFact, Contents, GrowthCase, GrowthFact, Holder,
        MemoCall, MemoFact,
    };
    pub use crate::flow::event::{Growth, Guards, Loop, LoopKind, Place, Release, Root};
    pub use crate::flow::heap::{Maker, Object, Shape};
    pub use crate::flow::ids::{ClassId, FunctionId, LoopId, ObjectId, OriginId, PlaceId};
    pub use crate::flow::lifetime::{Chain, Duration, Released};
    pub use crate::flow::run::{ClassFact, FunctionFact};
    pub use crate::flow::symbols::Symbol;
    pub use crate::flow::value::{Few, Kinds, Literal, Traits, Value};
}
