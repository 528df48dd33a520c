//! Tensors stored with their graphs in a container that outlives the step.

use caulk_core::{LeakClass, Severity};
use caulk_python::program::{GrowthCase, GrowthFact};

use crate::context::{Context, severity};
use crate::exposure::Exposure;
use crate::rule::Rule;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::GraphKeptInContainer,
    severity: Severity::Error,
    default: true,
    explanation: include_str!("graph_kept_in_container.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for growth in cx.analysis.growths() {
        let worst = growth
            .cases
            .iter()
            .filter_map(|case| exposed(cx, case))
            .reduce(|worst, other| if worst.0.worse(other.0) == worst.0 { worst } else { other });
        if let Some((exposure, case)) = worst {
            report(cx, &growth, case, exposure);
        }
    }
}

/// A case in which a graph outlives its step.
fn exposed<'c>(cx: &Context<'_>, case: &'c GrowthCase) -> Option<(Exposure, &'c GrowthCase)> {
    cx.analysis.contents(&case.value).graph?;
    let exposure = Exposure::of(cx.analysis, &case.duration, cx.analysis.holder(case.object))?;
    Some((exposure, case))
}

fn report(cx: &mut Context<'_>, growth: &GrowthFact, case: &GrowthCase, exposure: Exposure) {
    let Some(graph) = cx.analysis.contents(&case.value).graph else { return };
    let container = cx.text(growth.container);
    let message = format!(
        "`{container}` keeps tensors together with their autograd graphs: it grows {}",
        exposure.words()
    );
    let mut chain = Vec::new();
    chain.extend(cx.source(&graph));
    chain.push(cx.link(growth.statement, "stored here with its graph"));
    chain.extend(cx.made(case.object));
    chain.extend(cx.through(exposure));
    let function = cx.function(growth.function).to_owned();
    let diagnostic = cx.report(growth.container, &function, message);
    diagnostic.scope = exposure.scope;
    diagnostic.severity = severity(exposure.scope);
    diagnostic.chain = chain;
}
