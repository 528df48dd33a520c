//! A list that is added to at every step for the whole run, and iterators that keep all they have given.

use caulk_core::{Certainty, LeakClass, Proof, Scope};
use caulk_python::program::{CallFact, Kinds, Root};

use crate::advice::advice;
use crate::container::{history, report};
use crate::context::Context;
use crate::rule::Rule;
use crate::source::callee;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::UnboundedHistory,
    default: true,
    explanation: include_str!("unbounded_history.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| history(cx, kept, "the history"));
    let mut seen = Vec::new();
    for cycle in cx.analysis.calls(&["itertools.cycle"]) {
        if cycle.root != Root::Test && cycle.argument.kinds.has(Kinds::LOADER) && !seen.contains(&cycle.at) {
            seen.push(cycle.at);
            report_cycle(cx, &cycle);
        }
    }
}

/// `itertools.cycle(loader)`: it saves a copy of each element of the first pass (Python's library reference).
fn report_cycle(cx: &mut Context<'_>, cycle: &CallFact) {
    let anew = cycle.around.iter().any(|id| cx.analysis.repeats(*id));
    let container = callee(cx.project(), cycle.at);
    let message = format!(
        "`{container}` keeps every batch that the loader gives in its first pass: memory grows until all data are held"
    );
    let chain =
        vec![cx.link(cycle.statement, "a copy of each element is kept, for the passes after the first")];
    let function = cx.function(cycle.function).to_owned();
    let proof = Proof {
        // Nobody knows how much of the first pass is read.
        repeats: Certainty::Likely,
        kind: Certainty::proven_if(cycle.argument.only(Kinds::LOADER), Certainty::Likely),
        // One that is made anew lets go of what the one before kept.
        unreleased: Certainty::proven_if(!anew, Certainty::Assumed),
        ..Proof::FULL
    };
    let diagnostic = cx.report(cycle.at, &function, message);
    diagnostic.container = container;
    diagnostic.scope = if anew { Scope::Epoch } else { Scope::Run };
    diagnostic.proof = proof;
    diagnostic.weight = Weight::Tensors;
    diagnostic.chain = chain;
    diagnostic.fix =
        advice("Begin again instead, in a generator of your own: `while True: yield from loader`.");
}
