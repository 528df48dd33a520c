//! What outlives its step, each place once: under the class that says most about it.
//!
//! Rules report what is claimed for them here, so that no place is reported twice. What kind of thing keeps it comes
//! first, then what is kept: graphs, tensors on an accelerator, views. Graphs that somebody differentiates later, or
//! that a function hands to its caller, are meant to be kept.

use std::collections::BTreeSet;

use caulk_core::{Group, LeakClass, Scope};
use caulk_python::program::{
    CallFact, CarryCase, CarryFact, Contents, Duration, FunctionId, Growth, GrowthCase, GrowthFact, Holder,
    Literal, LoopId, LoopKind, ObjectId, OriginId, Place, Root, Shape, Value,
};
use caulk_python::{Analysis, FileId};

use crate::carried::{self, CarryClaim};
use crate::classify::{Growing, Purpose, is_limited, is_made_for_it, is_short_lived};
use crate::exposure::{Exposure, Pace};
use crate::source::{is_of_another_framework, is_unpacked};
use crate::source::{never_left, statement_at};
use crate::tables::TABLES;
use crate::written::is_written_first;

/// Calls that differentiate: graphs are there for them.
const BACKWARD: &[&str] = &["torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad"];

/// The same of trainers, with what they differentiate as an argument.
const TRAINERS_BACKWARD: &[&str] = &["accelerate.Accelerator.backward", "lightning.fabric.Fabric.backward"];

/// A container that grows.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) class: LeakClass,
    pub(crate) growth: GrowthFact,
    /// The worst of its cases.
    pub(crate) case: GrowthCase,
    pub(crate) exposure: Exposure,
    /// What one turn of the loop adds.
    pub(crate) contents: Contents,
    pub(crate) holder: Holder,
}

/// Everything that outlives its step.
#[derive(Debug)]
pub(crate) struct Claims {
    pub(crate) growths: Vec<Claim>,
    pub(crate) carries: Vec<CarryClaim>,
    /// Where graphs are made that somebody differentiates: these are graphs for certain.
    pub(crate) differentiated: BTreeSet<OriginId>,
}

impl Claims {
    pub(crate) fn new(analysis: &Analysis) -> Self {
        let judge = Judge {
            analysis,
            backward: analysis.calls(BACKWARD),
            evaluations: analysis.calls(&["torch.nn.Module.eval"]),
            tables: analysis.calls(TABLES),
            removals: analysis.calls(&["torch.utils.hooks.RemovableHandle.remove"]),
        };
        let mut growths: Vec<Claim> =
            analysis.growths().iter().filter_map(|growth| judge.growth(growth)).collect();
        let carried = analysis.carries();
        let claimed = carried.iter().filter_map(|carry| judge.carry(carry.clone())).collect();
        let mut carries = carried::settled(analysis, &carried, claimed);
        // Tensors of another framework carry no graph of torch's.
        let foreign: BTreeSet<FileId> = analysis
            .project()
            .ids()
            .filter(|file| is_of_another_framework(analysis.project(), *file))
            .collect();
        carries.retain(|claim| !foreign.contains(&claim.carry.target.file));
        growths.retain(|claim| {
            claim.class.group() != Group::Graph || !foreign.contains(&claim.growth.container.file)
        });
        // `x = torch.cat([x, y])` grows and takes its graph along, which is the worse.
        growths.retain(|claim| !carries.iter().any(|carry| carry.carry.target == claim.growth.container));
        let passes = analysis.calls(&[BACKWARD, TRAINERS_BACKWARD].concat());
        let graphs = passes.iter().flat_map(|pass| [&pass.receiver, &pass.argument]);
        // Of several things that one call gives, the others may be plain.
        let whole = |graph: &&Value| {
            let at = analysis.origin(graph);
            graph.carries_graph() && !at.is_some_and(|at| is_unpacked(analysis.project(), at))
        };
        let differentiated = graphs.filter(whole).filter_map(|graph| graph.origin).collect();
        Self { growths, carries, differentiated }
    }
}

/// Whether a call has an argument of this name that is not `False`.
pub(crate) fn asks_for(analysis: &Analysis, call: &CallFact, name: &str) -> bool {
    call.argument(analysis, None, name).is_some_and(|value| value.literal != Literal::Bool(false))
}

/// What is made of one case.
struct Judgment {
    class: LeakClass,
    exposure: Exposure,
    contents: Contents,
    holder: Holder,
}

