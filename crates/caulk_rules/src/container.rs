//! Parts of the rules on containers: which growths belong to one finding, and its report.

use caulk_core::{Certainty, Confidence, Fix, Proof, Scope, SiteRole};
use caulk_python::program::{Growth, Guards, Holder, LoopKind, Traits};
use caulk_python::{GrowSite, Lines, Window};

use crate::advice::advice;
use crate::claims::Claim;
use crate::context::Context;
use crate::exposure::Pace;
use crate::fixes;
use crate::proven::of_growth;
use crate::source;
use crate::twins::Cause;
use crate::weight::Weight;

/// What a rule has to say of a container.
pub(crate) struct Told {
    /// Parts of the proof that the claim alone does not show.
    pub(crate) proof: Proof,
    /// One sentence.
    pub(crate) message: String,
    /// What happens at the line.
    pub(crate) note: &'static str,
    pub(crate) fix: Option<Fix>,
}

/// Reports the containers of a class that grow for the whole run, each once with all lines that grow it.
pub(crate) fn report(cx: &mut Context<'_>, tell: impl Fn(&Context<'_>, &Claim) -> Option<Told>) {
    let lasting = cx.growths().filter(|claim| claim.exposure.scope == Scope::Run);
    let mut stories: Vec<(Vec<&Claim>, Told)> = Vec::new();
    for kept in lasting {
        let known = stories.iter_mut().find(|(story, _)| is_same(cx, story[0], kept));
        if let Some((story, _)) = known {
            story.push(kept);
        } else if let Some(told) = tell(cx, kept) {
            stories.push((vec![kept], told));
        }
    }
    for (story, told) in stories {
        report_one(cx, &story, told);
    }
}

/// Whether two lines grow the same container.
fn is_same(cx: &Context<'_>, one: &Claim, other: &Claim) -> bool {
    let written = || cx.text(one.growth.container) == cx.text(other.growth.container);
    one.case.object == other.case.object
        || one.holder != Holder::Local && one.holder == other.holder && written()
}

fn report_one(cx: &mut Context<'_>, story: &[&Claim], told: Told) {
    let kept = story[0];
    let mut chain = Vec::new();
    chain.extend(kept.contents.graph.and_then(|graph| cx.source(&graph)));
    chain.push(cx.link(kept.growth.statement, told.note));
    chain.extend(cx.made(kept.case.object));
    chain.extend(cx.through(kept.exposure));
    let more: Vec<_> = story[1..]
        .iter()
        .map(|other| cx.site(SiteRole::Grows, other.growth.container, other.growth.function))
        .collect();
    let captured = kept.contents.function.map(|function| cx.defined(function));
    let function = cx.function(kept.growth.function);
    let gives_back = cx.analysis.gives_back(kept.case.object).and_then(|method| {
        let owner = cx.text(kept.growth.container);
        advice(&format!("Call `{owner}.{method}()` when the program is done with what is in it."))
    });
    let weight = Weight::of(&kept.contents);
    let diagnostic =
        cx.report_due_to(Cause::held(kept.holder), kept.growth.container, function, told.message);
    diagnostic.proof = told.proof;
    diagnostic.weight = weight;
    diagnostic.confidence = Confidence::Likely;
    diagnostic.scope = kept.exposure.scope;
    diagnostic.chain = chain;
    diagnostic.sites.extend(more);
    diagnostic.sites.extend(captured);
    diagnostic.fix = gives_back.or(told.fix);
}

/// The proof of a container that grows where that may be what it is for.
pub(crate) fn proof(cx: &Context<'_>, kept: &Claim) -> Proof {
    let proof = of_growth(cx, kept);
    if is_used_whole(cx, kept) { Proof { outlives: Certainty::Assumed, ..proof } } else { proof }
}

/// A tensor or table that is made longer by binding it anew is mostly data: the loop fits or plots all of it again each
/// time (active learning, Bayesian optimisation). A script's own is taken for such; what is held elsewhere, where each turn
/// of the loop is a round, neither a batch nor a training step.
fn is_used_whole(cx: &Context<'_>, kept: &Claim) -> bool {
    let script = matches!(kept.holder, Holder::Global(_) | Holder::Local);
    // In a loop inside another, it is not all that one round has.
    let round = kept.exposure.pace != Pace::Step
        && kept.exposure.through == kept.exposure.inner
        && matches!(
            cx.analysis.a_loop(kept.exposure.inner).kind,
            LoopKind::Steps | LoopKind::While | LoopKind::Items | LoopKind::Folds
        );
    kept.growth.how == Growth::Concatenate && kept.contents.graph.is_none() && (script || round)
}

