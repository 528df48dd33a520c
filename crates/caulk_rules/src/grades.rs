//! What a proof means for each class, and the highest severity that the class has.

use caulk_core::{LeakClass, Scope, Severity};

use crate::weight::Weight;
use LeakClass as Class;
use Severity::{Error, Info, Warning};

/// A class's row.
#[derive(Debug, Clone, Copy)]
pub struct ClassGrade {
    /// The class.
    pub class: LeakClass,
    /// No finding of it is more.
    pub highest: Severity,
    /// Severity follows from the proof. A setting, a peak or an error of training has its highest severity.
    pub by_proof: bool,
    /// What runs again and again.
    pub repeats: &'static str,
    /// What is kept.
    pub kind: &'static str,
    /// What keeps it.
    pub outlives: &'static str,
    /// What would release it.
    pub unreleased: &'static str,
}

impl ClassGrade {
    /// The row of a class.
    pub fn of(class: LeakClass) -> Option<&'static Self> {
        GRADES.iter().find(|grade| grade.class == class)
    }

    /// The four parts with their names in JSON.
    pub fn parts(&self) -> [(&'static str, &'static str); 4] {
        [
            ("repeats", self.repeats),
            ("kind", self.kind),
            ("outlives", self.outlives),
            ("unreleased", self.unreleased),
        ]
    }

    /// The highest severity of a finding of this class: less for what is gone with its epoch or function, and for what
    /// weighs less than tensors.
    pub(crate) fn ceiling(&self, scope: Scope, weight: Weight) -> Severity {
        let graph = weight == Weight::Graphs;
        let by_scope = match scope {
            Scope::Run => Error,
            Scope::Epoch | Scope::Object => Warning,
            // Even for a while, graphs are worth an evaluation's activations.
            Scope::Peak if graph => Warning,
            Scope::Peak => Info,
        };
        let by_weight = if weight >= Weight::Tensors { Error } else { Warning };
        self.highest.min(by_scope).min(by_weight)
    }
}

