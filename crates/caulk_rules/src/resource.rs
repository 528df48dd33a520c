//! Things that are made again and again and never given back: closed, joined, released, stopped.

use caulk_python::program::CallFact;

use crate::context::Context;
use crate::exposure::Exposure;

/// Whoever got it may give it back.
const ELSEWHERE: &[&str] = &["with", "handed on"];

/// Calls that give something back, or hand it to somebody who may.
pub(crate) fn given_back(cx: &Context<'_>, names: &[&str]) -> Vec<CallFact> {
    cx.analysis.calls(&[names, ELSEWHERE].concat())
}

/// Whether what a call makes reaches one of these calls.
pub(crate) fn is_given_back(cx: &Context<'_>, made: &CallFact, back: &[CallFact]) -> bool {
    let objects = cx.analysis.resources(&made.result);
    back.iter().any(|call| {
        [&call.receiver, &call.argument]
            .into_iter()
            .any(|value| cx.analysis.resources(value).iter().any(|object| objects.contains(object)))
    })
}

/// One finding for each place.
pub(crate) fn keep_worst(found: &mut Vec<(CallFact, Exposure)>, made: CallFact, exposure: Exposure) {
    match found.iter_mut().find(|(known, _)| known.at == made.at) {
        Some((_, known)) => *known = known.worse(exposure),
        None => found.push((made, exposure)),
    }
}
