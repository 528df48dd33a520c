//! What happens in a function, with the loops around it inside that function.

use crate::flow::ids::{ActivationId, FunctionId, LoopId, ObjectId, PlaceId, ValueId};
use crate::flow::symbols::Symbol;
use crate::flow::value::Value;
use crate::project::Location;

/// How often a loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// Batches of a loader.
    Batches,
    /// Epochs, by the name of what counts.
    Epochs,
    /// Steps or iterations, by the name of what counts or ends it.
    Steps,
    /// Folds of a cross-validation.
    Folds,
    /// A constant number of times.
    Times(u32),
    /// Over layers, parameters, heads: as many as the model has.
    Parts,
    /// Over the elements of something.
    Items,
    /// As long as something holds.
    While,
    /// For ever.
    Forever,
}

/// One loop.
#[derive(Debug, Clone, Copy)]
pub struct Loop {
    /// Its statement; none for a framework's.
    pub at: Option<Location>,
    /// The header: what is iterated, or tested.
    pub header: Option<Location>,
    /// How often it runs.
    pub kind: LoopKind,
    /// That is known from what is gone through, a loader or a large number, and not from a name alone.
    pub counted: bool,
    /// A number in the program bounds its turns: `range(50)`.
    pub at_most: Option<u32>,
    /// The function that it is in; none for a framework's.
    pub function: Option<FunctionId>,
}

/// What stands between a statement and the function's or loop's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Guards(u16);

impl Guards {
    /// Under a condition of any kind.
    pub const CONDITION: Self = Self(1);
    /// ... that compares a length with something.
    pub const LENGTH: Self = Self(2);
    /// ... that is true every so many steps.
    pub const MODULO: Self = Self(4);
    /// ... that is true once: the first step, not initialised yet, a sanity check.
    pub const ONCE: Self = Self(8);
    /// ... that asks whether a key is missing.
    pub const MISSING: Self = Self(16);
    /// Where an exception was caught.
    pub const CAUGHT: Self = Self(32);
    /// Under a debugging or logging switch.
    pub const SWITCH: Self = Self(64);
    /// Where something could be read at all.
    pub const SUCCESS: Self = Self(128);
    /// ... that is true for the steps or epochs that are among some.
    pub const CHOSEN: Self = Self(256);
    /// In a branch that ends with an exception: a run without one was not there.
    pub const RAISES: Self = Self(512);

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in `other`, too.
    #[must_use]
    pub const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether anything of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether what is under them happens once, however often it is come by.
    pub(crate) const fn once(self) -> bool {
        self.has(Self::ONCE) && !self.has(Self::LENGTH)
    }
}

/// How a container grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Growth {
    /// `append`, `appendleft`, `insert`.
    Append,
    /// `extend`, `+=`, slice assignment at the end.
    Extend,
    /// `add` of a set.
    Add,
    /// `d[key] = value`, `setdefault`, `update`.
    Store,
    /// `put` of a queue.
    Put,
    /// `x = x + [..]`, `torch.cat([x, y])`: rebound to something longer.
    Concatenate,
    /// `x = Node(value, x)`: rebound to an object that keeps the one before it.
    Link,
}

/// How a container or place gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Release {
    /// `clear()`.
    Clear,
    /// An element leaves: `pop`, `popleft`, `remove`, `del x[i]`, `get` of a queue.
    Remove,
    /// Cut to a part of itself.
    Trim,
    /// What holds it is bound to something else.
    Rebind,
}

/// What happens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// An object is made.
    Birth(ObjectId),
    /// A container gets longer.
    Grow { object: ObjectId, how: Growth, value: ValueId, key: ValueId, stored: Option<Location> },
    /// A container gives back.
    Release { object: ObjectId, how: Release },
    /// A place is bound to something made from what it held.
    Carry { place: PlaceId, value: ValueId, augmented: bool },
    /// A place is bound to something else.
    Reset { place: PlaceId },
    /// An attribute or global is bound.
    Bind { place: PlaceId, value: ValueId },
    /// A function of the project is called: its activation.
    Call(ActivationId),
    /// Something of a library that rules ask for is called, by its canonical dotted name; whose method, the first
    /// argument, and all arguments: a range in [`Activation::given`].
    Library { name: Symbol, receiver: ValueId, argument: ValueId, given: (u32, u32), result: ValueId },
    /// A model is applied.
    Forward,
}

impl What {
    /// The place that is bound.
    pub(crate) const fn bound(&self) -> Option<PlaceId> {
        match self {
            Self::Carry { place, .. } | Self::Reset { place } | Self::Bind { place, .. } => Some(*place),
            _ => None,
        }
    }
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub what: What,
    /// The expression: the container of a growth, the call.
    pub at: Location,
    /// The statement around it.
    pub statement: Location,
    /// Loops around it, from the function's first: a range in [`Activation::loops`].
    pub(crate) loops: (u32, u32),
    pub guards: Guards,
    /// A condition that holds once is around so many of these loops.
    pub(crate) once: Option<u8>,
    /// Graphs are recorded here.
    pub recording: bool,
}

/// Why something is run that nobody in the project calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// A module's body.
    Module,
    /// A framework calls it: the loops that it is called in.
    Framework(&'static [LoopId]),
    /// Nobody is known to call it.
    Uncalled,
    /// A test.
    Test,
}

/// A function as it is called with certain values, and what happens in it then.
#[derive(Debug)]
pub(crate) struct Activation {
    pub function: FunctionId,
    pub root: Option<Root>,
    pub receiver: Option<ObjectId>,
    /// Graphs are recorded when it begins.
    pub(crate) recording: bool,
    /// Values of its parameters, in order, where it has a decorator.
    pub parameters: Vec<Value>,
    pub events: Vec<Event>,
    pub(crate) loops: Vec<LoopId>,
    /// Arguments of noted calls, by name where they have one.
    pub(crate) given: Vec<(Option<Symbol>, ValueId)>,
    pub result: Value,
}

impl Activation {
    /// Arguments of a noted call.
    pub(crate) fn given(&self, range: (u32, u32)) -> &[(Option<Symbol>, ValueId)] {
        &self.given[range.0 as usize..range.1 as usize]
    }

    /// Loops of this function around an event, the outermost first.
    pub(crate) fn loops(&self, event: &Event) -> &[LoopId] {
        &self.loops[event.loops.0 as usize..event.loops.1 as usize]
    }
}

/// What a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A variable, and the loop through which it is carried.
    Variable(FunctionId, Symbol, LoopId),
    /// An attribute of an object, or a global of a module.
    Field(ObjectId, Symbol),
}
