//! Processes that do the same work have the same leak: one finding speaks for all of them.

use std::collections::BTreeSet;

use caulk_core::{Finding, Site};

/// Joins findings of one role at one place. The first of them stays, with its own figures, and says for how many
/// processes it speaks.
pub(crate) fn by_role(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<(Finding, BTreeSet<u32>)> = Vec::new();
    for finding in findings {
        let index = finding.process.index;
        match merged.iter_mut().find(|(first, _)| is_same(first, &finding)) {
            Some((_, indices)) => drop(indices.insert(index)),
            None => merged.push((finding, BTreeSet::from([index]))),
        }
    }
    merged.into_iter().map(|(finding, indices)| counted(finding, indices.len())).collect()
}

fn counted(mut finding: Finding, count: usize) -> Finding {
    finding.process.count = count as u32;
    finding
}

fn is_same(a: &Finding, b: &Finding) -> bool {
    let place = |finding: &Finding| finding.sites.first().map(|site: &Site| (site.file.clone(), site.line));
    (a.class, &a.process.role, &a.holder) == (b.class, &b.process.role, &b.holder) && place(a) == place(b)
}

#[cfg(test)]
mod tests {
    use caulk_core::{Confidence, LeakClass, ProcessRef, Scope, Severity};

    use super::*;

    fn finding(role: &str, index: u32, holder: &str) -> Finding {
        Finding {
            class: LeakClass::GlobalAccumulation,
            confidence: Confidence::Proved,
            scope: Scope::Run,
            severity: Severity::Error,
            message: String::new(),
            sites: Vec::new(),
            container: holder.into(),
            holder: holder.into(),
            holder_path: Vec::new(),
            chain: Vec::new(),
            process: ProcessRef { role: role.into(), index, count: 1 },
            growth: None,
            pinned: None,
            evidence: Vec::new(),
            fix: None,
            twins: Vec::new(),
        }
    }

    #[test]
    fn ranks_share_a_finding_and_roles_do_not() {
        let all =
            [("rank", 1, "a"), ("rank", 0, "a"), ("rank", 0, "a"), ("rank", 0, "b"), ("worker", 0, "a")];
        let merged = by_role(all.map(|(role, index, holder)| finding(role, index, holder)).into());
        let told =
            merged.iter().map(|one| (one.process.role.as_str(), one.process.count, one.holder.as_str()));
        assert_eq!(told.collect::<Vec<_>>(), [("rank", 2, "a"), ("rank", 1, "b"), ("worker", 1, "a")]);
    }
}
