//! Which class a leak is: by how the holder is reached and what it holds, the first that fits.

use caulk_core::wire::{BackwardSite, ContainerKind, Contents, Holder, PathStep, StepKind, Trait};
use caulk_core::{Evidence, LeakClass};
use caulk_python::GrowKind;

use crate::place::{
    Located, is_active_threads, is_at_exit, is_hook_registry, is_of_drawing, is_of_optimizer, is_of_pyplot,
};
use crate::process::Process;

/// Part of an element's bytes that its tensors are without their graphs.
pub(crate) fn value_share(contents: &Contents) -> f64 {
    let values = contents.viewed_bytes_per_element.min(contents.tensor_bytes_per_element);
    values as f64 / contents.bytes_per_element.max(1) as f64
}

/// Are these the calls that a `unittest.mock.Mock` records (`mock_calls`, `call_args_list`, `method_calls`)?
fn records_calls(contents: &Contents) -> bool {
    contents.element_types.first().is_some_and(|(name, _)| name == "unittest.mock._Call")
}

/// The class in view of bytes that were found outside the elements: parts of arrays pin the whole of these.
pub(crate) fn in_view_of(by_signs: LeakClass, beside: Option<&Evidence>) -> LeakClass {
    match beside {
        Some(Evidence::PartOfArrays) => LeakClass::ViewPinsStorage,
        _ => by_signs,
    }
}

/// What decides a class.
pub(crate) struct Signs<'a> {
    pub(crate) process: &'a Process<'a>,
    pub(crate) holder: &'a Holder,
    pub(crate) kind: ContainerKind,
    pub(crate) contents: Option<&'a Contents>,
    pub(crate) located: Option<&'a Located>,
}

