//! Which class a growing container belongs to by what it is for: a queue, a cache, a list of optimizers, outputs of
//! steps; and by what holds it, where nothing else says more.

use caulk_core::{LeakClass, Scope};
use caulk_python::Analysis;
use caulk_python::program::{
    CallFact, ClassId, Contents, Growth, GrowthCase, GrowthFact, Guards, Holder, Kinds, Literal, LoopId,
    LoopKind, Root, Shape, Traits, Value,
};

use crate::exposure::Exposure;
use crate::tables::table_of_rows;

/// What a container is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// What one rule speaks of.
    Known(LeakClass),
    /// Its keys come back: entries are replaced.
    Finite,
    /// Keys count through a loop and come back with the next: a step's entry stays until then.
    Numbered,
    Any,
}

/// A growth that is looked at.
pub(crate) struct Growing<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) growth: &'a GrowthFact,
    pub(crate) case: &'a GrowthCase,
    pub(crate) holder: Holder,
    pub(crate) exposure: Exposure,
    /// What one turn of the loop adds.
    pub(crate) contents: &'a Contents,
    /// Calls that make tables.
    pub(crate) tables: &'a [CallFact],
}

/// Something limits a container, or what happens once makes it grow.
pub(crate) fn is_limited(case: &GrowthCase) -> bool {
    case.duration.guards.has(Guards::LENGTH.with(Guards::ONCE).with(Guards::CHOSEN))
}

/// Whether a container goes with what is made anew in a loop, though a hook or thread fills it; or grows for the handful
/// of folds that a cross-validation has.
pub(crate) fn is_short_lived(analysis: &Analysis, case: &GrowthCase) -> bool {
    let births = analysis.births(case.object);
    let handed = matches!(case.duration.root, Root::Framework([LoopId::CALLBACKS, ..]));
    let goes_with_owner = handed
        && !births.is_empty()
        && births.iter().all(|chain| chain.iter().any(|id| analysis.repeats(*id)));
    let mut repeating = case.duration.growing.iter().filter(|id| analysis.repeats(**id));
    // A variable that a function shares with hooks goes with the function, which may be done after one pass.
    let goes_with_function = match analysis.holder(case.object) {
        Holder::Closure(function, _) if handed => !analysis.loops(function).any(|id| analysis.trains(id)),
        _ => false,
    };
    goes_with_owner || goes_with_function || repeating.all(|id| analysis.a_loop(*id).kind == LoopKind::Folds)
}

impl Growing<'_> {
    /// What the container is for.
    pub(crate) fn purpose(&self) -> Purpose {
        if self.analysis.object(self.case.object).shape == Shape::Queue {
            return Purpose::Known(LeakClass::UnboundedQueue);
        }
        if self.case.duration.growing.contains(&LoopId::SAMPLES) {
            return Purpose::Known(LeakClass::WorkerMemoryGrows);
        }
        let failures = self.contents.kinds.has(Kinds::EXCEPTION) && self.case.key.literal == Literal::Any;
        match keyed(self.analysis, self.growth, self.case) {
            Purpose::Any => self.by_kinds(),
            // Whatever failed: attempts are numbered, each failure is another one.
            Purpose::Finite if failures => Purpose::Known(LeakClass::ExceptionKeepsFrames),
            known => known,
        }
    }

    /// By what goes in.
    fn by_kinds(&self) -> Purpose {
        let kinds = self.contents.kinds;
        let optimizers = kinds.has(Kinds::OPTIMIZER) && self.makes_optimizers();
        if optimizers && !self.stores_callable() {
            Purpose::Known(LeakClass::OptimizerRecreated)
        } else if kinds.has(Kinds::FIGURE.with(Kinds::AXES)) {
            Purpose::Known(LeakClass::FigureNotClosed)
        } else if kinds.has(Kinds::FILE.with(Kinds::VIDEO)) {
            Purpose::Known(LeakClass::FileHandlesGrow)
        } else if table_of_rows(self.analysis, self.case, self.exposure, self.tables).is_some() {
            Purpose::Known(LeakClass::RowsKeptUntilEnd)
        } else if kinds.has(Kinds::RECORD) {
            Purpose::Known(LeakClass::LogRecordsKept)
        } else if kinds.has(Kinds::EXCEPTION) {
            Purpose::Known(LeakClass::ExceptionKeepsFrames)
        } else if self.exposure.scope == Scope::Run && self.gathers_step_outputs() {
            Purpose::Known(LeakClass::StepOutputsNotCleared)
        } else if self.contents.callable
            && (optimizers || self.holds_tensors())
            && self.growth.how != Growth::Link
        {
            Purpose::Known(LeakClass::CallbackKeepsTensor)
        } else {
            Purpose::Any
        }
    }

    /// By what holds it.
    pub(crate) fn place(&self) -> LeakClass {
        match self.holder {
            Holder::Default(..) => LeakClass::MutableDefaultGrows,
            Holder::Global(_) | Holder::ClassAttribute(..) | Holder::FunctionAttribute(..) => {
                LeakClass::GlobalAccumulation
            }
            Holder::Attribute(..) | Holder::Closure(..) | Holder::Local => LeakClass::UnboundedHistory,
        }
    }

    fn holds_tensors(&self) -> bool {
        let tensor = |value: Value| value.kinds.has(Kinds::TENSOR);
        self.contents.graph.is_some() || self.contents.heavy.is_some_and(tensor)
    }

    /// A function, a method or a partial call goes in, and no object that has one.
    fn stores_callable(&self) -> bool {
        self.case.value.objects.iter().any(|object| {
            matches!(
                self.analysis.object(object).shape,
                Shape::Function(..) | Shape::Method(..) | Shape::Partial(_) | Shape::BuiltIn(..)
            )
        })
    }

    fn makes_optimizers(&self) -> bool {
        let inner = self.exposure.inner;
        self.analysis.calls_giving(Kinds::OPTIMIZER).iter().any(|call| call.around.contains(&inner))
            || self.case.value.objects.iter().any(|object| self.analysis.made_in(object, inner))
    }

    /// An attribute of a Lightning module or callback that its step hooks fill.
    fn gathers_step_outputs(&self) -> bool {
        let (Holder::Attribute(class, name), Root::Framework([LoopId::EPOCHS, ..])) =
            (self.holder, self.case.duration.root)
        else {
            return false;
        };
        let lightning = |base: &String| base.ends_with(".LightningModule") || base.ends_with(".Callback");
        let told = self.holds_tensors() || self.contents.heavy.is_some();
        self.analysis.class(class).libraries.iter().any(lightning)
            && self.growth.how != Growth::Store
            && (told || !self.contents.is_plain() && self.analysis.name(name).contains("output"))
    }
}

