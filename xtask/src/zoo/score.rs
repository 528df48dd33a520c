//! Compares a report with what is known. Pure: values in, values out.

use serde::Serialize;

use crate::findings::{Finding, Growth, Report, Severity, Verdict};
use crate::zoo::run::Outcome;
use crate::zoo::truth::{FalseFriend, LeakSite, Truth};

/// A claimed growth is right within this factor.
const GROWTH_FACTOR: f64 = 1.5;

/// How near a report came to the leaking line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Found {
    /// Not at all.
    No,
    /// The function or the container, not the line.
    Nearby,
    /// A line of the leak.
    Line,
}

/// A leaking program's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LeakScore {
    /// How near.
    pub(crate) found: Found,
    /// The right container was named.
    pub(crate) container: bool,
    /// The right class was named; what was named instead.
    pub(crate) class: bool,
    /// The class of the finding that counts.
    pub(crate) claimed_class: String,
    /// Claimed growth over measured growth; none where there is nothing to compare.
    pub(crate) growth_ratio: Option<f64>,
    /// The claimed growth is right, or there is nothing to compare.
    pub(crate) growth: bool,
    /// False friends that were reported.
    pub(crate) friends_blamed: Vec<String>,
    /// The report, if something is missing.
    pub(crate) why: String,
}

/// A clean program's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CleanScore {
    /// Findings and verdicts that claim a leak where there is none.
    pub(crate) alarms: Vec<String>,
}

/// Judges the report on a leaking program.
pub(crate) fn leak(truth: &Truth, outcome: &Outcome) -> LeakScore {
    let alarms: Vec<_> = outcome.report.alarms().collect();
    let best = alarms
        .iter()
        .max_by_key(|finding| (nearness(truth, finding), std::cmp::Reverse(rank(&alarms, finding))));
    let Some(best) = best.filter(|finding| nearness(truth, finding) > Found::No) else {
        return LeakScore {
            friends_blamed: friends(truth, "leaky", &outcome.report),
            ..missed(truth, &outcome.report)
        };
    };
    let ratio = growth_ratio(truth, &alarms, best, units_per_epoch(outcome));
    LeakScore {
        found: nearness(truth, best),
        container: truth.leak_sites.iter().any(|site| same_container(site, best)),
        class: best.class == truth.leak_class,
        claimed_class: best.class.clone(),
        growth_ratio: ratio,
        growth: ratio
            .map_or(!has_growth(truth), |ratio| (1.0 / GROWTH_FACTOR..=GROWTH_FACTOR).contains(&ratio)),
        friends_blamed: friends(truth, "leaky", &outcome.report),
        why: reason(&outcome.report),
    }
}

/// Judges the report on a clean program.
pub(crate) fn clean(truth: &Truth, outcome: &Outcome) -> CleanScore {
    let report = &outcome.report;
    let claims = report.alarms().map(|finding| format!("{} at {}", finding.class, place(finding)));
    let grows =
        report.verdicts.iter().filter(|verdict| verdict.series == "in_use" && verdict.state == "grows");
    let verdicts = grows.map(|verdict| format!("{} in use `grows`", verdict.process.role));
    // Silence counts only where something was judged.
    let unjudged = main_verdict(report).is_none().then(|| "no verdict on the main process".to_owned());
    CleanScore {
        alarms: claims.chain(verdicts).chain(unjudged).chain(friends(truth, "clean", report)).collect(),
    }
}

fn rank(alarms: &[&Finding], finding: &Finding) -> usize {
    alarms.iter().position(|other| std::ptr::eq(*other, finding)).unwrap_or(usize::MAX)
}

fn nearness(truth: &Truth, finding: &Finding) -> Found {
    if truth.leak_sites.iter().any(|site| finding.names(&site.file, site.line)) {
        Found::Line
    } else if truth
        .leak_sites
        .iter()
        .any(|site| same_container(site, finding) || same_function(site, finding))
    {
        Found::Nearby
    } else {
        Found::No
    }
}

fn same_function(site: &LeakSite, finding: &Finding) -> bool {
    let in_file = |named: &str| named == site.file || named.ends_with(&format!("/{}", site.file));
    finding.sites.iter().any(|named| named.function == site.function && in_file(&named.file))
}

