//! Python source, as far as leaks need it. Text in, values out: knows no files, processes or clocks; no input makes it panic.
//!
//! An [`Analysis`] runs a whole [`Project`] in the abstract: calls are followed across files with the values that go in.
//! It answers in two ways:
//! - The facts in [`program`] are of the whole project: what grows, in which loops, what goes in, what holds it. The rules
//!   of `caulk check` ask for them.
//! - [`Lines`] are of one file: which statement stands at a line, where a name grows, what bounds it, how it can be
//!   changed. `caulk run` asks them about the lines that it saw, and rules about the place of a finding.

mod analysis;
mod bind;
mod collect;
mod depth;
mod display;
mod edit;
mod facts;
mod fixes;
mod flow;
mod hint;
mod imports;
mod index;
mod indexed;
mod library;
mod likely;
mod limit;
mod lines;
mod loads;
mod path;
mod project;
mod proof;
mod query;
mod questions;
mod resolve;
mod sites;
mod spot;
mod text;
mod value;

pub use analysis::Analysis;
pub use depth::{MAX_BYTES, Unparsed, parse, with_room};
pub use edit::apply;
pub use facts::{Bound, BoundKind, Facts, Fed, KeyFact, Window};
pub use limit::limit_name;
pub use lines::Lines;
pub use project::{FileId, Location, Parsed, Project, SourceFile, Span};
pub use proof::detaches_safely;
pub use sites::{
    Call, Creation, Decorated, EditTry, GrowKind, GrowSite, Holder, Loop, Owner, Statement, TryKind,
};
pub use spot::Spot;
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
