//! Tensors on an accelerator, or in pinned memory, that are kept for the whole run.

use caulk_core::LeakClass;

use crate::claims::Claim;
use crate::container::proof;
use crate::context::Context;
use crate::rule::Rule;
use crate::twins::Cause;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::DeviceTensorKept,
    default: true,
    explanation: include_str!("device_tensor_kept.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for claim in cx.growths() {
        report(cx, claim);
    }
}

fn report(cx: &mut Context<'_>, claim: &Claim) {
    let Claim { growth, case, exposure, .. } = claim;
    let container = cx.text(growth.container);
    let message = format!(
        "`{container}` grows {}; its tensors stay on the accelerator or in pinned memory",
        exposure.words()
    );
    let mut chain = vec![cx.link(growth.statement, "stored where the accelerator or its driver keeps it")];
    chain.extend(cx.made(case.object));
    chain.extend(cx.through(*exposure));
    let function = cx.function(growth.function).to_owned();
    let proof = proof(cx, claim);
    let diagnostic = cx.report_due_to(Cause::held(claim.holder), growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.chain = chain;
}
