//! Which criterion a leak class belongs to.

use caulk_core::{Group, LeakClass};

use crate::Criterion;

/// The criterion that fails if a leak of this class is found.
pub(crate) fn criterion(class: LeakClass) -> Criterion {
    match (class, class.group()) {
        (LeakClass::GradientsNeverCleared, _) => Criterion::GradientsCleared,
        (LeakClass::DeviceTensorKept, _) => Criterion::DeviceTensorsMoved,
        (LeakClass::FileHandlesGrow, _) => Criterion::FilesFlat,
        (LeakClass::ThreadNeverEnds, _) => Criterion::ThreadsFlat,
        (LeakClass::WorkerMemoryGrows | LeakClass::WorkerCopyOnWrite, _) => Criterion::WorkersFlat,
        (_, Group::Graph) => Criterion::DetachedWhenStored,
        (_, Group::Figure) => Criterion::FiguresClosed,
        _ => Criterion::NoLineAllocatesEverMore,
    }
}
