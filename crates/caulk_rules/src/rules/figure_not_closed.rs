//! Figures that pyplot keeps, and artists that pile up on one Axes.

use caulk_core::{Applicability, Fix, LeakClass};
use caulk_python::Lines;
use caulk_python::program::{CallFact, Kinds, Literal, Root};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::{Exposure, Pace};
use crate::fixes;
use crate::proven::of_call;
use crate::resource::{comes_back, given_back, keep_worst, reaches};
use crate::rule::Rule;
use crate::source;
use crate::twins::Cause;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::FigureNotClosed,
    default: true,
    explanation: include_str!("figure_not_closed.md"),
    check,
};

/// Calls that make a figure; pyplot keeps it until it is closed.
pub(crate) const MAKES: &[&str] = &[
    "matplotlib.pyplot.figure",
    "matplotlib.pyplot.subplots",
    "matplotlib.pyplot.subplot_mosaic",
    "pandas.DataFrame.plot",
    "pandas.DataFrame.boxplot",
    "seaborn.catplot",
    "seaborn.clustermap",
    "seaborn.displot",
    "seaborn.jointplot",
    "seaborn.lmplot",
    "seaborn.pairplot",
    "seaborn.relplot",
];
/// What gives the current figure, or a named one, back. An interactive `show` comes back when windows are closed.
const CLOSES: &[&str] = &[
    "matplotlib.pyplot.close",
    "matplotlib.pyplot.clf",
    "matplotlib.pyplot.show",
    "matplotlib.figure.Figure.clf",
    "matplotlib.figure.Figure.clear",
];
/// Loggers that close what they are given unless told otherwise.
const LOGS: &[&str] = &["torch.utils.tensorboard.SummaryWriter.add_figure"];
/// What draws on the Axes that is current, or on its receiver.
const DRAWS: &[&str] = &[
    "matplotlib.pyplot.plot",
    "matplotlib.pyplot.scatter",
    "matplotlib.pyplot.imshow",
    "matplotlib.pyplot.hist",
    "matplotlib.pyplot.bar",
    "matplotlib.axes.Axes.plot",
    "matplotlib.axes.Axes.scatter",
    "matplotlib.axes.Axes.imshow",
    "matplotlib.axes.Axes.hist",
    "matplotlib.axes.Axes.bar",
];
/// What takes drawings away.
const WIPES: &[&str] = &[
    "matplotlib.pyplot.cla",
    "matplotlib.axes.Axes.cla",
    "matplotlib.axes.Axes.clear",
    "matplotlib.axes.Axes.remove",
];
/// Calls at the end of a drawing.
const SHOWS: &[&str] = &[
    "matplotlib.pyplot.savefig",
    "matplotlib.pyplot.pause",
    "matplotlib.pyplot.draw",
    "matplotlib.figure.Figure.savefig",
];

fn check(cx: &mut Context<'_>) {
    for (made, exposure) in figures(cx) {
        report_figure(cx, &made, exposure);
    }
    for (drawn, exposure) in drawings(cx) {
        report_drawing(cx, &drawn, exposure);
    }
}

/// Calls whose figures stay open.
fn figures(cx: &Context<'_>) -> Vec<(CallFact, Exposure)> {
    let closing = given_back(cx, CLOSES);
    let logging: Vec<_> = cx.analysis.calls(LOGS).into_iter().filter(|call| !kept_open(cx, call)).collect();
    let making = cx.analysis.calls(MAKES);
    let unnamed: Vec<&CallFact> = closing.iter().filter(|call| closes_any(cx, call)).collect();
    let mut found = Vec::new();
    for made in making.iter().cloned() {
        let closed = reaches(cx, &made, &closing) || logged(cx, &made, &logging) || comes_back(cx, &made);
        if made.root == Root::Test || closed || is_named(cx, &made) || draws_elsewhere(cx, &made) {
            continue;
        }
        let closes = unnamed.iter().filter(|call| may_close(cx, call, &made, &making));
        let duration = cx.analysis.piling(&made, closes.map(|call| call.around.clone()));
        if let Some(exposure) = Exposure::outside(cx.analysis, &duration) {
            keep_worst(&mut found, made, exposure);
        }
    }
    found
}

/// `add_figure(tag, fig, close=False)`.
fn kept_open(cx: &Context<'_>, call: &CallFact) -> bool {
    call.argument(cx.analysis, Some(3), "close").is_some_and(|close| close.literal == Literal::Bool(false))
}

fn logged(cx: &Context<'_>, made: &CallFact, logging: &[CallFact]) -> bool {
    let objects = cx.analysis.resources(&made.result);
    logging.iter().any(|call| {
        let figure = call.argument(cx.analysis, Some(1), "figure");
        figure.is_some_and(|figure| {
            cx.analysis.resources(&figure).iter().any(|object| objects.contains(object))
        })
    })
}

/// Closes the current figure, all of them, or one that cannot be told.
fn closes_any(cx: &Context<'_>, call: &CallFact) -> bool {
    let name = cx.analysis.name(call.name);
    name.starts_with("matplotlib.pyplot.") && !call.argument.kinds.has(Kinds::FIGURE)
}

