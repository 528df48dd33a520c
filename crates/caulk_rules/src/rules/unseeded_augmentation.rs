//! Augmented data that is written out and cannot be made again.

use caulk_core::{LeakClass, Scope};
use caulk_python::program::{CallFact, Kinds, Root, Traits};

use crate::advice::advice;
use crate::context::Context;
use crate::rule::Rule;
use crate::source::callee;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::UnseededAugmentation,
    default: true,
    explanation: include_str!("unseeded_augmentation.md"),
    check,
};

/// What writes data, and which argument it writes.
const WRITES: &[(&str, usize)] =
    &[("torch.save", 0), ("numpy.save", 1), ("cv2.imwrite", 1), ("torchvision.utils.save_image", 0)];
/// What makes random numbers come again.
const SEEDS: &[&str] = &[
    "manual_seed",
    "seed_everything",
    "set_seed",
    "seed=",
    ".seed(",
    "default_rng(",
    "Random(",
    "RandomState(",
];

fn check(cx: &mut Context<'_>) {
    let names: Vec<&str> = WRITES.iter().map(|(name, _)| *name).collect();
    let written: Vec<CallFact> = cx
        .analysis
        .calls(&names)
        .into_iter()
        .filter(|call| call.root != Root::Test && is_random_data(cx, call))
        .collect();
    if written.is_empty() || is_seeded(cx) {
        return;
    }
    let mut seen = Vec::new();
    for call in written {
        if seen.contains(&call.at) {
            continue;
        }
        seen.push(call.at);
        let container = callee(cx.project(), call.at);
        let message = format!(
            "`{container}` writes augmented data, and nothing seeds the random numbers: no run gives the same data again"
        );
        let function = cx.function(call.function).to_owned();
        let diagnostic = cx.report(call.at, &function, message);
        diagnostic.container = container;
        diagnostic.scope = Scope::Peak;
        diagnostic.fix = advice(
            "Seed a generator of its own for each sample, from a hash of its name and the number of the augmentation.",
        );
    }
}

/// Something read that random numbers went into.
fn is_random_data(cx: &Context<'_>, call: &CallFact) -> bool {
    let name = cx.analysis.name(call.name);
    let position = WRITES.iter().find(|(known, _)| *known == name).map(|(_, position)| *position);
    let value = position.and_then(|position| call.given.get(position)).map(|(_, value)| *value);
    value.is_some_and(|value| {
        value.kinds.has(Kinds::ARRAY.with(Kinds::TENSOR))
            && value.traits.has(Traits::UNIQUE.with(Traits::DRAWN))
            && value.traits.has(Traits::DATA)
            && !value.carries_graph()
    })
}

fn is_seeded(cx: &Context<'_>) -> bool {
    cx.project().ids().any(|file| {
        let text = cx.project().file(file).text();
        SEEDS.iter().any(|word| text.contains(word))
    })
}
