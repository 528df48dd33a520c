//! Numbers by which parts of the analysis name what others keep.

/// An abstract object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId(pub(crate) u32);

impl ObjectId {
    pub(crate) const ZERO: Self = Self(0);
}

/// A place whose next content is made from what it holds: a variable around a loop, an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PlaceId(pub(crate) u32);

impl PlaceId {
    const FED: u32 = 1 << 31;

    /// The same place, from which something came by way of a model or a solver's step, not by adding to it.
    pub(crate) const fn fed(self) -> Self {
        Self(self.0 | Self::FED)
    }

    pub(crate) const fn is_fed(self) -> bool {
        self.0 & Self::FED != 0
    }

    /// Its number, however something came from it.
    pub(crate) const fn index(self) -> usize {
        (self.0 & !Self::FED) as usize
    }
}

/// Where a value was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OriginId(pub(crate) u32);

/// A value among those of [`crate::flow::value::Values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ValueId(pub(crate) u32);

/// A function, lambda or module body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub(crate) u32);

/// A class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub(crate) u32);

/// A loop, or a framework that calls again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LoopId(pub(crate) u32);

impl LoopId {
    /// The epochs of a framework.
    pub const EPOCHS: Self = Self(0);
    /// The training steps of a framework.
    pub const STEPS: Self = Self(1);
    /// The validation batches of a framework.
    pub const VALIDATION: Self = Self(2);
    /// Samples that a data set is asked for.
    pub const SAMPLES: Self = Self(3);
    /// Calls of a hook or handler that somebody registered.
    pub const CALLBACKS: Self = Self(4);
    /// How many belong to frameworks.
    pub(crate) const SYNTHETIC: u32 = 5;
}

/// A function as it is called with certain values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ActivationId(pub(crate) u32);
