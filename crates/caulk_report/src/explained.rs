//! How much of the growth the findings explain.

use caulk_core::{Confidence, Finding, ProcessRef, Scope, Series, Verdict};

use crate::words::{self, Per};

/// Share of the growth from which on it counts as explained.
const MOSTLY: f64 = 0.8;

/// The findings that were seen to grow, whatever their severity, and their growth per unit of the verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Explained<'a> {
    /// The one that adds most.
    most: Option<(&'a Finding, f64)>,
    /// How many there are.
    findings: u64,
    /// What they add together, in the series' own unit.
    together: f64,
}

impl<'a> Explained<'a> {
    pub(crate) fn of(verdict: &Verdict, findings: &'a [Finding]) -> Self {
        let mut explained = Self { most: None, findings: 0, together: 0.0 };
        for finding in findings {
            let Some(part) = part(verdict, finding) else { continue };
            explained.findings += 1;
            explained.together += part;
            if explained.most.is_none_or(|(_, most)| part > most) {
                explained.most = Some((finding, part));
            }
        }
        explained
    }

    /// The rest of a sentence about growth that no harmful finding explains.
    pub(crate) fn part(&self, verdict: &Verdict) -> Option<String> {
        let (finding, part) = self.most?;
        let site = finding.sites.first()?;
        if self.together >= MOSTLY * verdict.bytes_per_unit {
            return Some(format!("; the line that adds most is {}:{}", site.file, site.line));
        }
        let per = Per::of(verdict.unit);
        let part = words::rate(verdict.series, part * per.factor);
        Some(format!("; {}:{} adds {part} of that", site.file, site.line))
    }

    /// A line of the figures: `One finding explains 20.0 KB of 977 KB per epoch.`
    pub(crate) fn detail(&self, verdict: &Verdict) -> Option<String> {
        let findings = match self.findings {
            0 => return None,
            1 => "One finding explains".to_owned(),
            findings => format!("{findings} findings explain"),
        };
        let per = Per::of(verdict.unit);
        let [part, all] = [self.together.min(verdict.bytes_per_unit), verdict.bytes_per_unit]
            .map(|rate| words::rate(verdict.series, rate * per.factor));
        let part = if part == all { "all".to_owned() } else { part };
        Some(format!("{findings} {part} of {all} per {}.", per.name))
    }
}

/// Growth per unit that a finding adds to the series; `None` if nothing was seen to grow.
fn part(verdict: &Verdict, finding: &Finding) -> Option<f64> {
    let growth = finding.growth.as_ref()?;
    let seen = finding.confidence != Confidence::Suspected;
    let host = |series: Series| matches!(series, Series::InUse | Series::Rss | Series::Pss);
    let same = growth.series == verdict.series || host(growth.series) && host(verdict.series);
    let counts = matches!(verdict.series, Series::Fds | Series::Threads | Series::Children);
    let part = match verdict.series {
        Series::InUse => growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit),
        _ if counts => growth.elements_per_unit,
        _ => growth.bytes_per_unit,
    };
    let fits = seen
        && finding.scope == Scope::Run
        && same
        && growth.unit == verdict.unit
        && of(&verdict.process, finding);
    (fits && part > 0.0).then_some(part)
}

/// The tree is all processes.
pub(crate) fn of(process: &ProcessRef, finding: &Finding) -> bool {
    process.role == "tree" || (&process.role, process.index) == (&finding.process.role, finding.process.index)
}
