//! Stacks that begin alike, joined.

use std::collections::BTreeMap;

use caulk_core::{Sampled, StackUse};

use crate::flame::fold::{self, Label};

/// One frame with everything that was called from it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) live: Sampled,
    pub(crate) growth: f64,
    /// Bytes below own frames.
    own: f64,
    pub(crate) children: BTreeMap<Label, Node>,
}

impl Node {
    pub(crate) fn of(stacks: &[StackUse]) -> Self {
        let mut root = Self::default();
        for stack in stacks {
            let path = fold::folded(stack);
            let mut own = path.iter().rev().map(|label| matches!(label, Label::Own { .. }));
            let has_own = own.any(|own| own);
            root.take(stack, has_own);
            let mut node = &mut root;
            for label in path {
                node = node.children.entry(label).or_default();
                node.take(stack, has_own);
            }
        }
        root
    }

    fn take(&mut self, stack: &StackUse, has_own: bool) {
        self.live = self.live + stack.live;
        self.growth += stack.growth;
        if has_own {
            self.own += stack.live.bytes;
        }
    }

    /// What is called from it: the user's own frames first, then by size.
    pub(crate) fn ordered(&self) -> Vec<(&Label, &Self)> {
        let mut all: Vec<(&Label, &Self)> = self.children.iter().collect();
        let rank = |label: &Label| match label {
            Label::Process(_) | Label::Own { .. } => 0,
            Label::Library { .. } | Label::Cut | Label::Threads => 1,
            Label::Import(_) | Label::Rest | Label::Native => 2,
        };
        all.sort_by(|(a, one), (b, other)| {
            let own = (other.own > 0.0).cmp(&(one.own > 0.0));
            rank(a).cmp(&rank(b)).then(own).then(other.live.bytes.total_cmp(&one.live.bytes))
        });
        all
    }

    /// Leaves out all but the `most` widest frames, by what lives or by what grows; the room that they take stays.
    pub(crate) fn thin_out(&mut self, most: usize) {
        let mut shares = Vec::new();
        let whole = (self.live.bytes.max(1.0), self.growth.max(1.0));
        self.collect(whole, &mut shares);
        shares.sort_by(|a, b| b.total_cmp(a));
        // A frame that is no wider than a pixel shows nothing.
        let least = shares.get(most).copied().unwrap_or(0.0).max(0.0008);
        self.cut(whole, least);
    }

    fn share(&self, (live, growth): (f64, f64)) -> f64 {
        (self.live.bytes / live).max(self.growth / growth)
    }

    fn collect(&self, whole: (f64, f64), shares: &mut Vec<f64>) {
        for child in self.children.values() {
            shares.push(child.share(whole));
            child.collect(whole, shares);
        }
    }

    fn cut(&mut self, whole: (f64, f64), least: f64) {
        // Frames on one stack are equally wide: those that do not exceed the bound go with it.
        self.children.retain(|_, child| child.share(whole) > least);
        self.children.values_mut().for_each(|child| child.cut(whole, least));
    }
}
