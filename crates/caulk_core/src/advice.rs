//! What to change, as facts: `caulk_report` makes the words.

use crate::{Edit, Fix, LeakClass, LibraryHolder, Rate};

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// The change.
    pub change: SuggestedChange,
    /// The values themselves stay and grow so fast once their graphs are gone.
    pub values: Option<Rate>,
}

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub enum SuggestedChange {
    /// Advice: no edit of the source can be certain.
    Advice(Advice),
    /// As the source or a rule has it.
    Fix(Fix),
}

/// Advice, by what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// That of a class.
    Class(LeakClass),
    /// Let the library release it: what keeps it, as the program writes it.
    Release(LibraryHolder, String),
    /// Nothing, if there is room for what fills up.
    Room,
    /// For an optimizer that gets other parameters.
    FewerParameters,
    /// For functions that run at exit.
    FewerAtExit,
    /// For figures that the program keeps.
    KeptFigures,
    /// For artists that pile up on one Axes.
    PiledArtists,
    /// For an object that refers to the one before it.
    CutChain,
    /// For a tensor that is replaced by a larger one.
    LastRows,
    /// For elements of a set.
    Discard,
    /// For a buffer.
    WriteOut,
    /// For something that is registered in a loop.
    RegisterOnce,
    /// For a value that is made from something that grows.
    BoundSource,
    /// For a call after which a library keeps more.
    UndoCall,
    /// The same if the line grows nothing by itself.
    CallOnce,
    /// For a line that allocates, if nothing else is known.
    FindHolders,
    /// For layers of torch that allocate.
    PadShapes,
    /// For a string that gets longer.
    WriteParts,
    /// For the container of a value that stays.
    KeepLess(String),
    /// For what an epoch gathers.
    KeepSums,
    /// For gaps that small objects leave.
    FewerObjects,
    /// For free memory of a GPU in pieces: is this set already?
    GpuPieces {
        /// `expandable_segments`.
        expandable: bool,
        /// `max_split_size_mb`.
        split: bool,
    },
    /// For a pool of pinned memory.
    PinOnce,
    /// For cycles that were frozen.
    Unfreeze,
    /// For descriptors of shared memory.
    SharedMemory,
    /// For loaders that this container keeps.
    KeptLoaders(String),
}

impl Remedy {
    /// The change of the source, if it can be written down.
    pub fn edit(&self) -> Option<&Fix> {
        match &self.change {
            SuggestedChange::Fix(fix) => Some(fix).filter(|fix| !fix.edits.is_empty()),
            SuggestedChange::Advice(_) => None,
        }
    }

    /// The edits, if there are any.
    pub fn edits(&self) -> &[Edit] {
        self.edit().map_or(&[], |fix| &fix.edits)
    }
}

impl From<Advice> for Remedy {
    fn from(advice: Advice) -> Self {
        Self { change: SuggestedChange::Advice(advice), values: None }
    }
}

impl From<Fix> for Remedy {
    fn from(fix: Fix) -> Self {
        Self { change: SuggestedChange::Fix(fix), values: None }
    }
}
