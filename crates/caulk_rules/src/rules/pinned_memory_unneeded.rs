//! Pinned batches in a program that uses no accelerator.

use caulk_core::{LeakClass, Scope};
use caulk_python::program::{Literal, Root};

use crate::advice::advice;
use crate::context::Context;
use crate::rule::Rule;
use crate::source::callee;

pub(crate) static RULE: Rule = Rule {
    class: LeakClass::PinnedMemoryUnneeded,
    default: true,
    explanation: include_str!("pinned_memory_unneeded.md"),
    check,
};

/// What a program says somewhere when it uses a device, or leaves that to somebody else.
const DEVICES: &[&str] = &[
    "cuda",
    "device",
    "mps",
    "xpu",
    "hpu",
    "accelerat",
    "lightning",
    "Trainer",
    "fabric",
    "ignite",
    "deepspeed",
];

fn check(cx: &mut Context<'_>) {
    let pinned: Vec<_> = cx
        .analysis
        .calls(&["torch.utils.data.DataLoader"])
        .into_iter()
        .filter(|made| {
            let pin = made.argument(cx.analysis, Some(7), "pin_memory");
            made.root != Root::Test && pin.is_some_and(|pin| pin.literal == Literal::Bool(true))
        })
        .collect();
    if pinned.is_empty() || uses_a_device(cx) {
        return;
    }
    let mut seen = Vec::new();
    for made in pinned {
        if seen.contains(&made.at) {
            continue;
        }
        seen.push(made.at);
        let container = callee(cx.project(), made.at);
        let message = format!(
            "`{container}` pins its batches, and nothing in this project uses an accelerator: pinned memory cannot be swapped and is kept for reuse"
        );
        let function = cx.function(made.function).to_owned();
        let diagnostic = cx.report(made.at, &function, message);
        diagnostic.container = container;
        diagnostic.scope = Scope::Peak;
        diagnostic.fix = advice("Leave `pin_memory` out.");
    }
}

fn uses_a_device(cx: &Context<'_>) -> bool {
    cx.project().ids().any(|file| {
        let text = cx.project().file(file).text();
        DEVICES.iter().any(|word| text.contains(word))
    })
}
