//! Exceptions that are stored with their tracebacks.

use caulk_core::LeakClass;
use caulk_python::Lines;

use crate::container::{Told, fix, proof, report};
use crate::context::Context;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::ExceptionKeepsFrames,
    default: true,
    explanation: include_str!("exception_keeps_frames.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    report(cx, |cx, kept| {
        let message = format!(
            "`{}` keeps exceptions, and their tracebacks keep all variables of the functions that failed: it grows {}",
            cx.text(kept.growth.container),
            kept.exposure.words()
        );
        let fix = fix(cx, kept, Lines::traceback_fix);
        Some(Told { proof: proof(cx, kept), message, note: "stored with its traceback", fix })
    });
}
