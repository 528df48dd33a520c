//! Open files, readers and writers that pile up.

use caulk_core::LeakClass;
use caulk_python::program::{CallFact, GrowthCase, GrowthFact, Holder, Kinds, Root};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::of_case;
use crate::resource::{Kind, given_back, piling, report};
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::FileHandlesGrow,
    default: true,
    explanation: include_str!("file_handles_grow.md"),
    check,
};

const CLOSES: &[&str] = &["io.IOBase.close", "cv2.VideoCapture.release", "cv2.VideoCapture.close"];

/// Writers with a thread of their own: losing one does not close it.
const WRITERS: Kind =
    Kind { made: &["torch.utils.tensorboard.SummaryWriter"], given_back: &["io.IOBase.close"] };

fn check(cx: &mut Context<'_>) {
    for (made, exposure) in piling(cx, &WRITERS, |_| true) {
        let diagnostic = report(
            cx,
            &made,
            exposure,
            "and no writer is closed: each keeps its file open, its thread alive and its queue of events",
            "its thread holds the writer, so it lives on when the name for it is gone",
        );
        diagnostic.fix = advice("Make one writer before the loop, or close each: `writer.close()`.");
    }
    let closed = given_back(cx, CLOSES);
    for growth in cx.analysis.growths() {
        let found = growth.cases.iter().find_map(|case| kept(cx, case, &closed).map(|found| (found, case)));
        if let Some((exposure, case)) = found {
            report_kept(cx, growth, case, exposure);
        }
    }
}

/// A case in which open handles go into something that outlives the loop.
fn kept(cx: &Context<'_>, case: &GrowthCase, closed: &[CallFact]) -> Option<Exposure> {
    if !cx.analysis.contents(&case.value).kinds.has(Kinds::FILE.with(Kinds::VIDEO)) {
        return None;
    }
    let handles = cx.analysis.resources(&case.value);
    let holder = cx.analysis.holder(case.object);
    let exposure = Exposure::of(cx.analysis, &case.duration, holder)?;
    let given_back = closed.iter().any(|call| {
        [&call.receiver, &call.argument]
            .into_iter()
            .any(|value| cx.analysis.resources(value).iter().any(|handle| handles.contains(handle)))
            // Once all loops are over it is too late.
            && (call.around.contains(&exposure.through) || call.is_left_to_users && case.duration.root != Root::Module)
    });
    let keyed = !case.key.is_nothing();
    // A handle for each file that there is, found again by its name, is a cache that fills up.
    if given_back || keyed || holder == Holder::Local && handles.is_empty() {
        return None;
    }
    Some(exposure)
}

fn report_kept(cx: &mut Context<'_>, growth: &GrowthFact, case: &GrowthCase, exposure: Exposure) {
    let container = cx.text(growth.container);
    let message = format!(
        "`{container}` keeps open files, {}: descriptors and buffers are never given back",
        exposure.words()
    );
    let mut chain = vec![cx.link(growth.statement, "an open handle is stored here, and nothing closes it")];
    chain.extend(cx.made(case.object));
    chain.extend(cx.through(exposure));
    let function = cx.function(growth.function).to_owned();
    let proof = of_case(cx.analysis, case, growth.function);
    let diagnostic = cx.report(growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.chain = chain;
    diagnostic.fix =
        advice("Keep paths instead of handles, or close each file where it was read last: `with open(..)`.");
}
