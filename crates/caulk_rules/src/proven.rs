//! The parts of a proof, from what the analysis knows.

use caulk_core::{Certainty, LeakClass, Proof, Scope};
use caulk_python::Analysis;
use caulk_python::program::{
    CallFact, Duration, FunctionId, GrowthCase, Guards, Holder, Kinds, LoopId, LoopKind, ObjectId, Root,
    Value,
};

use crate::carried::CarryClaim;
use crate::claims::Claim;
use crate::context::Context;
use crate::exposure::{Exposure, Pace};
use crate::source::{never_left, statement_at};
use crate::weight::{graphness, largeness};

/// Whether a duration's loops run many times.
pub(crate) fn repeats(analysis: &Analysis, duration: &Duration, function: FunctionId) -> Certainty {
    let certain = duration.growing.iter().filter_map(|id| turns(analysis, *id)).max();
    let certain = certain.unwrap_or(Certainty::Assumed);
    // A module that nobody in the project applies.
    let applied = duration.root == Root::Framework(&[LoopId::EPOCHS, LoopId::STEPS])
        && is_plain_module(analysis, function);
    // A hook of a model that may be another one than that which is trained.
    let hooked = matches!(duration.root, Root::Framework([LoopId::CALLBACKS, ..]));
    if applied || hooked {
        return certain.min(Certainty::Likely);
    }
    // A constructor's condition asks for settings, which do not change with the turns of a loop around it.
    let made = analysis.function(function).name.ends_with("__init__");
    let asked = duration.guards.has(Guards::CONDITION.with(Guards::SWITCH));
    if asked && made && certain == Certainty::Likely {
        return Certainty::Assumed;
    }
    certain
}

/// What is proven but for a condition in the loop: nobody knows whether it ever holds.
///
/// Counts of steps, missing keys and successful reads hold in time.
fn on_condition(proof: Proof, guards: Guards) -> Proof {
    const IN_TIME: Guards = Guards::MODULO.with(Guards::CHOSEN).with(Guards::MISSING).with(Guards::SUCCESS);
    let unresolved = guards.has(Guards::CONDITION.with(Guards::SWITCH)) && !guards.has(IN_TIME);
    if unresolved && proof == Proof::FULL { Proof { repeats: Certainty::Likely, ..proof } } else { proof }
}

/// The same where only the loops are known.
pub(crate) fn repeats_through(analysis: &Analysis, loops: &[LoopId]) -> Certainty {
    loops.iter().filter_map(|id| turns(analysis, *id)).max().unwrap_or(Certainty::Assumed)
}

/// Whether a loop turns many times; `None` where it does not repeat.
fn turns(analysis: &Analysis, id: LoopId) -> Option<Certainty> {
    if !analysis.repeats(id) {
        return None;
    }
    let a_loop = analysis.a_loop(id);
    // Each turn is a step of a training, or the source of turns is resolved.
    let steps = id != LoopId::CALLBACKS && analysis.trains(id) && analysis.is_step(id);
    let endless = || {
        let forever = a_loop.kind == LoopKind::Forever;
        forever && a_loop.at.and_then(|at| statement_at(analysis.project(), at)).is_some_and(never_left)
    };
    let framework = a_loop.at.is_none() && id != LoopId::CALLBACKS;
    Some(Certainty::proven_if(framework || steps || a_loop.counted || endless(), Certainty::Likely))
}

fn is_plain_module(analysis: &Analysis, function: FunctionId) -> bool {
    let Some(class) = analysis.function(function).class else { return false };
    let bases = &analysis.class(class).libraries;
    bases.iter().any(|base| base.starts_with("torch.nn."))
        && !bases.iter().any(|base| base.ends_with(".LightningModule"))
}

/// Whether nothing in the project empties a container or rebinds its place, beside what the loops show.
fn unreleased(analysis: &Analysis, object: ObjectId, duration: &Duration, scope: Scope) -> Certainty {
    if scope != Scope::Run {
        // Within the epoch, which the loops show.
        return Certainty::Proven;
    }
    if analysis.is_emptied_beside(object, duration) { Certainty::Assumed } else { Certainty::Proven }
}

/// Whether what holds a container outlives the loops.
fn outlives(analysis: &Analysis, claim: &Claim) -> Certainty {
    let Claim { case, holder, exposure, .. } = claim;
    match holder {
        // Nobody uses or returns the list that an object of a library keeps.
        Holder::Local if analysis.gives_back(case.object).is_some() => Certainty::Proven,
        // A function is about to use, or to give back, what it gathers.
        Holder::Local | Holder::Closure(..) => Certainty::Likely,
        Holder::Attribute(..) => {
            let known = !analysis.births(case.object).is_empty();
            let own = case.duration.growing.iter().any(|id| {
                let a_loop = analysis.a_loop(*id);
                a_loop.at.is_none() || a_loop.function == Some(claim.growth.function)
            });
            // An object that only the calling function has goes with it.
            let trains = case.duration.growing.iter().any(|id| analysis.trains(*id));
            let gathers = case.duration.of_call && !trains && exposure.pace != Pace::Step;
            Certainty::proven_if((known || own) && !gathers, Certainty::Likely)
        }
        _ => Certainty::Proven,
    }
}