/// The change that the engine of fixes makes of a growth.
pub(crate) fn fix<'a>(
    cx: &Context<'a>,
    kept: &Claim,
    change: impl Fn(&Lines<'a>, &GrowSite) -> Option<Fix>,
) -> Option<Fix> {
    fixes::of_stored(cx.analysis, kept.growth.statement, kept.growth.container, change)
}

fn unused_window(cx: &Context<'_>, kept: &Claim) -> Option<Window> {
    fixes::unused_window(cx.analysis, kept.growth.container, cx.function(kept.growth.function))
}

/// Bounds a container by the limit that the code sets for it, else says how it could be bounded.
pub(crate) fn bound(cx: &Context<'_>, kept: &Claim) -> Option<Fix> {
    fix(cx, kept, Lines::bound_fix)
}

/// Whether all that was gathered becomes one tensor, array or table once the loops are over: it is needed until then.
fn is_joined_later(cx: &Context<'_>, kept: &Claim) -> bool {
    let loops = cx.analysis.a_loop(kept.exposure.through).at;
    let container = cx.text(kept.growth.container);
    loops.is_some_and(|at| {
        source::statements_after(cx.project(), at)
            .iter()
            .any(|stmt| source::joins(cx.project(), at.file, stmt, &container))
    })
}

/// A history that grows for the whole run: heavy, or with a limit that nothing reads.
pub(crate) fn history(cx: &Context<'_>, kept: &Claim, what: &str) -> Option<Told> {
    let container = cx.text(kept.growth.container);
    let weight = Weight::of(&kept.contents);
    let passes = kept.case.duration.growing.iter().filter(|id| cx.analysis.repeats(**id)).count();
    let linked = kept.growth.how == Growth::Link;
    // A function that gathers in one loop is about to use, or to give, what it gathered.
    if !linked && matches!(kept.holder, Holder::Local) && passes < 2 {
        return None;
    }
    // So is a script.
    let script = matches!(kept.holder, Holder::Global(_))
        && cx.function(kept.growth.function) == "<module>"
        && passes < 2;
    if (script || matches!(kept.holder, Holder::Local)) && is_joined_later(cx, kept) {
        return None;
    }
    let named = !matches!(kept.holder, Holder::Local | Holder::Closure(..));
    // What is joined with all there was is no selection.
    let sampled = kept.case.duration.guards.has(Guards::MODULO) && kept.growth.how != Growth::Concatenate;
    let chosen = kept.contents.heavy.is_some_and(|value| value.traits.has(Traits::EXCERPT));
    let often = kept.exposure.pace > Pace::Epoch;
    let window = if named && often { unused_window(cx, kept) } else { None };
    if !weight.counts() && window.is_none() {
        return None;
    }
    let mut proof = proof(cx, kept);
    if !weight.counts() {
        // The author of a limit expects it to matter.
        proof.kind = Certainty::Likely;
    }
    if weight == Weight::Host && !often {
        proof.kind = proof.kind.min(Certainty::Likely);
    }
    let fix = bound(cx, kept).filter(|_| named);
    // Selected entries are kept on purpose, to be shown or used at the end, unless the last ones alone are used.
    if sampled && !source::is_read_at_its_end(cx.project(), kept.growth.container) {
        proof.repeats = Certainty::Assumed;
    }
    if chosen {
        proof.kind = Certainty::Assumed;
    }
    if linked {
        let message = format!(
            "`{container}` gets an object that keeps the one before it, with {}: the chain grows {}",
            weight.words(),
            kept.exposure.words()
        );
        let fix = advice(
            "Keep of the object before only what is needed of it (a number, say), or let go of what it refers to itself.",
        );
        return Some(Told { proof, message, note: "linked here", fix });
    }
    let limit = window.map_or(String::new(), |window| format!("; nothing reads `{}`", window.expression));
    let message =
        format!("{what} `{container}` gathers {}: it grows {}{limit}", weight.words(), kept.exposure.words());
    Some(Told { proof, message, note: "added here", fix })
}
