//! Objects with tensors that point at each other and are made again and again.

use caulk_core::{Certainty, LeakClass, Proof, SiteRole};
use caulk_python::program::{BindFact, CallFact, Guards, Kinds, ObjectId, Place, Root, Shape, Symbol, Value};

use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::repeats_through;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::ReferenceCycle,
    default: true,
    explanation: include_str!("reference_cycle.md"),
    check,
};

/// An object that refers back to what holds it.
struct Back {
    bind: BindFact,
    exposure: Exposure,
}

fn check(cx: &mut Context<'_>) {
    let off = collector_off(cx);
    let mut told = Vec::new();
    for bind in cx.analysis.binds() {
        let target = bind.target;
        if let Some(back) = back_reference(cx, bind, off.is_some())
            && !told.contains(&target)
        {
            told.push(target);
            report(cx, &back, off.as_ref());
        }
    }
}

/// Where the collector is switched off, while no loop collects or switches it on again.
struct Off {
    call: CallFact,
    /// A loop switches it off again and again, which makes sense only if it is switched on in between.
    in_loop: bool,
    /// A loop collects under a condition that nobody knows.
    doubted: bool,
}

fn collector_off(cx: &Context<'_>) -> Option<Off> {
    let off = cx.analysis.calls(&["gc.disable"]).into_iter().find(|call| call.root != Root::Test)?;
    let repeats = |call: &CallFact| call.around.iter().any(|id| cx.analysis.repeats(*id));
    let mut again =
        cx.analysis.releasing_calls(&["gc.enable", "gc.collect"]).into_iter().filter(repeats).peekable();
    let (in_loop, doubted) = (repeats(&off), again.peek().is_some());
    // Under a condition of its own, it may never happen; two conditions may be the same setting.
    let of_setting = off.guards.has(Guards::CONDITION);
    let doubtful = |call: CallFact| {
        call.guards.has(Guards::CONDITION) && !call.guards.has(Guards::MODULO) && !of_setting
    };
    again.all(doubtful).then_some(Off { call: off, in_loop, doubted })
}

/// `off`: nobody collects.
fn back_reference(cx: &Context<'_>, bind: BindFact, off: bool) -> Option<Back> {
    let Place::Field(child, name) = bind.place else { return None };
    if bind.root == Root::Test || !matches!(cx.analysis.object(child).shape, Shape::Instance(_)) {
        return None;
    }
    let held = bind
        .value
        .objects
        .iter()
        .any(|parent| gathers(cx, parent, child, name) || off && has(cx, parent, child, name));
    if !held {
        return None;
    }
    let births = cx.analysis.births(child).into_iter();
    let exposure =
        births.filter_map(|chain| Exposure::around(cx.analysis, &chain)).reduce(Exposure::worse)?;
    let contents = cx.analysis.contents(&Value::object(child));
    // A model that is made with them goes with them.
    let has_model = contents.kinds.has(Kinds::MODULE) && cx.analysis.makes_models(exposure.through);
    (has_model || contents.heavy.or(contents.graph).is_some()).then_some(Back { bind, exposure })
}

/// Whether an object has a container, under another name, that an object is put into.
fn gathers(cx: &Context<'_>, parent: ObjectId, child: ObjectId, back: Symbol) -> bool {
    let known = cx.analysis.object(parent);
    matches!(known.shape, Shape::Instance(_))
        && known.fields.iter().filter(|(name, _)| **name != back).any(|(_, value)| {
            value.objects.iter().any(|inner| {
                let inner = cx.analysis.object(inner);
                inner.shape.is_container() && inner.elements.objects.contains(child)
            })
        })
}

/// Whether an object has another as an attribute of another name.
fn has(cx: &Context<'_>, parent: ObjectId, child: ObjectId, back: Symbol) -> bool {
    let known = cx.analysis.object(parent);
    matches!(known.shape, Shape::Instance(_))
        && known.fields.iter().any(|(name, value)| *name != back && value.objects.contains(child))
}

fn report(cx: &mut Context<'_>, back: &Back, off: Option<&Off>) {
    let target = cx.text(back.bind.target);
    let until = match off {
        Some(_) => "nothing frees them: the collector is switched off",
        None => "their tensors stay until the collector comes by",
    };
    let message = format!(
        "`{target}` points back at what holds its object: such objects are made {}, and {until}",
        back.exposure.pace.words()
    );
    let mut chain = vec![cx.link(back.bind.statement, "closes the cycle")];
    chain.extend(off.map(|off| cx.link(off.call.at, "cycles are not collected from here on")));
    chain.extend(cx.through(back.exposure));
    let more = off.map(|off| cx.site(SiteRole::ReleasesMissing, off.call.at, off.call.function));
    let leads = off.is_some_and(|off| off.in_loop);
    let proof = Proof {
        repeats: repeats_through(cx.analysis, &[back.exposure.through, back.exposure.inner]),
        unreleased: match off {
            Some(off) => Certainty::proven_if(!off.doubted, Certainty::Likely),
            // The collector frees them, sooner or later.
            None => Certainty::Assumed,
        },
        ..Proof::FULL
    };
    let diagnostic = cx.report(back.bind.target, cx.function(back.bind.function), message);
    diagnostic.proof = proof;
    diagnostic.scope = back.exposure.scope;
    diagnostic.chain = chain;
    diagnostic.sites.extend(more);
    if leads {
        diagnostic.sites.reverse();
    }
}
