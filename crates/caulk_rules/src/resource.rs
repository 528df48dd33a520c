//! Things that are made again and again and never given back: closed, joined, released, stopped.

use caulk_python::program::{CallFact, Growth, GrowthCase, Guards, Root, Traits, Value};

use crate::classify::{Purpose, keyed};
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::of_call;
use crate::source;
use crate::twins::{Cause, Found};

/// What makes and what gives back one kind of thing, by canonical names.
pub(crate) struct Kind {
    pub(crate) made: &'static [&'static str],
    pub(crate) given_back: &'static [&'static str],
}

/// Whoever got it may give it back.
const ELSEWHERE: &[&str] = &["with", "handed on"];

/// Calls whose things pile up, each with the worst of the ways there.
pub(crate) fn piling(
    cx: &Context<'_>,
    kind: &Kind,
    counts: impl Fn(&CallFact) -> bool,
) -> Vec<(CallFact, Exposure)> {
    let back = given_back(cx, kind.given_back);
    let mut found: Vec<(CallFact, Exposure)> = Vec::new();
    for made in cx.analysis.calls(kind.made) {
        if made.root == Root::Test || !counts(&made) || reaches(cx, &made, &back) || comes_back(cx, &made) {
            continue;
        }
        let duration = cx.analysis.piling(&made, std::iter::empty());
        if let Some(exposure) = Exposure::outside(cx.analysis, &duration) {
            keep_worst(&mut found, made, exposure);
        }
    }
    found
}

/// Calls whose things are given back, but only once the loop in which they pile up is over, each with where.
pub(crate) fn given_back_late(
    cx: &Context<'_>,
    kind: &Kind,
    counts: impl Fn(&CallFact) -> bool,
) -> Vec<(CallFact, Exposure, CallFact)> {
    let (back, elsewhere) = (cx.analysis.releasing_calls(kind.given_back), cx.analysis.calls(ELSEWHERE));
    let mut found: Vec<(CallFact, Exposure, CallFact)> = Vec::new();
    for made in cx.analysis.calls(kind.made) {
        let known = found.iter().any(|(known, ..)| known.at == made.at);
        // When users call what gives it back, nobody knows.
        if known || made.root != Root::Module || !counts(&made) || reaches(cx, &made, &elsewhere) {
            continue;
        }
        let duration = cx.analysis.piling(&made, std::iter::empty());
        let Some(exposure) = Exposure::outside(cx.analysis, &duration) else { continue };
        let mut reaching =
            back.iter().filter(|call| reaches(cx, &made, std::slice::from_ref(*call))).peekable();
        let last = reaching.peek().map(|call| (*call).clone());
        let late = |call: &CallFact| call.root == Root::Module && !call.around.contains(&exposure.through);
        if let Some(last) = last.filter(|_| reaching.all(late)) {
            found.push((made, exposure, last));
        }
    }
    found
}

/// Calls that give something back, or hand it to somebody who may.
pub(crate) fn given_back(cx: &Context<'_>, names: &[&str]) -> Vec<CallFact> {
    cx.analysis.releasing_calls(&[names, ELSEWHERE].concat())
}

/// Whether what a call makes reaches one of these calls.
pub(crate) fn reaches(cx: &Context<'_>, made: &CallFact, calls: &[CallFact]) -> bool {
    let objects = cx.analysis.resources(&made.result);
    calls.iter().any(|call| {
        [&call.receiver, &call.argument]
            .into_iter()
            .any(|value| cx.analysis.resources(value).iter().any(|object| objects.contains(object)))
    })
}

/// Whether what is made where its key is missing is found under that key later: keys come back, and what holds them stays.
pub(crate) fn comes_back(cx: &Context<'_>, made: &CallFact) -> bool {
    if !made.guards.has(Guards::MISSING) {
        return false;
    }
    let objects = cx.analysis.resources(&made.result);
    let holds = |value: &Value| cx.analysis.resources(value).iter().any(|object| objects.contains(object));
    let mut stored = cx
        .analysis
        .growths()
        .iter()
        .filter(|growth| growth.how == Growth::Store)
        .flat_map(|growth| growth.cases.iter().map(move |case| (growth, case)))
        .filter(|(growth, case)| made.at.is_in(growth.statement) || holds(&case.value))
        .peekable();
    let stays = |case: &GrowthCase| {
        let anew = cx
            .analysis
            .births(case.object)
            .iter()
            .any(|chain| chain.iter().any(|id| cx.analysis.repeats(*id)));
        !anew && cx.analysis.releases(case.object).is_empty()
    };
    stored.peek().is_some()
        && stored.all(|(growth, case)| {
            keyed(cx.analysis, growth, case) == Purpose::Finite
                && !case.key.traits.has(Traits::DATA)
                && stays(case)
        })
}

/// One finding for each place.
pub(crate) fn keep_worst(found: &mut Vec<(CallFact, Exposure)>, made: CallFact, exposure: Exposure) {
    match found.iter_mut().find(|(known, _)| known.at == made.at) {
        Some((_, known)) => *known = known.worse(exposure),
        None => found.push((made, exposure)),
    }
}

/// Reports a call whose things pile up. `what` is said after the call and how often it is made.
pub(crate) fn report<'c>(
    cx: &'c mut Context<'_>,
    made: &CallFact,
    exposure: Exposure,
    what: &str,
    note: &str,
) -> &'c mut Found {
    let container = source::callee(cx.project(), made.at);
    let message = format!("`{container}` is called {}, {what}", exposure.words());
    let mut chain = vec![cx.link(made.at, note)];
    chain.extend(cx.link_loop(exposure, "made again each time this loop turns"));
    let function = cx.function(made.function).to_owned();
    let proof = of_call(cx.analysis, made, exposure);
    let cause = Some(Cause::Called(made.name));
    let diagnostic = cx.report_due_to(cause, made.at, &function, message);
    diagnostic.container = container;
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.chain = chain;
    diagnostic
}
