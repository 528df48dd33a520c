//! Processes that do the same work have the same leak: one finding speaks for all of them.

use caulk_core::{Growth, Role, Site, SiteRole};

use crate::claim::{Claim, Relation, Relations};

/// Claims of one role at one place are one, and the first of them says for how many processes it speaks: with its own
/// figures for ranks, which may run anywhere, and with those of all for workers, whose memory is one machine's.
pub(crate) fn by_role<'a>(claims: &[Claim]) -> Relations<'a> {
    let mut groups: Vec<(usize, Vec<&Claim>)> = Vec::new();
    let mut relations = Relations::new();
    for (at, claim) in claims.iter().enumerate() {
        match groups.iter_mut().find(|(_, group)| is_same(group[0], claim)) {
            Some((_, group)) => {
                let is_counted = |other: &&Claim| other.process.index == claim.process.index;
                if !group.iter().any(is_counted) {
                    group.push(claim);
                }
                relations.push((at, Relation::PartOf));
            }
            None => groups.push((at, vec![claim])),
        }
    }
    let joint = groups.into_iter().filter(|(_, group)| group.len() > 1);
    relations.extend(joint.map(|(at, group)| (at, same_work(&group))));
    relations
}

/// Advice that says what a claim before it says: the same of the same line.
pub(crate) fn repeated<'a>(claims: &[Claim]) -> Relations<'a> {
    let again = |(at, claim): &(usize, &Claim)| {
        let said = |first: &Claim| first.weighs() && is_same_line(first, claim);
        !claim.weighs() && claims[..*at].iter().any(said)
    };
    claims.iter().enumerate().filter(again).map(|(at, _)| (at, Relation::PartOf)).collect()
}

fn same_work<'a>(group: &[&Claim]) -> Relation<'a> {
    let are_workers = group[0].process.role == Role::Worker.as_str();
    let all = group.iter().map(|claim| claim.growth.clone());
    let sum = all.reduce(|sum, one| match (sum, one) {
        (Some(sum), Some(one)) => Some(added(&sum, &one)),
        (sum, _) => sum,
    });
    Relation::SameWork(group.len() as u32, sum.flatten().filter(|_| are_workers))
}

/// The growth of two processes.
fn added(sum: &Growth, one: &Growth) -> Growth {
    let both = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    let own = |growth: &Growth| growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit);
    let in_use = sum.in_use_per_unit.or(one.in_use_per_unit).map(|_| own(sum) + own(one));
    Growth {
        in_use_per_unit: in_use,
        bytes_per_unit: sum.bytes_per_unit + one.bytes_per_unit,
        bytes_per_epoch: both(sum.bytes_per_epoch, one.bytes_per_epoch),
        elements_per_unit: sum.elements_per_unit + one.elements_per_unit,
        elements_per_epoch: both(sum.elements_per_epoch, one.elements_per_epoch),
        elements: sum.elements + one.elements,
        interval: sum.interval.zip(one.interval).map(|(a, b)| [a[0] + b[0], a[1] + b[1]]),
        ..sum.clone()
    }
}

fn is_same(a: &Claim, b: &Claim) -> bool {
    (a.class(), &a.process.role, &a.holder) == (b.class(), &b.process.role, &b.holder) && place(a) == place(b)
}

fn is_same_line(a: &Claim, b: &Claim) -> bool {
    (a.class(), &a.process.role) == (b.class(), &b.process.role) && place(a).is_some() && place(a) == place(b)
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
    use caulk_core::{Cause, Countable, ProcessRef, VerdictUnit};

    use crate::claim::{Observed, Standing, settle};

    use super::*;

    fn more(counted: Countable) -> Observed {
        Observed::of(Cause::Counts { counted, per_unit: 1.0, unit: VerdictUnit::Epoch, last: 9.0 })
    }

    fn claim(role: &str, index: u32, holder: &str) -> Claim {
        Claim::from(Observed {
            container: holder.into(),
            holder: holder.into(),
            process: ProcessRef { role: role.into(), index, count: 1 },
            ..more(Countable::Files)
        })
    }

    #[test]
    fn ranks_share_a_finding_and_roles_do_not() {
        let all =
            [("rank", 1, "a"), ("rank", 0, "a"), ("rank", 0, "a"), ("rank", 0, "b"), ("worker", 0, "a")];
        let merged = settle(all.map(|(role, index, holder)| claim(role, index, holder)).into(), by_role);
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
        let of = |counted, standing, line| {
            Claim::from(Observed { standing, sites: vec![site(line)], ..more(counted) })
        };
        let (files, threads) = (Countable::Files, Countable::Threads);
        let all = vec![
            of(files, Standing::Partial, 9),
            of(files, Standing::Light, 9),
            of(files, Standing::Light, 8),
            of(threads, Standing::Light, 9),
            of(files, Standing::Partial, 9),
        ];
        let left = settle(all.clone(), repeated);
        assert_eq!(left, [0, 2, 3, 4].map(|at| all[at].clone()));
    }
}
