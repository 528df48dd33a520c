//! From what the runs showed to what works here.

use camino::Utf8PathBuf;
use caulk_core::Bytes;
use caulk_doctor::{Check, CheckState, HostFacts, Python};
use serde_json::Value;

use super::Seen;

/// What was found out beside the runs.
pub(crate) struct Found {
    /// The package that looks in.
    pub(crate) package: Utf8PathBuf,
    /// The heap sampler.
    pub(crate) sampler: Option<Utf8PathBuf>,
    /// The interpreter.
    pub(crate) python: Python,
    /// The machine.
    pub(crate) machine: HostFacts,
    /// Can the kernel say how long programs wait for memory?
    pub(crate) pressure: bool,
    /// Lines of the program that leak.
    pub(crate) leaking: Vec<u64>,
}

/// What works, in the order in which one thing needs the other.
pub(crate) fn checks(found: &Found, seen: &[Seen]) -> Vec<Check> {
    let mut checks = vec![
        good("python", format!("{} at {}", found.python.version, found.python.executable)),
        good("package", found.package.to_string()),
    ];
    checks.extend(seen.iter().filter_map(failed));
    let leaks = |heap: bool| report(seen, true, heap);
    checks.push(agent(leaks(false)));
    checks.push(hooks(found, leaks(false)));
    checks.push(line("trace", "without the heap sampler", &found.leaking, leaks(false)));
    checks.push(sampler(found, seen));
    checks.push(line("trace-and-heap", "with the heap sampler", &found.leaking, leaks(true)));
    checks.push(clean("clean", "without the heap sampler", report(seen, false, false)));
    checks.push(clean("clean-and-heap", "with the heap sampler", report(seen, false, true)));
    checks.extend(surroundings(found));
    checks
}

fn report(seen: &[Seen], leak: bool, heap: bool) -> Option<&Value> {
    let one = seen.iter().find(|seen| seen.trial.leak == leak && seen.trial.heap == heap)?;
    one.report.as_ref().ok()
}

fn check(name: &'static str, state: CheckState, text: impl Into<String>, advice: &str) -> Check {
    Check { name, state, text: text.into(), advice: advice.into() }
}

fn good(name: &'static str, text: impl Into<String>) -> Check {
    check(name, CheckState::Good, text, "")
}

fn failed(seen: &Seen) -> Option<Check> {
    let cause = seen.report.as_ref().err()?;
    let heap = if seen.trial.heap { "with" } else { "without" };
    let text = format!("{heap} the heap sampler: {cause}");
    Some(check("run", CheckState::Problem, text, "`caulk selftest --output DIR` keeps what it said"))
}

/// The judgement on the program's memory in use, which only the agent reads.
fn in_use(report: &Value) -> Option<&Value> {
    report["verdicts"].as_array()?.iter().find(|verdict| verdict["series"] == "in_use")
}

fn agent(report: Option<&Value>) -> Check {
    let Some(report) = report else { return check("agent", CheckState::Unknown, "no run to tell by", "") };
    match in_use(report) {
        Some(verdict) => {
            let text =
                verdict["boundaries"].as_u64().map_or_else(String::new, |n| format!("looked in {n} times"));
            good("agent", text)
        }
        None => check(
            "agent",
            CheckState::Problem,
            notes(report),
            "programs are seen from outside alone: no line, no container",
        ),
    }
}

/// What the report says about things that could not be looked at.
fn notes(report: &Value) -> String {
    let lines = report["notes"].as_array().into_iter().flatten();
    let text: Vec<&str> = lines.filter_map(|note| note.as_str().or_else(|| note["text"].as_str())).collect();
    if text.is_empty() { "did not answer".into() } else { text.join("; ") }
}

fn hooks(found: &Found, report: Option<&Value>) -> Check {
    let name = "torch-hooks";
    let Some(torch) = &found.python.torch else {
        return check(
            name,
            CheckState::Unknown,
            "torch is not installed: the program said its epochs itself",
            "",
        );
    };
    match report.and_then(in_use).map(|verdict| verdict["unit"].as_str().unwrap_or_default()) {
        Some("epoch") => good(name, format!("torch {torch}: epochs found")),
        Some(_) => check(
            name,
            CheckState::Problem,
            format!("torch {torch}: no epochs found"),
            "tell them in your loops: `caulk.step()`, `caulk.epoch()`",
        ),
        None => check(name, CheckState::Unknown, "no run to tell by", ""),
    }
}

