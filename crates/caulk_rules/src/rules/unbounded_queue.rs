//! A queue without a limit between a training loop and a reader that may be slower.

use caulk_core::{LeakClass, Scope, SiteRole};
use caulk_python::Lines;
use caulk_python::program::{LoopId, LoopKind, Release, Root, Shape};

use crate::claims::Claim;
use crate::context::Context;
use crate::fixes;
use crate::proven::of_growth;
use crate::rule::Rule;
use crate::weight::Weight;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::UnboundedQueue,
    default: true,
    explanation: include_str!("unbounded_queue.md"),
    check,
};

fn check(cx: &mut Context<'_>) {
    for kept in cx.growths() {
        let heavy = Weight::of(&kept.contents) >= Weight::Host;
        let lasts = match kept.exposure.scope {
            Scope::Run => is_filled_by_batches(cx, kept) || is_filled_by_thread(cx, kept),
            Scope::Epoch => is_filled_by_thread(cx, kept),
            Scope::Peak | Scope::Object => false,
        };
        if heavy && lasts && !waits(cx, kept) && !is_drained(cx, kept) {
            report(cx, kept);
        }
    }
}

/// By a training, or what is computed from one batch after another.
fn is_filled_by_batches(cx: &Context<'_>, kept: &Claim) -> bool {
    let batches = |id| cx.analysis.a_loop(id).kind == LoopKind::Batches;
    kept.case.duration.growing.iter().any(|id| cx.analysis.trains(*id) || batches(*id))
}

/// By a thread that goes through its work as fast as it can, without waiting for anybody.
fn is_filled_by_thread(cx: &Context<'_>, kept: &Claim) -> bool {
    const WAITS: &[&str] = &[".acquire(", ".wait(", ".sleep(", ".qsize(", ".full("];
    let threads = kept.case.duration.root == Root::Framework(&[LoopId::CALLBACKS]);
    let mut loops = kept.case.duration.growing.iter().filter_map(|id| cx.analysis.a_loop(*id).at);
    let hurries = |at| {
        let text = cx.project().text(at);
        !WAITS.iter().any(|wait| text.contains(wait))
    };
    threads && loops.next_back().is_some_and(hurries)
}

/// Whether the loop that fills it waits for an answer or for the reader.
fn waits(cx: &Context<'_>, kept: &Claim) -> bool {
    let queues = cx.analysis.objects().filter(|(_, object)| object.shape == Shape::Queue);
    queues.into_iter().any(|(id, _)| {
        let mut releases = cx.analysis.releases(id).into_iter();
        releases.any(|release| release.how != Release::Rebind && release.chain.contains(&kept.exposure.inner))
    })
}

/// Whether its reader takes all that is there at each of its turns: in a loop that ends when the queue is empty, inside of
/// another.
fn is_drained(cx: &Context<'_>, kept: &Claim) -> bool {
    const NEVER_WAITS: &[&str] = &["get_nowait(", "block=False", ".empty(", ".qsize("];
    let is_while = |id: &LoopId| {
        let a_loop = cx.analysis.a_loop(*id);
        let text = a_loop.at.map_or("", |at| cx.project().text(at));
        matches!(a_loop.kind, LoopKind::While | LoopKind::Forever)
            && NEVER_WAITS.iter().any(|word| text.contains(word))
    };
    let function = |id: &LoopId| cx.analysis.a_loop(*id).function;
    let taken = cx.analysis.releases(kept.case.object).into_iter();
    taken.filter(|release| release.how == Release::Remove).any(|release| {
        let mut inwards = release.chain.iter().rev();
        match (inwards.next(), inwards.next()) {
            (Some(inner), Some(outer)) => is_while(inner) && function(inner) == function(outer),
            _ => false,
        }
    })
}

fn report(cx: &mut Context<'_>, kept: &Claim) {
    let container = cx.text(kept.growth.container);
    let message = format!(
        "the queue `{container}` has no limit: what its reader does not keep up with waits in memory, and it is filled {}",
        kept.exposure.pace.words()
    );
    let made = cx.analysis.object(kept.case.object).at.unwrap_or(kept.growth.container);
    let mut chain = vec![cx.link(kept.growth.statement, "put in here")];
    chain.extend(cx.made(kept.case.object));
    chain.extend(cx.through(kept.exposure));
    let put = cx.site(SiteRole::Grows, kept.growth.container, kept.growth.function);
    let fix = fixes::at_line(cx.analysis, made, Lines::queue_fix);
    let function = cx.function_around(made);
    let proof = of_growth(cx, kept);
    let weight = Weight::of(&kept.contents);
    let diagnostic = cx.report(made, &function, message);
    diagnostic.container = container;
    diagnostic.sites.push(put);
    diagnostic.chain = chain;
    diagnostic.proof = proof;
    diagnostic.weight = weight;
    diagnostic.fix = fix;
}
