//! The chain of a finding, in words.

use caulk_core::{ChainStep, Finding, Link, LinkEvent};

/// From what makes a value to the reason why it lives on.
pub(crate) fn chain(finding: &Finding) -> Vec<ChainStep> {
    let step = |link: &Link| {
        let Link { file, line, text, event } = link.clone();
        ChainStep { file, line, text, note: words(event) }
    };
    finding.chain.iter().map(step).collect()
}

fn words(event: LinkEvent) -> String {
    match event {
        LinkEvent::Makes { target, bound: Some(bound) } => {
            format!("`{target}` is made here, bounded by {bound}")
        }
        LinkEvent::Makes { target, bound: None } => format!("`{target}` is made here, without a bound"),
        LinkEvent::Grows => "grows here".to_owned(),
        LinkEvent::CallsGrower => "calls what grows it".to_owned(),
        LinkEvent::Calls => "called from here".to_owned(),
        LinkEvent::Allocates => "allocates".to_owned(),
        LinkEvent::AllocatesForThreads => "allocates what they hold".to_owned(),
        LinkEvent::Rule(note) => note,
    }
}
