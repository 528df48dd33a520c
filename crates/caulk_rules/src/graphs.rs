//! What the rules about autograd graphs tell in common.

use caulk_core::Fix;
use caulk_python::program::Kinds;
use caulk_python::{Lines, Location};

use crate::carried::CarryClaim;
use crate::claims::Claim;
use crate::context::{Context, shortened};
use crate::fixes;
use crate::proven::{of_carry, of_growth};
use crate::twins::Cause;
use crate::weight::Weight;

/// Reports a container of tensors with their graphs; `note` says what happens where they are stored.
pub(crate) fn report_growth(cx: &mut Context<'_>, claim: &Claim, note: &str) {
    let Claim { growth, case, exposure, .. } = claim;
    let Some(graph) = cx.analysis.contents(&case.value).graph else { return };
    let container = cx.text(growth.container);
    let made = cx.analysis.origin(&graph).map(|at| shortened(&cx.text(at)));
    let of = made.map_or_else(|| "its tensor".to_owned(), |made| format!("`{made}`"));
    let message = format!("`{container}` grows {}; each entry keeps the graph of {of}", exposure.words());
    let mut chain = Vec::new();
    chain.extend(cx.source(&graph));
    chain.extend(cx.records(*exposure));
    chain.push(cx.link(growth.statement, note));
    chain.extend(cx.made(case.object));
    chain.extend(cx.through(*exposure));
    // What one caller calls a loss is a number of another's: it has no `detach`.
    let mixed = growth.cases.iter().any(|case| case.value.kinds.has(Kinds::NUMBER));
    let fix = without_graph(cx, growth.statement, growth.container, mixed);
    let function = cx.function(growth.function).to_owned();
    let proof = of_growth(cx, claim);
    let diagnostic = cx.report_due_to(Cause::held(claim.holder), growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.weight = Weight::Graphs;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
}

/// Stores a value without its graph; as a number, where it is one already for some caller.
fn without_graph(cx: &Context<'_>, statement: Location, container: Location, mixed: bool) -> Option<Fix> {
    if mixed {
        return fixes::of_stored(cx.analysis, statement, container, Lines::float_fix);
    }
    fixes::detached(cx.analysis, statement, container)
}

/// Reports a place that is bound to something made from what it held; `does` says of it what `note` says of the line.
pub(crate) fn report_carry(cx: &mut Context<'_>, claim: &CarryClaim, does: &str, note: &str) {
    let CarryClaim { carry, case, exposure, .. } = claim;
    let target = cx.text(carry.target);
    let message = format!("`{target}` {does}: its graph gets longer {}", exposure.words());
    let mut chain = Vec::new();
    chain.extend(cx.source(&case.value));
    chain.extend(cx.records(*exposure));
    chain.push(cx.link(carry.statement, note));
    chain.extend(cx.through(*exposure));
    let mixed = cx.analysis.calls(&["number added"]).iter().any(|added| added.at == carry.target);
    let fix = without_graph(cx, carry.statement, carry.target, mixed);
    let function = cx.function(carry.function).to_owned();
    let cause = Cause::held(cx.analysis.holder_of(carry.place));
    let proof = of_carry(cx, claim);
    let diagnostic = cx.report_due_to(cause, carry.target, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.weight = Weight::Graphs;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
}