/// The same expression, or the same name at its end: `self.all_ious`, `trainer.all_ious`.
fn same_container(site: &LeakSite, finding: &Finding) -> bool {
    let expected = last_name(&site.container);
    [&finding.container, &finding.holder].into_iter().any(|named| {
        let plain = named.replace('\'', "\"");
        plain == site.container || (!expected.is_empty() && last_name(&plain) == expected)
    })
}

/// `self.terms` -> `terms`, `history["val"]` -> `history["val"]`, `loss.backward()` -> `backward`.
fn last_name(expression: &str) -> &str {
    let plain = expression.trim().trim_end_matches("()");
    let base = plain.find('[').map_or(plain, |bracket| &plain[..bracket]);
    &plain[base.rfind('.').map_or(0, |dot| dot + 1)..]
}

fn has_growth(truth: &Truth) -> bool {
    truth.symptom == "growth" && truth.measured.leaky_growth_mb_per_epoch.is_some()
}

/// The finding's growth over the measured one. Where a leak sits in several containers the findings at its lines
/// share it, so their sum counts if it is nearer.
fn growth_ratio(truth: &Truth, alarms: &[&Finding], best: &Finding, units: Option<f64>) -> Option<f64> {
    let measured = truth.measured.leaky_growth_mb_per_epoch.filter(|_| has_growth(truth))? * 1e6;
    let per_epoch =
        |finding: &Finding| finding.growth.as_ref().and_then(|growth| bytes_per_epoch(growth, units));
    let alone = per_epoch(best)? / measured;
    let at_leak = alarms.iter().filter(|finding| nearness(truth, finding) == Found::Line);
    let together = at_leak.filter_map(|finding| per_epoch(finding)).sum::<f64>() / measured;
    let distance = |ratio: f64| if ratio > 0.0 { ratio.ln().abs() } else { f64::INFINITY };
    Some(if distance(together) < distance(alone) { together } else { alone })
}

/// Units that were judged, shared among the epochs that the program printed.
fn units_per_epoch(outcome: &Outcome) -> Option<f64> {
    let verdict = outcome.report.verdicts.iter().find(|verdict| verdict.series == "in_use")?;
    let units = f64::from(verdict.boundaries) * verdict.boundary_units;
    (outcome.epochs > 0).then(|| units / f64::from(outcome.epochs))
}

fn bytes_per_epoch(growth: &Growth, units: Option<f64>) -> Option<f64> {
    growth.bytes_per_epoch.or_else(|| Some(growth.bytes_per_unit * units?))
}

/// False friends that a report names as leaks.
pub(crate) fn friends(truth: &Truth, side: &str, report: &Report) -> Vec<String> {
    let here = truth.false_friends.iter().filter(|friend| friend.file.starts_with(side));
    let blamed = here.filter(|friend| report.findings.iter().any(|finding| blames(finding, friend)));
    blamed.map(|friend| format!("blames {}:{}", friend.file, friend.line)).collect()
}

fn blames(finding: &Finding, friend: &FalseFriend) -> bool {
    let tolerated = friend.tolerance == "info" && finding.severity == Severity::Info;
    !tolerated && finding.names(&friend.file, friend.line)
}

fn missed(truth: &Truth, report: &Report) -> LeakScore {
    LeakScore {
        found: Found::No,
        container: false,
        class: false,
        claimed_class: String::new(),
        growth_ratio: None,
        growth: !has_growth(truth),
        friends_blamed: Vec::new(),
        why: reason(report),
    }
}

/// The content of the report: verdict, findings, notes, problems.
fn reason(report: &Report) -> String {
    let verdict = main_verdict(report).map_or_else(
        || "no verdict on the main process".into(),
        |verdict| format!("in use {} over {} boundaries", verdict.state, verdict.boundaries),
    );
    let findings = report.findings.iter().map(|finding| {
        format!("{:?} {} at {}", finding.severity, finding.class, place(finding)).to_lowercase()
    });
    let problems = report.problems.iter().map(|problem| problem.message.clone());
    let said = findings.chain(report.notes.iter().cloned()).chain(problems);
    std::iter::once(verdict).chain(said).collect::<Vec<_>>().join("; ")
}

fn main_verdict(report: &Report) -> Option<&Verdict> {
    report.verdicts.iter().find(|verdict| verdict.series == "in_use" && verdict.process.role == "main")
}

