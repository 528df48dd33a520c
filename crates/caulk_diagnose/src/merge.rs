//! Processes that do the same work have the same leak: one finding speaks for all of them.

use std::collections::BTreeSet;

use caulk_core::{Evidence, Growth, Rate, Role, Site, SiteRole};

use crate::claim::Claim;

/// Joins findings of one role at one place. The first of them stays and says for how many processes it speaks: with its
/// own figures for ranks, which may run anywhere, and with those of all for workers, whose memory is one machine's.
pub(crate) fn by_role(findings: Vec<Claim>) -> Vec<Claim> {
    let mut merged: Vec<(Claim, BTreeSet<u32>)> = Vec::new();
    for finding in findings {
        let index = finding.process.index;
        match merged.iter_mut().find(|(first, _)| is_same(first, &finding)) {
            Some((first, indices)) => {
                if indices.insert(index) && first.process.role == Role::Worker.as_str() {
                    add(first, &finding);
                }
            }
            None => merged.push((finding, BTreeSet::from([index]))),
        }
    }
    merged.into_iter().map(|(finding, indices)| counted(finding, indices.len())).collect()
}

/// Leaves out advice that says what a finding before it says: the same of the same line.
pub(crate) fn once(findings: Vec<Claim>) -> Vec<Claim> {
    let mut told: Vec<Claim> = Vec::new();
    for finding in findings {
        let again = |first: &Claim| first.weighs() && is_same_line(first, &finding);
        if finding.weighs() || !told.iter().any(again) {
            told.push(finding);
        }
    }
    told
}

fn counted(mut finding: Claim, count: usize) -> Claim {
    finding.process.count = finding.process.count.max(count as u32);
    if count > 1
        && finding.process.role == Role::Worker.as_str()
        && let Some(growth) = &finding.growth
    {
        let rate = Rate::new(growth.bytes_per_unit, growth.unit);
        finding.evidence.insert(0, Evidence::Workers { count, rate });
    }
    finding
}

/// Adds the growth of another process.
fn add(finding: &mut Claim, other: &Claim) {
    let (Some(sum), Some(growth)) = (&mut finding.growth, &other.growth) else { return };
    let both = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    sum.in_use_per_unit = sum.in_use_per_unit.or(growth.in_use_per_unit).map(|_| {
        let own = |growth: &Growth| growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit);
        own(sum) + own(growth)
    });
    sum.bytes_per_unit += growth.bytes_per_unit;
    sum.bytes_per_epoch = both(sum.bytes_per_epoch, growth.bytes_per_epoch);
    sum.elements_per_unit += growth.elements_per_unit;
    sum.elements_per_epoch = both(sum.elements_per_epoch, growth.elements_per_epoch);
    sum.elements += growth.elements;
    sum.interval = sum.interval.zip(growth.interval).map(|(a, b)| [a[0] + b[0], a[1] + b[1]]);
}

fn is_same(a: &Claim, b: &Claim) -> bool {
    (a.class, &a.process.role, &a.holder) == (b.class, &b.process.role, &b.holder) && place(a) == place(b)
}

fn is_same_line(a: &Claim, b: &Claim) -> bool {
    (a.class, &a.process.role) == (b.class, &b.process.role) && place(a).is_some() && place(a) == place(b)
}

/// Where it is grown: which line allocates is known by sampling, in one process and not in the next.
fn place(finding: &Claim) -> Option<(&str, u32)> {
    finding
        .sites
        .first()
        .filter(|site| site.role != SiteRole::Allocates)
        .map(|site: &Site| (site.file.as_str(), site.line))
}

#[cfg(test)]
mod tests {
    use caulk_core::{LeakClass, ProcessRef};

    use crate::claim::Standing;

    use super::*;

    fn finding(role: &str, index: u32, holder: &str) -> Claim {
        Claim {
            container: holder.into(),
            holder: holder.into(),
            process: ProcessRef { role: role.into(), index, count: 1 },
            ..Claim::of(LeakClass::GlobalAccumulation)
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

    #[test]
    fn advice_that_a_finding_gives_already_is_left_out() {
        let site = |line| Site {
            role: SiteRole::Grows,
            file: "a.py".into(),
            line,
            end_line: line,
            column: 1,
            function: String::new(),
            text: String::new(),
            cell: None,
        };
        let of = |class, standing, line| Claim { standing, sites: vec![site(line)], ..Claim::of(class) };
        let (files, global) = (LeakClass::FileHandlesGrow, LeakClass::GlobalAccumulation);
        let all = vec![
            of(files, Standing::Partial, 9),
            of(files, Standing::Light, 9),
            of(files, Standing::Light, 8),
            of(global, Standing::Light, 9),
            of(files, Standing::Partial, 9),
        ];
        let told: Vec<_> = once(all).iter().map(|one| (one.class, one.standing, one.sites[0].line)).collect();
        assert_eq!(
            told,
            [
                (files, Standing::Partial, 9),
                (files, Standing::Light, 8),
                (global, Standing::Light, 9),
                (files, Standing::Partial, 9)
            ]
        );
    }
}