impl Signs<'_> {
    fn has(&self, fact: &Trait) -> bool {
        self.contents.is_some_and(|contents| contents.traits.contains(fact))
    }

    fn reached_by(&self, kind: StepKind) -> bool {
        self.holder.path.iter().any(|step| step.kind == kind)
    }

    /// The class.
    pub(crate) fn class(&self) -> LeakClass {
        self.by_holder().or_else(|| self.by_cache()).or_else(|| self.by_contents()).unwrap_or_else(|| {
            let global = self.reached_by(StepKind::ClassAttribute)
                || (self.last_named() == Some(StepKind::Global) && self.holder.function.is_empty());
            if global { LeakClass::GlobalAccumulation } else { LeakClass::UnboundedHistory }
        })
    }

    fn by_holder(&self) -> Option<LeakClass> {
        let facts = self.located.map(|located| &located.facts);
        let class = if self.has(&Trait::Optimizer) || is_of_optimizer(self.holder) {
            LeakClass::OptimizerRecreated
        } else if is_hook_registry(&self.holder.name) {
            LeakClass::HookNeverRemoved
        } else if self.has(&Trait::Figure) || is_of_pyplot(self.holder) || is_of_drawing(self.holder) {
            LeakClass::FigureNotClosed
        } else if self.has(&Trait::LogRecord) {
            LeakClass::LogRecordsKept
        } else if self.has(&Trait::Exception) || self.stores_exception() {
            LeakClass::ExceptionKeepsFrames
        } else if self.kind == ContainerKind::Queue || self.is_in_simple_queue() {
            LeakClass::UnboundedQueue
        } else if self.is_of_threads() || is_active_threads(self.holder) {
            LeakClass::ThreadNeverEnds
        } else if self.reached_by(StepKind::Default) {
            LeakClass::MutableDefaultGrows
        } else if self.has(&Trait::Function) && self.located.is_some_and(Located::registers_hook) {
            LeakClass::HookNeverRemoved
        } else if self.has(&Trait::Function) || is_at_exit(self.holder) {
            LeakClass::CallbackKeepsTensor
        } else if facts.is_some_and(|facts| facts.step_hook.is_some()) && self.kind != ContainerKind::Graph {
            LeakClass::StepOutputsNotCleared
        } else {
            return None;
        };
        Some(class)
    }

    /// A `queue.SimpleQueue` keeps waiting elements in an internal list.
    fn is_in_simple_queue(&self) -> bool {
        let steps = &self.holder.path;
        let internal = |step: &PathStep| step.kind == StepKind::Internal;
        steps.windows(2).any(|pair| pair[0].type_name.ends_with("SimpleQueue") && internal(&pair[1]))
    }

    /// A `threading.local` has a dict for each live thread, in an internal dict.
    fn is_of_threads(&self) -> bool {
        let [.., local, dicts] = self.holder.path.as_slice() else { return false };
        local.type_name == "_thread._local" && dicts.kind == StepKind::Internal
    }

    /// Exceptions in tuples and records, which a look at the elements themselves does not meet.
    fn stores_exception(&self) -> bool {
        let grow = self.located.and_then(|located| Some((&located.source, located.grow.as_ref()?)));
        let fix = grow.and_then(|(source, site)| source.lines().traceback_fix(site));
        !self.has(&Trait::Scalar) && fix.is_some_and(|fix| !fix.edits.is_empty())
    }

    fn by_cache(&self) -> Option<LeakClass> {
        // Numbers weigh nothing, and of what drags a graph along the graph is the matter.
        let dict_cache = self.kind == ContainerKind::Dict
            && self.located.is_some_and(|located| located.facts.cache_like())
            && !self.has(&Trait::Scalar)
            && !self.has(&Trait::Graph);
        match self.kind {
            ContainerKind::LruCache if self.has(&Trait::TensorKey) => Some(LeakClass::CacheKeyedByTensor),
            ContainerKind::LruCache if self.has(&Trait::SelfKey) => Some(LeakClass::CachedMethod),
            ContainerKind::LruCache => Some(LeakClass::UnboundedCache),
            _ if dict_cache && self.has(&Trait::TensorKey) => Some(LeakClass::CacheKeyedByTensor),
            _ if dict_cache && self.has(&Trait::EpochKey) => Some(LeakClass::AugmentationPerFold),
            _ if dict_cache => Some(LeakClass::UnboundedCache),
            _ => None,
        }
    }

    fn by_contents(&self) -> Option<LeakClass> {
        let carried = self.located.is_some_and(|located| located.facts.loop_carried.is_some());
        if self.kind == ContainerKind::Graph {
            return Some(self.graph_class(carried));
        }
        if self.has(&Trait::Graph) && !self.contents.is_some_and(records_calls) {
            return Some(if carried {
                LeakClass::StateNotDetached
            } else if self.retains_graphs(|site| site.retain_graph || site.create_graph) {
                LeakClass::GraphRetained
            } else {
                LeakClass::GraphKeptInContainer
            });
        }
        let pins = |contents: &caulk_core::wire::Contents| {
            let (storage, shown) = (contents.tensor_bytes_per_element, contents.viewed_bytes_per_element);
            shown > 0 && storage > 4 * shown && storage > 16 << 10
        };
        // A suspended function keeps the whole by a variable of its own.
        let is_suspended = |contents: &Contents| {
            let first = contents.element_types.first().map_or("", |(name, _)| name);
            ["generator", "coroutine", "async_generator", "frame"].contains(&first)
        };
        if self.contents.is_some_and(records_calls) {
            return Some(LeakClass::CallsRecorded);
        }
        if self.contents.is_some_and(|contents| pins(contents) && !is_suspended(contents)) {
            return Some(LeakClass::ViewPinsStorage);
        }
        (self.has(&Trait::Record) && self.kind == ContainerKind::List).then_some(LeakClass::RowsKeptUntilEnd)
    }

    fn graph_class(&self, carried: bool) -> LeakClass {
        if self.holder.name == "grad" || self.retains_graphs(|site| site.create_graph) {
            return LeakClass::GraphRetained;
        }
        if self.located.is_some_and(Located::adds_elements) {
            return LeakClass::GraphKeptInContainer;
        }
        let facts = self.located.map(|located| &located.facts);
        let summed = facts.is_some_and(|facts| facts.summed);
        let fed = facts.is_some_and(caulk_python::Facts::fed_to_module);
        // What is bound to another value, and not to itself and more, is a state that has come around.
        let grow = self.located.and_then(|located| located.grow.as_ref());
        let renewed = grow.is_some_and(|grow| grow.kind == GrowKind::Assign);
        if !summed && (fed || carried || renewed) {
            LeakClass::StateNotDetached
        } else {
            LeakClass::LossKeptWithGraph
        }
    }

    /// Has the function that stores the elements a backward pass that keeps graphs in such a way?
    fn retains_graphs(&self, keeps: impl Fn(&BackwardSite) -> bool) -> bool {
        let Some(located) = self.located else { return false };
        let function = &located.spot.function;
        let mut retaining = self.process.backwards.iter().filter(|site| keeps(site));
        retaining.any(|site| {
            site.file == located.path && located.source.lines().function_at(site.line) == *function
        })
    }

    fn last_named(&self) -> Option<StepKind> {
        let named = |kind: StepKind| !matches!(kind, StepKind::Index | StepKind::Internal | StepKind::Key);
        self.holder.path.iter().rev().map(|step| step.kind).find(|kind| named(*kind))
    }
}