/// What a container is for by its keys, where it has some.
pub(crate) fn keyed(analysis: &Analysis, growth: &GrowthFact, case: &GrowthCase) -> Purpose {
    let key = &case.key;
    let merged = growth.how == Growth::Concatenate && !key.is_nothing();
    if !merged && growth.how != Growth::Store {
        return Purpose::Any;
    }
    let cached = analysis.object(case.object).looked_up;
    if cached && key.traits.has(Traits::FOLD) {
        Purpose::Known(LeakClass::AugmentationPerFold)
    } else if cached && is_computed(key) {
        Purpose::Known(LeakClass::CacheKeyedByTensor)
    } else if is_fresh(analysis, key, &case.duration.growing) {
        if cached { Purpose::Known(LeakClass::UnboundedCache) } else { Purpose::Any }
    } else if !cached && key.traits.has(Traits::COUNTER.with(Traits::DATA)) {
        Purpose::Numbered
    } else {
        Purpose::Finite
    }
}

/// Objects of the project that are made in the loops, each equal to nothing but itself.
pub(crate) fn is_made_for_it(analysis: &Analysis, key: &Value, growing: &[LoopId]) -> bool {
    let own = |class: ClassId| {
        let compared = ["__eq__", "__hash__"].iter().filter_map(|name| analysis.symbol(name));
        let fact = analysis.class(class);
        fact.bases.is_empty() && !compared.into_iter().any(|name| fact.methods.contains_key(&name))
    };
    let made = |id| growing.iter().any(|inner| analysis.repeats(*inner) && analysis.made_in(id, *inner));
    let fresh = |id| matches!(analysis.object(id).shape, Shape::Instance(class) if own(class)) && made(id);
    key.only(Kinds::OBJECT) && !key.objects.is_empty() && key.objects.iter().all(fresh)
}

/// A tensor that was computed just now, and is equal to nothing but itself. Parameters come back.
fn is_computed(key: &Value) -> bool {
    key.only(Kinds::TENSOR) && key.carries_graph() && !key.traits.has(Traits::LEAF)
}

/// Whether a key hardly comes back: random, a clock, measured, a tensor (which is equal to nothing but itself), a number
/// that goes on counting.
pub(crate) fn is_fresh(analysis: &Analysis, key: &Value, growing: &[LoopId]) -> bool {
    // Names from one caller, numbers from another: who counts is not known.
    let mixed = key.kinds.has(Kinds::TEXT) && key.kinds.has(Kinds::NUMBER);
    if mixed || key.literal != Literal::Any {
        return false;
    }
    if is_computed(key)
        || is_made_for_it(analysis, key, growing)
        || !key.kinds.has(Kinds::UNKNOWN) && key.traits.has(Traits::UNIQUE.with(Traits::MEASURED))
    {
        return true;
    }
    let loops: Vec<LoopId> = growing.iter().copied().filter(|id| analysis.repeats(*id)).collect();
    let of_epochs = |id: &LoopId| analysis.a_loop(*id).kind == LoopKind::Epochs;
    // What starts again with each epoch stands beside the number of the epoch.
    let numbered = key.traits.has(Traits::EPOCH)
        && key.traits.has(Traits::TURN)
        && loops.first().is_some_and(of_epochs)
        && !loops.iter().skip(1).any(of_epochs);
    key.traits.has(Traits::COUNTER) && (!key.traits.has(Traits::RESTARTS) || loops.len() == 1 || numbered)
}