/// Was the leak named with its line?
fn line(name: &'static str, how: &str, expected: &[u64], report: Option<&Value>) -> Check {
    let Some(report) = report else { return check(name, CheckState::Unknown, "no run to tell by", "") };
    let found = alarms(report);
    let blamed = found
        .iter()
        .find(|finding| finding["sites"][0]["line"].as_u64().is_some_and(|line| expected.contains(&line)));
    let advice = "please report it, with what `caulk selftest --output DIR` leaves";
    match (blamed, found.first()) {
        (Some(finding), _) => {
            let class = finding["class"].as_str().unwrap_or_default();
            let holder = finding["holder"].as_str().unwrap_or("no holder");
            good(name, format!("{how}: the leak was found at its line ({class}, held by `{holder}`)"))
        }
        (None, Some(_)) => {
            check(name, CheckState::Problem, format!("{how}: another line was blamed"), advice)
        }
        (None, None) => check(name, CheckState::Problem, format!("{how}: the leak was not found"), advice),
    }
}

/// Findings that claim harm.
fn alarms(report: &Value) -> Vec<&Value> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter(|finding| finding["severity"] != "info").collect()
}

fn clean(name: &'static str, how: &str, report: Option<&Value>) -> Check {
    let Some(report) = report else { return check(name, CheckState::Unknown, "no run to tell by", "") };
    match alarms(report).first() {
        None => good(name, format!("{how}: nothing was found where nothing leaks")),
        Some(finding) => {
            let class = finding["class"].as_str().unwrap_or_default();
            let text = format!("{how}: {class} was found where nothing leaks");
            check(
                name,
                CheckState::Problem,
                text,
                "please report it, with what `caulk selftest --output DIR` leaves",
            )
        }
    }
}

fn sampler(found: &Found, seen: &[Seen]) -> Check {
    let name = "heap-sampler";
    let Some(library) = &found.sampler else {
        return check(
            name,
            CheckState::Problem,
            "it is not installed",
            "no lines are named for memory that native code allocates",
        );
    };
    let lines = seen.iter().filter(|seen| seen.trial.heap).map(|seen| seen.lines).max().unwrap_or(0);
    if lines > 0 {
        return good(name, format!("{lines} lines hold memory"));
    }
    let why = report(seen, true, true).map_or_else(String::new, |report| format!(": {}", notes(report)));
    let advice = "no lines are named for memory that native code allocates; `--no-heap` leaves it out";
    check(name, CheckState::Problem, format!("`{library}` sampled nothing{why}"), advice)
}

fn surroundings(found: &Found) -> Vec<Check> {
    let limit = match found.machine.cgroup {
        Some(limit) => {
            good("cgroup", format!("a limit of {}, {} left", Bytes(limit.total), Bytes(limit.free)))
        }
        None => good("cgroup", "no limit: forecasts are for the machine's memory"),
    };
    let pressure = if found.pressure {
        good("pressure", "the kernel says how long programs wait for memory")
    } else {
        check(
            "pressure",
            CheckState::Unknown,
            "/proc/pressure/memory cannot be read",
            "levels and forecasts tell without it",
        )
    };
    let gpus: Vec<&str> = found.python.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let gpu = if gpus.is_empty() {
        check("gpu", CheckState::Unknown, "torch sees none here", "")
    } else {
        good("gpu", gpus.join(", "))
    };
    vec![limit, pressure, gpu]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{TRIALS, Trial};
    use super::*;

    fn found() -> Found {
        Found {
            package: "/caulk".into(),
            sampler: Some("/caulk/sampler.so".into()),
            python: Python { torch: Some("2.11".into()), ..Python::default() },
            machine: HostFacts::default(),
            pressure: true,
            leaking: vec![29, 43],
        }
    }

    fn seen(report: impl Fn(Trial) -> Value, lines: usize) -> Vec<Seen> {
        TRIALS.iter().map(|trial| Seen { trial: *trial, report: Ok(report(*trial)), lines }).collect()
    }

    fn healthy(trial: Trial) -> Value {
        let leak = json!({ "severity": "error", "class": "container-grows", "holder": "history", "sites": [{ "line": 29 }] });
        let findings: Vec<Value> = trial.leak.then_some(leak).into_iter().collect();
        json!({ "verdicts": [{ "series": "in_use", "unit": "epoch", "boundaries": 8 }], "findings": findings, "notes": [] })
    }

    fn check(seen: &[Seen], problems: &[&str]) {
        let checks = checks(&found(), seen);
        let bad: Vec<_> = checks
            .iter()
            .filter(|check| check.state == CheckState::Problem)
            .map(|check| check.name)
            .collect();
        assert_eq!(bad, problems, "{checks:#?}");
    }

    #[test]
    fn what_works_is_good() {
        check(&seen(healthy, 3), &[]);
    }

    #[test]
    fn what_does_not_work_is_named() {
        check(&seen(healthy, 0), &["heap-sampler"]);
        let outside = json!({ "verdicts": [], "findings": [], "notes": ["no agent"] });
        check(&seen(|_| outside.clone(), 3), &["agent", "trace", "trace-and-heap"]);
        let always = |_| healthy(Trial { leak: true, heap: true });
        check(&seen(always, 3), &["clean", "clean-and-heap"]);
        let mut broken = seen(healthy, 3);
        broken[0].report = Err("it hangs".into());
        check(&broken, &["run"]);
    }
}