/// Whether what a container gets keeps a graph, whichever of several objects it is.
fn keeps_graph(cx: &Context<'_>, claim: &Claim) -> Certainty {
    let Some(graph) = claim.contents.graph else { return Certainty::Assumed };
    let value = &claim.case.value;
    let certain = graphness(&graph, &cx.claims.differentiated);
    if value.carries_graph() {
        return certain;
    }
    let made = |object| cx.analysis.contents_made_in(&Value::object(object), claim.exposure.inner);
    if value.objects.iter().any(|object| made(object).graph.is_none()) {
        return Certainty::Assumed;
    }
    if value.kinds.has(Kinds::UNKNOWN) { certain.min(Certainty::Likely) } else { certain }
}

/// Of a container that grows, by its class.
pub(crate) fn of_growth(cx: &Context<'_>, claim: &Claim) -> Proof {
    let Claim { class, growth, case, exposure, contents, .. } = claim;
    let analysis = cx.analysis;
    let kind = match class {
        LeakClass::GraphKeptInContainer | LeakClass::GraphRetained | LeakClass::StateNotDetached => {
            keeps_graph(cx, claim)
        }
        LeakClass::ViewPinsStorage => contents.view.as_ref().map_or(Certainty::Assumed, |view| {
            Certainty::proven_if(view.only(Kinds::TENSOR.with(Kinds::ARRAY)), Certainty::Likely)
        }),
        LeakClass::UnboundedHistory
        | LeakClass::GlobalAccumulation
        | LeakClass::MutableDefaultGrows
        | LeakClass::StepOutputsNotCleared
        | LeakClass::UnboundedCache
        | LeakClass::UnboundedQueue => largeness(contents),
        // The class itself is the kind.
        _ => Certainty::Proven,
    };
    let graph = matches!(
        class,
        LeakClass::GraphKeptInContainer | LeakClass::GraphRetained | LeakClass::StateNotDetached
    );
    let pinned = graph || *class == LeakClass::ExceptionKeepsFrames;
    let local = matches!(claim.holder, Holder::Local | Holder::Closure(..));
    let proof = Proof {
        repeats: repeats(analysis, &case.duration, growth.function),
        kind,
        // A list of graphs or frames grows in the loop around it, whatever is done with it later.
        outlives: if pinned && local { Certainty::Proven } else { outlives(analysis, claim) },
        unreleased: unreleased(analysis, case.object, &case.duration, exposure.scope),
    };
    on_condition(proof, case.duration.guards)
}

/// Of a container that grows, where its class is the kind of what goes in.
pub(crate) fn of_case(analysis: &Analysis, case: &GrowthCase, function: FunctionId) -> Proof {
    Proof { repeats: repeats(analysis, &case.duration, function), ..Proof::FULL }
}

/// Of a place whose graph gets longer.
pub(crate) fn of_carry(cx: &Context<'_>, claim: &CarryClaim) -> Proof {
    let CarryClaim { carry, case, .. } = claim;
    let proof = Proof {
        repeats: repeats(cx.analysis, &case.duration, carry.function),
        kind: graphness(&case.value, &cx.claims.differentiated),
        ..Proof::FULL
    };
    on_condition(proof, case.duration.guards)
}

/// Of what a call makes, which nothing gives back: what it is, and that it lasts, is known of the library.
pub(crate) fn of_call(analysis: &Analysis, call: &CallFact, exposure: Exposure) -> Proof {
    // Every so many steps of one epoch may be once or twice.
    let few = exposure.scope == Scope::Epoch && call.guards.has(Guards::MODULO);
    let repeats = repeats(analysis, &loops_of(call, exposure), call.function);
    let proof = Proof { repeats: if few { Certainty::Assumed } else { repeats }, ..Proof::FULL };
    on_condition(proof, call.guards)
}

/// The loops of an exposure around a call.
fn loops_of(call: &CallFact, exposure: Exposure) -> Duration {
    let start = call.around.iter().position(|id| *id == exposure.through).unwrap_or(0);
    Duration {
        growing: call.around[start..].to_vec(),
        around: call.around.clone(),
        guards: call.guards,
        root: call.root,
        released_by: None,
        of_call: false,
    }
}
