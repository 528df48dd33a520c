//! What an expression may be: a join of kinds of values, references to abstract objects, and what decides whether
//! keeping it costs memory (does it carry a graph, is it a view, does it come from its own predecessor).
//!
//! A value is a set of possibilities: joining takes everything both sides have. [`Value::NOTHING`] is the empty set, of
//! code that has not been reached yet; [`Kinds::UNKNOWN`] is a possibility that nothing is said about.

use rustc_hash::FxHashMap;

use crate::flow::ids::{ObjectId, OriginId, PlaceId, ValueId};
use crate::flow::symbols::Symbol;

/// A set of kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kinds(u32);

macro_rules! bits {
    ($type:ident: $($(#[$doc:meta])* $name:ident,)*) => {
        bits!(@ $type, 0, $($(#[$doc])* $name,)*);
    };
    (@ $type:ident, $at:expr, $(#[$doc:meta])* $name:ident, $($rest:tt)*) => {
        impl $type {
            $(#[$doc])*
            pub const $name: Self = Self(1 << ($at));
        }
        bits!(@ $type, $at + 1, $($rest)*);
    };
    (@ $type:ident, $at:expr,) => {
        impl $type {
            /// Nothing.
            pub const NONE_OF_ALL: Self = Self(0);

            /// Both.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether anything of `other` is in it.
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Without the other.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Whether nothing is in it.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }
    };
}

bits! { Kinds:
    /// Nothing is known.
    UNKNOWN,
    /// `None`.
    NONE,
    /// `int`, `float`, `bool`.
    NUMBER,
    /// `str`, `bytes`.
    TEXT,
    /// `torch.Tensor`.
    TENSOR,
    /// `numpy.ndarray`.
    ARRAY,
    /// `torch.nn.Module`, or something else that is called for a prediction or loss.
    MODULE,
    /// `torch.optim.Optimizer`.
    OPTIMIZER,
    /// Something that gives batches.
    LOADER,
    /// `matplotlib.figure.Figure`.
    FIGURE,
    /// Axes and artists.
    AXES,
    /// A data frame or series of pandas, polars or pyarrow.
    TABLE,
    /// An exception.
    EXCEPTION,
    /// `RemovableHandle` of a registered hook.
    HANDLE,
    /// An open file, socket, reader or writer.
    FILE,
    /// A thread.
    THREAD,
    /// A process, or a pool of them.
    PROCESS,
    /// A reference to an object that is followed: container, instance, function.
    OBJECT,
    /// An object of a library that keeps nothing worth telling.
    LIBRARY,
    /// A probability distribution over tensors.
    DISTRIBUTION,
    /// An open video.
    VIDEO,
    /// A log record.
    RECORD,
    /// A profiler or recorder.
    PROFILER,
    /// A segment of shared memory.
    SHARED_MEMORY,
    /// An object of a class that is not followed.
    INSTANCE,
    /// A task of an event loop.
    TASK,
    /// A module of torch without parameters, called for a loss.
    CRITERION,
}

/// What else decides about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Traits(u32);

bits! { Traits:
    /// A tensor that may carry an autograd graph.
    GRAPH,
    /// ... as the tensor library or the project's own classes say, not only a name.
    PROVED,
    /// A leaf that requires gradients: a parameter.
    LEAF,
    /// Shares the storage of a larger tensor or array.
    VIEW,
    /// On an accelerator.
    DEVICE,
    /// Counts epochs, steps or calls.
    COUNTER,
    /// Hardly ever the same twice: random, a clock, an address, a measured float.
    UNIQUE,
    /// Depends on the fold of a cross-validation.
    FOLD,
    /// Comes from a batch or sample.
    DATA,
    /// A Python float taken from a tensor.
    MEASURED,
    /// As many as a video has frames.
    FRAMES,
    /// A frame of a video, or the number of one, where all are gone through.
    FRAME,
    /// All frames of a video, or the numbers of all.
    WHOLE,
    /// Counts from the start again whenever its loop does.
    RESTARTS,
    /// The number of an epoch, from the loop over the epochs.
    EPOCH,
    /// The number of a turn of another loop.
    TURN,
    /// A whole number drawn at random, of more than a few.
    DRAWN,
    /// A part of something larger, copied: somebody chose what is worth keeping.
    EXCERPT,
    /// Several tensors at once, each with its own storage: values and indices of `x.max(1)`.
    PIECES,
    /// Has one dimension: one element of an array is a number, and no view.
    FLAT,
    /// One number, in a tensor without dimensions.
    SCALAR,
}

impl Kinds {
    /// What has to be given back: closed, joined, released, stopped.
    pub const GIVEN_BACK: Self = Self::FIGURE
        .with(Self::FILE)
        .with(Self::THREAD)
        .with(Self::PROCESS)
        .with(Self::VIDEO)
        .with(Self::PROFILER)
        .with(Self::SHARED_MEMORY);
}

impl Traits {
    /// What a remainder does not have: it comes back.
    pub const ONGOING: Self = Self::COUNTER
        .with(Self::RESTARTS)
        .with(Self::EPOCH)
        .with(Self::TURN)
        .with(Self::DRAWN)
        .with(Self::UNIQUE)
        .with(Self::MEASURED);
    /// What is told of the frames of a video.
    pub const OF_VIDEO: Self = Self::FRAMES.with(Self::FRAME).with(Self::WHOLE);
}

/// A constant, where it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Literal {
    /// Not one constant.
    #[default]
    Any,
    /// Text.
    Text(Symbol),
    /// A whole number.
    Int(i64),
    /// `True` or `False`.
    Bool(bool),
}

/// References to a few objects; of too many nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Few<T: Copy + Ord + Default, const N: usize> {
    len: u8,
    /// There were more.
    cut: bool,
    items: [T; N],
}

impl<T: Copy + Ord + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self { len: 0, cut: false, items: [T::default(); N] }
    }
}

impl<T: Copy + Ord + Default, const N: usize> Few<T, N> {
    /// So many at most.
    pub const ROOM: usize = N;

    /// One.
    pub fn one(item: T) -> Self {
        let mut few = Self::default();
        few.insert(item);
        few
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<T, N> {
        let this = *self;
        (0..this.len as usize).map(move |at| this.items[at])
    }

    /// Whether it is among them.
    pub fn contains(&self, item: T) -> bool {
        self.items[..self.len as usize].binary_search(&item).is_ok()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there were more than it has room for.
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Adds one that must not be missing: another one makes room.
    pub fn put(&mut self, item: T) {
        if !self.insert(item) {
            self.len -= 1;
            self.insert(item);
        }
    }

    /// Adds all of another.
    pub fn extend(&mut self, other: &Self) {
        self.cut |= other.cut;
        for item in other.iter() {
            self.insert(item);
        }
    }

    /// Adds one; false where there is no room.
    pub fn insert(&mut self, item: T) -> bool {
        let len = self.len as usize;
        match self.items[..len].binary_search(&item) {
            Ok(_) => true,
            Err(_) if len == N => {
                self.cut = true;
                false
            }
            Err(at) => {
                self.items.copy_within(at..len, at + 1);
                self.items[at] = item;
                self.len += 1;
                true
            }
        }
    }
}

/// Values that events speak of, each once: most are alike.
#[derive(Debug, Default)]
pub(crate) struct Values {
    known: FxHashMap<Value, ValueId>,
    values: Vec<Value>,
}

impl Values {
    /// The number of a value.
    pub(crate) fn intern(&mut self, value: Value) -> ValueId {
        let next = ValueId(self.values.len() as u32);
        let id = *self.known.entry(value).or_insert(next);
        if id == next {
            self.values.push(value);
        }
        id
    }

    /// Nothing is added any more: how to find what is there is not needed.
    pub(crate) fn complete(mut self) -> Self {
        self.known = FxHashMap::default();
        self
    }

    /// A value by its number.
    pub(crate) fn get(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }
}

/// The objects that one expression may refer to.
pub(crate) type Objects = Few<ObjectId, 6>;

/// The possibilities of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Value {
    /// What it may be.
    pub kinds: Kinds,
    /// What matters about it.
    pub traits: Traits,
    /// The objects it may refer to.
    pub objects: Objects,
    /// Places that it was computed from by differentiable operations.
    pub carried: Few<PlaceId, 10>,
    /// The constant that it is.
    pub literal: Literal,
    /// What made its graph, else what made it.
    pub origin: Option<OriginId>,
}

impl Value {
    /// Not reached.
    pub const NOTHING: Self = Self {
        kinds: Kinds::NONE_OF_ALL,
        traits: Traits::NONE_OF_ALL,
        objects: Few { len: 0, cut: false, items: [ObjectId::ZERO; Objects::ROOM] },
        carried: Few { len: 0, cut: false, items: [PlaceId(0); 10] },
        literal: Literal::Any,
        origin: None,
    };
    /// Anything.
    pub const UNKNOWN: Self = Self { kinds: Kinds::UNKNOWN, ..Self::NOTHING };

    /// Something of a kind.
    pub const fn of(kinds: Kinds) -> Self {
        Self { kinds, ..Self::NOTHING }
    }

    /// A reference to an object.
    pub fn object(id: ObjectId) -> Self {
        Self { kinds: Kinds::OBJECT, objects: Few::one(id), ..Self::NOTHING }
    }

    /// A constant text.
    pub fn text(symbol: Symbol) -> Self {
        Self { literal: Literal::Text(symbol), ..Self::of(Kinds::TEXT) }
    }

    /// With more traits.
    #[must_use]
    pub const fn with(mut self, traits: Traits) -> Self {
        self.traits = self.traits.with(traits);
        self
    }

    /// Without some traits.
    #[must_use]
    pub const fn without(mut self, traits: Traits) -> Self {
        self.traits = self.traits.without(traits);
        self
    }

    /// With more kinds.
    #[must_use]
    pub const fn or(mut self, kinds: Kinds) -> Self {
        self.kinds = self.kinds.with(kinds);
        self
    }

    /// `None` where nothing else is possible.
    #[must_use]
    pub const fn or_none(self) -> Self {
        if self.is_nothing() { Self::of(Kinds::NONE) } else { self }
    }

    /// Without graph: a tensor as `detach` gives it.
    #[must_use]
    pub const fn detached(mut self) -> Self {
        self.traits = self.traits.without(Traits::GRAPH.with(Traits::LEAF));
        self.carried = Self::NOTHING.carried;
        self
    }

    /// Not reached yet.
    pub const fn is_nothing(&self) -> bool {
        self.kinds.is_empty()
    }

    /// May it be a tensor that carries a graph?
    pub const fn carries_graph(&self) -> bool {
        self.kinds.has(Kinds::TENSOR) && self.traits.has(Traits::GRAPH)
    }

    /// Was it computed from what a place held?
    pub fn comes_from(&self, place: PlaceId) -> bool {
        self.carried.contains(place) || self.is_fed_from(place)
    }

    /// Was a model or a solver's step applied to what a place held?
    pub fn is_fed_from(&self, place: PlaceId) -> bool {
        self.carried.contains(place.fed())
    }

    /// With all that it comes from as what a model or solver was applied to.
    #[must_use]
    pub fn fed(mut self) -> Self {
        let plain = std::mem::take(&mut self.carried);
        self.carried.cut = plain.cut;
        for place in plain.iter() {
            self.carried.insert(place.fed());
        }
        self
    }

    /// Only of these kinds.
    pub const fn only(&self, kinds: Kinds) -> bool {
        !self.kinds.is_empty() && self.kinds.without(kinds).is_empty()
    }

    /// Either.
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        if self == *other || other.is_nothing() {
            return self;
        }
        if self.is_nothing() {
            return *other;
        }
        for object in other.objects.iter() {
            if !self.objects.insert(object) {
                self.kinds = self.kinds.with(Kinds::UNKNOWN);
            }
        }
        self.carried.extend(&other.carried);
        // What makes a graph is the better story.
        if self.origin.is_none() || other.carries_graph() && !self.carries_graph() {
            self.origin = other.origin.or(self.origin);
        }
        self.kinds = self.kinds.with(other.kinds);
        self.traits = self.traits.with(other.traits);
        if self.literal != other.literal {
            self.literal = Literal::Any;
        }
        self
    }

    /// The same, for comparison with a value computed for another story.
    #[must_use]
    pub const fn untold(mut self) -> Self {
        self.origin = None;
        self
    }
}
