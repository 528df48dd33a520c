//! Processes and pools that are started again and again and never joined.

use caulk_core::LeakClass;

use crate::advice::advice;
use crate::context::Context;
use crate::resource::{Kind, piling, reaches, report};
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::OrphanProcess,
    default: true,
    explanation: include_str!("orphan_process.md"),
    check,
};

const PROCESSES: Kind = Kind {
    made: &["multiprocessing.Process", "multiprocessing.Pool"],
    given_back: &[
        "multiprocessing.Process.join",
        "multiprocessing.Process.terminate",
        "multiprocessing.Process.kill",
        "multiprocessing.Process.close",
    ],
};

fn check(cx: &mut Context<'_>) {
    let started = cx.analysis.calls(&["multiprocessing.Process.start"]);
    let runs = |made: &_| is_pool(cx, made) || reaches(cx, made, &started);
    for (made, exposure) in piling(cx, &PROCESSES, runs) {
        let pool = is_pool(cx, &made);
        let diagnostic = report(
            cx,
            &made,
            exposure,
            "and what it starts is never joined or ended: processes of earlier rounds may still be there",
            "a process holds its own copy of everything that it touches, until it ends and is joined",
        );
        diagnostic.fix = if pool {
            advice("Make the pool once, or in `with Pool(..) as pool:`, which ends its processes.")
        } else {
            advice("Join it where its work is needed: `process.join()`, or `process.terminate()` first.")
        };
    }
}

fn is_pool(cx: &Context<'_>, made: &caulk_python::program::CallFact) -> bool {
    cx.analysis.name(made.name) == "multiprocessing.Pool"
}