fn place(finding: &Finding) -> String {
    match finding.sites.first() {
        Some(site) => format!("{}:{}", site.file, site.line),
        None if finding.holder.is_empty() => "no line".into(),
        None => format!("no line, held by {}", finding.holder),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TRUTH: &str = r#"
        id = "a"
        leak_class = "graph-kept-in-container"
        kind = "static+dynamic"
        symptom = "growth"
        default_epochs = 8
        default_steps = 24
        leak_sites = [{ file = "leaky/main.py", line = 79, function = "Trainer.validate", container = "self.ious" }]
        false_friends = [
            { file = "leaky/main.py", line = 66 },
            { file = "clean/main.py", line = 83, tolerance = "info" },
        ]
        measured = { leaky_growth_mb_per_epoch = 16.0 }
    "#;

    fn outcome(findings: &str) -> (Truth, Outcome) {
        let verdict = r#"{"series": "in_use", "state": "flat", "boundaries": 24, "boundary_units": 5.3, "process": {"role": "main"}}"#;
        let report = format!(r#"{{"verdicts": [{verdict}], "findings": [{findings}]}}"#);
        let outcome = Outcome { report: serde_json::from_str(&report).unwrap(), epochs: 8 };
        (toml::from_str(TRUTH).unwrap(), outcome)
    }

    fn finding(file: &str, line: u32, growth: &str) -> String {
        format!(
            r#"{{"class": "graph-kept-in-container", "severity": "error", "container": "self.ious", "holder": "t.ious",
               "sites": [{{"file": "{file}", "line": {line}, "function": "Trainer.validate"}}], "growth": {growth}}}"#
        )
    }

    fn check(finding: &str, found: Found, growth: bool) {
        let (truth, outcome) = outcome(finding);
        let score = leak(&truth, &outcome);
        assert_eq!((score.found, score.growth), (found, growth), "{finding}");
    }

    #[test]
    fn the_line_counts_and_the_growth_within_its_factor() {
        check(&finding("leaky/main.py", 79, r#"{"bytes_per_epoch": 17e6}"#), Found::Line, true);
        check(&finding("leaky/main.py", 79, r#"{"bytes_per_epoch": 25e6}"#), Found::Line, false);
        check(&finding("leaky/main.py", 80, r#"{"bytes_per_epoch": 10e6}"#), Found::Nearby, false);
        check("", Found::No, false);
    }

    #[test]
    fn growth_in_steps_is_shared_among_the_epochs() {
        let steps = r#"{"bytes_per_epoch": null, "bytes_per_unit": 1e6}"#;
        check(&finding("leaky/main.py", 79, steps), Found::Line, true);
    }

    #[test]
    fn two_findings_at_the_leak_share_its_growth() {
        let half = finding("leaky/main.py", 79, r#"{"bytes_per_epoch": 8e6}"#);
        check(&half, Found::Line, false);
        check(&format!("{half}, {half}"), Found::Line, true);
    }

    #[test]
    fn a_finding_elsewhere_is_no_hit_and_a_false_friend_is_told() {
        let elsewhere =
            finding("leaky/main.py", 66, "null").replace("ious", "norms").replace("Trainer.", "Other.");
        let (truth, outcome) = outcome(&elsewhere);
        let score = leak(&truth, &outcome);
        assert_eq!(
            (score.found, score.friends_blamed),
            (Found::No, vec!["blames leaky/main.py:66".to_owned()])
        );
    }

    #[test]
    fn advice_is_no_alarm_on_a_clean_program() {
        let loud = finding("clean/main.py", 83, "null");
        let quiet = loud.replace("error", "info");
        for (text, alarms) in [(quiet, 0), (loud, 2)] {
            let (truth, outcome) = outcome(&text);
            assert_eq!(clean(&truth, &outcome).alarms.len(), alarms, "{text}");
        }
    }

    #[test]
    fn silence_without_a_verdict_is_no_pass() {
        let (truth, outcome) = outcome("");
        let silent = Outcome { report: Report::default(), ..outcome };
        assert_eq!(clean(&truth, &silent).alarms, ["no verdict on the main process"]);
    }

    #[test]
    fn containers_are_compared_by_their_last_name() {
        for (expression, name) in [
            ("self.terms", "terms"),
            ("RESULTS", "RESULTS"),
            ("history[\"val\"]", "history[\"val\"]"),
            ("trainer.metrics[\"a.b\"]", "metrics[\"a.b\"]"),
            ("loss.backward()", "backward"),
        ] {
            assert_eq!(last_name(expression), name);
        }
    }
}