/// A growth: a row whose severity follows from the proof.
const fn grows(class: LeakClass, highest: Severity, parts: [&'static str; 4]) -> ClassGrade {
    let [repeats, kind, outlives, unreleased] = parts;
    ClassGrade { class, highest, by_proof: true, repeats, kind, outlives, unreleased }
}

/// A setting, a peak or an error of training.
const fn fixed(class: LeakClass, highest: Severity, parts: [&'static str; 4]) -> ClassGrade {
    ClassGrade { by_proof: false, ..grows(class, highest, parts) }
}

const LOOP: &str = "the loop around the line runs many times: a training, a loader, a framework's calls";
const EMPTIED: &str = "no reachable line empties, cuts or rebinds the container in that loop";
const HOLDER: &str = "the container is made outside of that loop";
const GRAPH: &str = "the tensor carries an autograd graph";
const LARGE: &str = "an entry is a tensor, an array or a table";
const UNTIL: &str = "it is gone before the next turn; severity does not depend on this";
const RESETS: &str = "no reachable line detaches or resets the state in that loop";
const PLACE: &str = "the variable or attribute is carried from turn to turn";

/// Every class that source can show, in the order of their rules.
pub static GRADES: &[ClassGrade] = &[
    grows(
        Class::AugmentationPerFold,
        Warning,
        [
            "the line runs once for each fold",
            LARGE,
            "the cache is made outside of the folds",
            "the fold is a part of the key, so that no entry is replaced",
        ],
    ),
    grows(
        Class::CacheKeyedByTensor,
        Error,
        [LOOP, "the key is a tensor", "the cache lives as long as its function or holder", EMPTIED],
    ),
    grows(
        Class::CachedMethod,
        Error,
        [
            "objects of the class are made many times",
            "an object holds tensors or a module",
            "the cache lives as long as the class",
            "the cache has no limit below the number of objects",
        ],
    ),
    grows(Class::CallbackKeepsTensor, Error, [LOOP, "the function refers to a tensor", HOLDER, EMPTIED]),
    fixed(Class::CleanupAsPlaster, Info, [LOOP, "the call cleans up", UNTIL, UNTIL]),
    grows(
        Class::ContextAttributeTensor,
        Warning,
        [
            "the function is applied in every step",
            "the attribute is a tensor of the graph",
            "the output and its context refer to each other",
            "the graph's backward pass does not free attributes",
        ],
    ),
    grows(Class::DeviceTensorKept, Error, [LOOP, "an entry is on an accelerator or pinned", HOLDER, EMPTIED]),
    fixed(Class::EvaluationWithGrad, Info, [LOOP, GRAPH, UNTIL, UNTIL]),
    grows(
        Class::ExceptionKeepsFrames,
        Warning,
        [LOOP, "an entry is an exception with its traceback", HOLDER, EMPTIED],
    ),
    grows(
        Class::FigureNotClosed,
        Error,
        [
            LOOP,
            "the call makes a figure, or an artist",
            "pyplot, or the Axes, keeps it",
            "no reachable line closes or wipes it in that loop",
        ],
    ),
    grows(
        Class::FileHandlesGrow,
        Error,
        [
            LOOP,
            "the call opens a file or a writer",
            "its thread or a container keeps it",
            "no reachable line closes it",
        ],
    ),
    grows(
        Class::GlobalAccumulation,
        Error,
        [LOOP, LARGE, "a global, or an attribute of a class or function, keeps it", EMPTIED],
    ),
    fixed(
        Class::GradientsNeverCleared,
        Warning,
        [LOOP, "a backward pass adds to gradients", UNTIL, "no line clears the gradients"],
    ),
    grows(Class::GraphKeptInContainer, Error, [LOOP, GRAPH, HOLDER, EMPTIED]),
    grows(
        Class::GraphRetained,
        Error,
        [LOOP, "the backward pass keeps its graph", PLACE, "no line drops the graph"],
    ),
    grows(
        Class::HookNeverRemoved,
        Error,
        [
            LOOP,
            "the call registers a hook or callback",
            "the model, or the interpreter, keeps it",
            "no reachable line removes its handle",
        ],
    ),
    fixed(
        Class::LargeLocalKept,
        Info,
        [LOOP, "the variable is a whole checkpoint", "the training runs after its last use", UNTIL],
    ),
    grows(
        Class::LoaderPerEpoch,
        Error,
        [
            "the line runs once per epoch",
            "the loader has workers",
            "persistent workers of a stored loader stay",
            "no line shuts them down",
        ],
    ),
    grows(Class::LogRecordsKept, Warning, [LOOP, "an entry is a log record", HOLDER, EMPTIED]),
    grows(Class::LossKeptWithGraph, Error, [LOOP, GRAPH, PLACE, RESETS]),
    grows(Class::MutableDefaultGrows, Error, [LOOP, LARGE, "the default is shared by all calls", EMPTIED]),
    fixed(
        Class::NoReleaseAfterValidation,
        Info,
        [LOOP, LARGE, UNTIL, "it is emptied only after the next one"],
    ),
    grows(
        Class::OptimizerRecreated,
        Error,
        [LOOP, "an entry is an optimizer, or a group of parameters", HOLDER, EMPTIED],
    ),
    grows(
        Class::OrphanProcess,
        Error,
        [
            LOOP,
            "the call starts a process or a pool",
            "a process lives until it ends and is joined",
            "no line joins or ends it",
        ],
    ),
    fixed(Class::PinnedMemoryUnneeded, Info, [LOOP, "the loader pins batches", UNTIL, UNTIL]),
    fixed(Class::PlotEveryEpoch, Info, [LOOP, "the call makes a figure", UNTIL, UNTIL]),
    grows(
        Class::ProfilerLeftOn,
        Error,
        [
            "steps run while it records",
            "the call makes a profiler",
            "records live until the profiler ends",
            "no schedule or line stops it",
        ],
    ),
    grows(
        Class::ReferenceCycle,
        Error,
        [
            "such objects are made many times",
            "an object holds tensors",
            "the objects refer to each other",
            "the garbage collector is switched off",
        ],
    ),
    grows(
        Class::RowsKeptUntilEnd,
        Warning,
        [
            LOOP,
            "an entry is a row of a table that is made at the end",
            HOLDER,
            "nothing uses the rows before the end",
        ],
    ),
    grows(
        Class::SharedMemoryLeft,
        Error,
        [LOOP, "the call creates a segment", "a segment lives until it is unlinked", "no line unlinks it"],
    ),
    grows(Class::StateNotDetached, Error, [LOOP, GRAPH, PLACE, RESETS]),
    grows(
        Class::StepOutputsNotCleared,
        Error,
        [LOOP, LARGE, "an attribute of the module or callback keeps it", "no hook empties it"],
    ),
    grows(
        Class::ThreadNeverEnds,
        Error,
        [
            LOOP,
            "the call starts a thread",
            "a thread lives until its function returns",
            "its function does not return",
        ],
    ),
    grows(
        Class::UnboundedCache,
        Error,
        [
            "the loop around the line runs many times, with new keys",
            LARGE,
            "the cache lives as long as its function or holder",
            EMPTIED,
        ],
    ),
    grows(Class::UnboundedHistory, Error, [LOOP, LARGE, HOLDER, EMPTIED]),
    grows(
        Class::UnboundedQueue,
        Error,
        [LOOP, LARGE, "the queue is made outside of that loop", "the loop that fills it does not wait"],
    ),
    fixed(Class::UnseededAugmentation, Info, [LOOP, "the augmentation draws at random", UNTIL, UNTIL]),
    grows(
        Class::ViewPinsStorage,
        Error,
        [LOOP, "an entry is a part of a larger tensor or array", HOLDER, EMPTIED],
    ),
    fixed(
        Class::WholeVideoLoad,
        Warning,
        [LOOP, "every frame of the video is decoded, and few are used", UNTIL, UNTIL],
    ),
    grows(
        Class::WorkerCopyOnWrite,
        Warning,
        [
            "a loader asks for samples",
            "as many Python objects as there are samples",
            "the data set keeps them",
            "workers are forked and write reference counts",
        ],
    ),
    grows(
        Class::WorkerMemoryGrows,
        Error,
        ["a loader asks for samples", LARGE, "the data set keeps it in every worker", EMPTIED],
    ),
    fixed(Class::WorkersOversubscribed, Info, [LOOP, "the number of workers is written out", UNTIL, UNTIL]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_with_its_function_is_no_warning_unless_it_is_a_graph() {
        let of =
            |scope, weight| ClassGrade::of(Class::UnboundedHistory).map(|grade| grade.ceiling(scope, weight));
        assert_eq!(of(Scope::Run, Weight::Tensors), Some(Error));
        assert_eq!(of(Scope::Run, Weight::Host), Some(Warning));
        assert_eq!(of(Scope::Epoch, Weight::Tensors), Some(Warning));
        assert_eq!(of(Scope::Peak, Weight::Tensors), Some(Info));
        assert_eq!(of(Scope::Peak, Weight::Graphs), Some(Warning));
    }
}
