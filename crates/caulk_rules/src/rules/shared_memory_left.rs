//! Segments of shared memory that are made again and again and never unlinked.

use caulk_core::LeakClass;
use caulk_python::program::{CallFact, Literal};

use crate::advice::advice;
use crate::context::Context;
use crate::resource::{Kind, given_back_late, piling, report};
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::SharedMemoryLeft,
    default: true,
    explanation: include_str!("shared_memory_left.md"),
    check,
};

const SEGMENTS: Kind = Kind {
    made: &["multiprocessing.shared_memory.SharedMemory"],
    given_back: &["multiprocessing.shared_memory.SharedMemory.unlink"],
};

fn check(cx: &mut Context<'_>) {
    for (made, exposure) in piling(cx, &SEGMENTS, |made| creates(cx, made)) {
        let diagnostic = report(
            cx,
            &made,
            exposure,
            "and nothing unlinks the segments: each stays in /dev/shm, even when the program has ended",
            "a segment lives until it is unlinked; closing it, or losing it, is not enough",
        );
        diagnostic.fix =
            advice("Call `unlink()` where the last process is done with it, `close()` in all others.");
    }
    for (made, exposure, back) in given_back_late(cx, &SEGMENTS, |made| creates(cx, made)) {
        let end = cx.link(back.at, "all are unlinked here, when the loop is over");
        let diagnostic = report(
            cx,
            &made,
            exposure,
            "and the segments are unlinked after the loop alone: until then all stay in /dev/shm",
            "a segment lives until it is unlinked",
        );
        diagnostic.chain.insert(1, end);
        diagnostic.fix = advice("Unlink in the loop those that nobody reads any more.");
    }
}

/// `SharedMemory(create=True, ..)`.
fn creates(cx: &Context<'_>, made: &CallFact) -> bool {
    let create = made.argument(cx.analysis, Some(1), "create");
    create.is_some_and(|create| create.literal == Literal::Bool(true))
}
