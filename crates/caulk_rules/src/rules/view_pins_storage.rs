//! Small parts of large tensors and arrays that are kept, and the large storage with them.

use caulk_core::LeakClass;
use caulk_python::Lines;

use crate::claims::Claim;
use crate::container::proof;
use crate::context::{Context, shortened};
use crate::fixes;
use crate::rule::Rule;
use crate::twins::Cause;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::ViewPinsStorage,
    default: true,
    explanation: include_str!("view_pins_storage.md"),
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
        "`{container}` grows {}; each entry is a view that keeps the whole storage it is a part of",
        exposure.words()
    );
    let stored = growth.stored.map(|at| shortened(&cx.text(at)));
    let note = stored.map_or_else(
        || "stored here without a copy".to_owned(),
        |stored| format!("`{stored}` shares the storage of what it is cut from"),
    );
    let mut chain = vec![cx.link(growth.statement, note)];
    chain.extend(cx.made(case.object));
    chain.extend(cx.through(*exposure));
    let fix = fixes::of_stored(cx.analysis, growth.statement, growth.container, Lines::clone_fix);
    let function = cx.function(growth.function).to_owned();
    let proof = proof(cx, claim);
    let diagnostic = cx.report_due_to(Cause::held(claim.holder), growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
}