/// `plt.close()` in a function that makes a figure closes that one, not those of other functions.
fn may_close(cx: &Context<'_>, close: &CallFact, made: &CallFact, making: &[CallFact]) -> bool {
    let current = cx.analysis.name(close.name) != "matplotlib.pyplot.show" && close.given.is_empty();
    !current || close.function == made.function || making.iter().all(|other| other.function != close.function)
}

/// `plt.figure(1)`, `plt.figure("loss")`, `plt.subplots(num=3)`: the same figure each time.
fn is_named(cx: &Context<'_>, made: &CallFact) -> bool {
    let position = (cx.analysis.name(made.name) == MAKES[0]).then_some(0);
    let number = made.argument(cx.analysis, position, "num");
    number.is_some_and(|number| matches!(number.literal, Literal::Int(_) | Literal::Text(_)))
}

/// `table.plot(ax=ax)`: on Axes that are there.
fn draws_elsewhere(cx: &Context<'_>, made: &CallFact) -> bool {
    made.argument(cx.analysis, None, "ax").is_some_and(|ax| !ax.only(Kinds::NONE))
}

/// Calls that draw on one Axes again and again, and show it in between.
fn drawings(cx: &Context<'_>) -> Vec<(CallFact, Exposure)> {
    let fresh: Vec<CallFact> = cx.analysis.calls(&[MAKES, CLOSES, WIPES].concat());
    let shown = cx.analysis.calls(SHOWS);
    let mut found = Vec::new();
    for drawn in cx.analysis.calls(DRAWS) {
        if drawn.root == Root::Test || is_elsewhere(cx, &drawn) {
            continue;
        }
        let duration = cx.analysis.piling(&drawn, fresh.iter().map(|call| call.around.clone()));
        let Some(exposure) = Exposure::outside(cx.analysis, &duration) else { continue };
        if shown.iter().any(|call| call.around.contains(&exposure.through)) {
            keep_worst(&mut found, drawn, exposure);
        }
    }
    found
}

/// Draws on an Axes that nobody knows the maker of.
fn is_elsewhere(cx: &Context<'_>, drawn: &CallFact) -> bool {
    cx.analysis.name(drawn.name).starts_with("matplotlib.axes.")
        && cx.analysis.resources(&drawn.receiver).is_empty()
}

fn report_figure(cx: &mut Context<'_>, made: &CallFact, exposure: Exposure) {
    let container = source::callee(cx.project(), made.at);
    let message = format!(
        "`{container}` makes a figure {}, and nothing closes it: pyplot keeps every open figure",
        exposure.words()
    );
    let mut chain =
        vec![cx.link(made.at, "pyplot keeps this figure in its list of open figures until it is closed")];
    chain.extend(cx.link_loop(exposure, "no figure is closed in this loop"));
    let fix = close(cx, made);
    let proof = of_call(cx.analysis, made, exposure);
    let function = cx.function(made.function).to_owned();
    let diagnostic = cx.report_due_to(Some(Cause::Called(made.name)), made.at, &function, message);
    diagnostic.container = container;
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.chain = chain;
    diagnostic.fix = fix;
}

fn report_drawing(cx: &mut Context<'_>, drawn: &CallFact, exposure: Exposure) {
    let container = source::callee(cx.project(), drawn.at);
    let message = format!(
        "`{container}` adds to the same Axes {}: what was drawn before stays, is kept and drawn again",
        exposure.words()
    );
    let mut chain = vec![cx.link(drawn.at, "the Axes keeps everything that was drawn on it")];
    chain.extend(cx.link_loop(exposure, "nothing wipes the Axes in this loop"));
    let function = cx.function(drawn.function).to_owned();
    let proof = of_call(cx.analysis, drawn, exposure);
    let diagnostic = cx.report(drawn.at, &function, message);
    diagnostic.container = container;
    diagnostic.scope = exposure.scope;
    diagnostic.proof = proof;
    diagnostic.weight = if exposure.pace == Pace::Epoch { Weight::Host } else { Weight::Tensors };
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Wipe the Axes before drawing again, `ax.clear()`, or change what is drawn: `line.set_data(..)`.",
    );
}

/// `plt.close(fig)` where it is used last: safe where nothing after it looks at the figure.
fn close(cx: &Context<'_>, made: &CallFact) -> Option<Fix> {
    let file = cx.project().file(made.at.file);
    let mut fix = fixes::at_line(cx.analysis, made.at, Lines::close_figure_fix)?;
    let Some(edit) = fix.edits.first() else { return Some(fix) };
    let body = source::body_around(cx.project(), made.at);
    let end = body.last().map_or(0, |last| cx.project().lines(source::located(made.at.file, last)).1);
    let after = file.text().lines().take(end as usize).skip(edit.start.line as usize);
    let pyplot = edit.content.trim().split('.').next().unwrap_or("plt").to_owned();
    let handle = edit.content.trim().split(['(', ')']).nth(1).unwrap_or("").to_owned();
    let mentions = |line: &str, name: &str| {
        !name.is_empty() && line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
    };
    if !after.into_iter().any(|line| mentions(line, &pyplot) || mentions(line, &handle)) {
        fix.applicability = Applicability::Safe;
    }
    Some(fix)
}
