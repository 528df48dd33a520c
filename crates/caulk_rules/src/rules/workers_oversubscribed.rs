//! Numbers of workers that no machine has use for.

use caulk_core::{LeakClass, Scope};
use caulk_python::program::{Literal, Root};

use crate::advice::advice;
use crate::context::Context;
use crate::rule::Rule;
use crate::source::callee;

/// Workers of one loader; beyond, they wait for each other and for memory rather than for data.
const MANY: i64 = 32;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::WorkersOversubscribed,
    default: true,
    explanation: include_str!("workers_oversubscribed.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let mut seen = Vec::new();
    for made in cx.analysis.calls(&["torch.utils.data.DataLoader"]) {
        let workers = made.argument(cx.analysis, Some(5), "num_workers").map(|workers| workers.literal);
        let Some(Literal::Int(workers)) = workers else { continue };
        if workers <= MANY || made.root == Root::Test || seen.contains(&made.at) {
            continue;
        }
        seen.push(made.at);
        let container = callee(cx.project(), made.at);
        let message = format!(
            "`{container}` starts {workers} workers: each has a copy of Python and torch and prefetches batches of its own"
        );
        let function = cx.function(made.function).to_owned();
        let diagnostic = cx.report(made.at, &function, message);
        diagnostic.container = container;
        diagnostic.scope = Scope::Peak;
        diagnostic.fix =
            advice("Begin with as many workers as keep the device busy, four to eight, and measure.");
    }
}