impl Judgment {
    /// Is it known that something large or with a graph goes in?
    fn is_known(&self) -> bool {
        self.contents.graph.is_some() || self.contents.heavy.is_some()
    }
}

struct Judge<'a> {
    analysis: &'a Analysis,
    backward: Vec<CallFact>,
    evaluations: Vec<CallFact>,
    tables: Vec<CallFact>,
    /// Where hooks are taken off again.
    removals: Vec<CallFact>,
}

impl Judge<'_> {
    fn growth(&self, growth: &GrowthFact) -> Option<Claim> {
        let judged = growth.cases.iter().filter_map(|case| Some((self.claim(growth, case)?, case)));
        let (judgment, case) = judged.reduce(|worst, other| {
            let (one, two) = (&worst.0, &other.0);
            let same = one.class == two.class;
            // A caller of which nothing is known does not silence another.
            if one.is_known() != two.is_known() {
                return if one.is_known() { worst } else { other };
            }
            // Nor does an object that is emptied silence another one of the class.
            let emptied = |case: &GrowthCase| self.analysis.is_emptied_beside(case.object, &case.duration);
            if let (first, second) = (emptied(worst.1), emptied(other.1))
                && first != second
            {
                return if first { other } else { worst };
            }
            if one.class < two.class || same && one.exposure.worse(two.exposure) == one.exposure {
                worst
            } else {
                other
            }
        })?;
        let Judgment { class, exposure, contents, holder } = judgment;
        let case = case.clone();
        Some(Claim { class, growth: growth.clone(), case, exposure, contents, holder })
    }

    fn claim(&self, growth: &GrowthFact, case: &GrowthCase) -> Option<Judgment> {
        if is_limited(case) {
            return None;
        }
        let analysis = self.analysis;
        let mut duration = case.duration.clone();
        let holder = match analysis.holder(case.object) {
            // Inner functions use it, too; it grows in the function whose variable it is.
            Holder::Closure(owner, _) if owner == growth.function => Holder::Local,
            // An inner function is called from that function: it goes with the call.
            Holder::Closure(owner, _) if self.is_called_from(owner, &duration) => {
                self.leave_out_before(owner, &mut duration);
                Holder::Local
            }
            // Made outside of the definition, for the function that is defined there: `def hook(x, kept=found)`.
            Holder::Default(function, _) if !self.is_default(case.object, function) => Holder::Local,
            holder => holder,
        };
        if self.is_of_one_pass(case, holder) {
            return None;
        }
        // The storage behind a view of every batch is too much even while a function runs.
        let batches = |id: &LoopId| analysis.a_loop(*id).kind != LoopKind::Items;
        let entry = analysis.contents(&case.value);
        let pins = entry.view.is_some() && entry.graph.is_none() && duration.growing.iter().any(batches);
        duration.of_call &= !pins;
        // Whoever reads a queue reads it meanwhile.
        duration.of_call &= analysis.object(case.object).shape != Shape::Queue;
        let mut exposure = Exposure::of(analysis, &duration, holder)?;
        if is_short_lived(analysis, case) {
            exposure.scope = exposure.scope.max(Scope::Epoch);
        }
        // A key that nobody else has is kept like a value.
        let keys = growth.how == Growth::Store && is_made_for_it(analysis, &case.key, &duration.growing);
        let kept = if keys { case.value.join(&case.key) } else { case.value };
        let contents = analysis.contents_made_in(&kept, exposure.inner);
        let growing =
            Growing { analysis, growth, case, holder, exposure, contents: &contents, tables: &self.tables };
        let class = match growing.purpose() {
            Purpose::Known(class) => class,
            Purpose::Finite => return None,
            Purpose::Numbered => {
                contents.graph?;
                exposure.scope = exposure.scope.max(Scope::Epoch);
                self.class_by_contents(&growing)?
            }
            Purpose::Any => self.class_by_contents(&growing)?,
        };
        Some(Judgment { class, exposure, contents, holder })
    }

    /// Leaves out the loops around the call of a function whose loops are under way.
    fn leave_out_before(&self, owner: FunctionId, duration: &mut Duration) {
        let before = |id: &&LoopId| self.analysis.a_loop(**id).function != Some(owner);
        let outside = duration.growing.iter().take_while(before).count();
        duration.growing.drain(..outside);
    }

    /// Whether something happens while a loop of a function is under way.
    fn is_called_from(&self, owner: FunctionId, duration: &Duration) -> bool {
        let handed = matches!(duration.root, Root::Framework([LoopId::CALLBACKS, ..]));
        !handed && duration.around.iter().any(|id| self.analysis.a_loop(*id).function == Some(owner))
    }

    /// Whether an object is made by the default of a parameter itself.
    fn is_default(&self, object: ObjectId, function: FunctionId) -> bool {
        let made = self.analysis.object(object).at;
        made.is_none_or(|at| at.is_in(self.analysis.function(function).at))
    }

    /// Whether hooks fill a variable of a function that removes them itself, after what it does once.
    fn is_of_one_pass(&self, case: &GrowthCase, holder: Holder) -> bool {
        let Holder::Closure(owner, _) = holder else { return false };
        matches!(case.duration.root, Root::Framework([LoopId::CALLBACKS, ..]))
            && self.removals.iter().any(|removal| removal.function == owner)
            && !self.analysis.loops(owner).any(|id| self.analysis.repeats(id))
    }

    fn class_by_contents(&self, growing: &Growing<'_>) -> Option<LeakClass> {
        let Growing { growth, case, holder, exposure, contents, .. } = *growing;
        // Under `no_grad`, only a tensor that was made before it in the same function is known to carry a graph.
        let known = |graph: &Value| case.recording || self.is_made_in(growth.function, graph);
        if contents.graph.is_some_and(|graph| known(&graph)) {
            let used = holder == Holder::Local && self.differentiated(growth.function, exposure);
            let kept = !used && self.nobody_waits(growth.function, exposure);
            return kept.then(|| self.class_of_graph(growth, case, contents));
        }
        let often = exposure.scope == Scope::Run && exposure.pace != Pace::Epoch;
        // What is stored under keys is a cache, with as many entries as keys.
        let gathered = often && growth.how != Growth::Store;
        Some(match (contents.on_device, contents.view) {
            (Some(_), _) if gathered => LeakClass::DeviceTensorKept,
            (_, Some(_)) if gathered => LeakClass::ViewPinsStorage,
            _ => growing.place(),
        })
    }

    fn class_of_graph(&self, growth: &GrowthFact, case: &GrowthCase, contents: &Contents) -> LeakClass {
        let retained = self.backward.iter().any(|call| {
            call.function == growth.function
                && call.receiver.origin.is_some_and(|origin| contents.origins.contains(origin))
                && ["retain_graph", "create_graph"].iter().any(|name| asks_for(self.analysis, call, name))
        });
        // An iterate of a loop that is done by now: all its iterations hang on it.
        let iterated = contents.iterated.iter().any(|id| {
            self.analysis.a_loop(id).function == Some(growth.function) && !case.duration.around.contains(&id)
        });
        if retained {
            LeakClass::GraphRetained
        } else if iterated {
            LeakClass::StateNotDetached
        } else {
            LeakClass::GraphKeptInContainer
        }
    }

    /// Whether a state is set before a loop over the steps of one sequence, through which its graph is to go.
    fn is_of_one_sequence(&self, carry: &CarryFact, duration: &Duration) -> bool {
        let of_steps = |id: &LoopId| {
            let a_loop = self.analysis.a_loop(*id);
            let endless = || {
                let at = a_loop.at.and_then(|at| statement_at(self.analysis.project(), at));
                at.is_none_or(never_left)
            };
            match a_loop.kind {
                LoopKind::Batches | LoopKind::Epochs | LoopKind::Folds => false,
                LoopKind::Forever => !self.analysis.trains(*id) && !endless(),
                _ => !self.analysis.trains(*id),
            }
        };
        duration.growing.iter().all(of_steps) && self.analysis.is_set_before(carry.place, duration)
    }

    fn carry(&self, carry: CarryFact) -> Option<CarryClaim> {
        if is_written_first(self.analysis.project(), carry.target, carry.statement) {
            return None;
        }
        let holder = self.analysis.holder_of(carry.place);
        let judged = carry.cases.iter().filter_map(|case| {
            let mut duration = case.duration.clone();
            let mut holder = holder;
            if let Holder::Closure(owner, _) = holder
                && owner != carry.function
                && self.is_called_from(owner, &duration)
            {
                self.leave_out_before(owner, &mut duration);
                holder = Holder::Local;
            }
            if self.analysis.goes_with_function(carry.place) {
                // What a framework calls has returned when it calls again.
                let returns = |id: &LoopId| self.analysis.a_loop(*id).at.is_none();
                let called = duration.growing.iter().take_while(|id| returns(id)).count();
                duration.growing.drain(..called);
                self.leave_out_callers(&carry, &mut duration);
            }
            let exposure = Exposure::of(self.analysis, &duration, holder)?;
            if self.is_left_to_users(holder, &case.duration)
                || !self.goes_on(&carry, case, holder)
                || self.is_of_one_sequence(&carry, &duration)
            {
                return None;
            }
            let local = holder == Holder::Local && self.differentiated(carry.function, exposure);
            let used = self.backward.iter().any(|call| {
                call.receiver.comes_from(carry.place) && !call.around.contains(&exposure.through)
            });
            let kept = !local && !used && self.nobody_waits(carry.function, exposure);
            kept.then_some((exposure, case))
        });
        let (exposure, case) =
            judged.reduce(|worst, other| if worst.0.worse(other.0) == worst.0 { worst } else { other })?;
        let class = if case.fed { LeakClass::StateNotDetached } else { LeakClass::LossKeptWithGraph };
        let case = case.clone();
        Some(CarryClaim { class, carry, case, exposure })
    }

    /// A container that only variables hold is gone when the function that makes it has returned: loops around the calls
    /// of that function make another one in each turn.
    fn leave_out_callers(&self, carry: &CarryFact, duration: &mut Duration) {
        let Place::Field(object, _) = self.analysis.place(carry.place) else { return };
        let maker = self.analysis.object(object).at.and_then(|at| self.analysis.function_around(at));
        let Some(maker) = maker.filter(|maker| maker.name != "<module>") else { return };
        let inside = |id: &LoopId| self.analysis.a_loop(*id).at.is_some_and(|at| at.is_in(maker.at));
        let of_carrier = |id: &LoopId| self.analysis.a_loop(*id).function == Some(carry.function);
        let outside = duration.growing.iter().take_while(|id| !inside(id) && !of_carrier(id)).count();
        duration.growing.drain(..outside);
    }

    fn is_made_in(&self, function: FunctionId, value: &Value) -> bool {
        let body = self.analysis.function(function).at;
        self.analysis.origin(value).is_some_and(|origin| origin.is_in(body))
    }

    /// State of a model that nobody in the project applies: who does may reset it, and may do so without gradients.
    fn is_left_to_users(&self, holder: Holder, duration: &Duration) -> bool {
        let Holder::Attribute(class, _) = holder else { return false };
        let bases = &self.analysis.class(class).libraries;
        let own = duration.growing.iter().any(|id| self.analysis.a_loop(*id).at.is_some());
        duration.root != Root::Module && !own && bases.iter().any(|base| base.starts_with("torch.nn."))
    }

    /// Loops that train, or go through batches, steps or epochs: others may be those of a solver, which mean to carry on.
    /// A solver has its loop and its state in one function: what an object holds from call to call is none.
    fn goes_on(&self, carry: &CarryFact, case: &CarryCase, holder: Holder) -> bool {
        let held = case.fed && !matches!(holder, Holder::Local | Holder::Closure(..));
        case.duration.growing.iter().any(|id| {
            let a_loop = self.analysis.a_loop(*id);
            let weak = matches!(a_loop.kind, LoopKind::While | LoopKind::Items);
            let of_caller = held && a_loop.function != Some(carry.function);
            self.analysis.repeats(*id) && (self.analysis.trains(*id) || !weak || of_caller)
        })
    }

    /// Whether a function differentiates once the loop is over.
    fn differentiated(&self, function: FunctionId, exposure: Exposure) -> bool {
        self.backward.iter().any(|call| call.function == function && !call.around.contains(&exposure.through))
    }

    /// What an evaluation gathers is not for a backward pass. Of other functions that is known only where they keep
    /// what they gather to themselves.
    fn nobody_waits(&self, function: FunctionId, exposure: Exposure) -> bool {
        // Graphs of epoch after epoch are more than anybody means to differentiate.
        let epochs = self.analysis.a_loop(exposure.through).kind == LoopKind::Epochs;
        exposure.scope != Scope::Peak
            || epochs && exposure.through != exposure.inner
            || self.evaluates(function)
            || self.analysis.a_loop(exposure.through).kind == LoopKind::Batches
                && !self.analysis.returns_graph(function)
    }

    fn evaluates(&self, function: FunctionId) -> bool {
        const WORDS: &[&str] =
            &["eval", "evaluate", "evaluation", "val", "valid", "validate", "validation", "test"];
        let name =
            self.analysis.function(function).name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        name.split('_').any(|word| WORDS.contains(&word))
            || self.evaluations.iter().any(|call| call.function == function)
    }
}
