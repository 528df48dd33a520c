//! Figures that are drawn again in every epoch, and closed.

use caulk_core::LeakClass;
use caulk_python::program::Root;

use crate::context::Context;
use crate::exposure::Exposure;
use crate::resource::keep_worst;
use crate::rule::Rule;
use crate::rules::figure_not_closed::MAKES;
use crate::source;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::PlotEveryEpoch,
    default: false,
    explanation: include_str!("plot_every_epoch.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    let mut found = Vec::new();
    for made in cx.analysis.calls(MAKES).into_iter().filter(|made| made.root != Root::Test) {
        let duration = cx.analysis.piling(&made, std::iter::empty());
        if let Some(exposure) = Exposure::outside(cx.analysis, &duration) {
            keep_worst(&mut found, made, exposure);
        }
    }
    for (made, exposure) in found {
        let container = source::callee(cx.project(), made.at);
        let message =
            format!("`{container}` draws a figure {}: one at the end may do", exposure.pace.words());
        let chain = cx.link_loop(exposure, "drawn again each time this loop turns").into_iter().collect();
        let function = cx.function(made.function).to_owned();
        let diagnostic = cx.report(made.at, &function, message);
        diagnostic.container = container;
        diagnostic.scope = caulk_core::Scope::Peak;
        diagnostic.chain = chain;
    }
}
