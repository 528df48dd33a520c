//! One report from those of several lives: a command that was started again goes on where it was.

use caulk_core::{Bytes, Finding, State, most_harmful_first};

use crate::life::Life;
use crate::report::Report;
use crate::words;

/// The report of a run of several lives, in order. Head and place are the first one's, the end is the last one's;
/// memory is judged by one of them, see [`judged`].
pub fn join(reports: Vec<Report>) -> Option<Report> {
    let lives: Vec<Life> = reports.iter().map(Life::of).collect();
    let verdicts = reports[judged(&reports)?].verdicts.clone();
    let mut all = reports.into_iter();
    let mut joined = all.next()?;
    for report in all {
        joined.add(report);
    }
    most_harmful_first(&mut joined.findings);
    joined.verdicts = verdicts;
    if lives.len() > 1 {
        joined.lives = lives;
    }
    Some(joined)
}

/// Which of the lives tells most of how memory behaves: the longest one in which it grows, or the longest of all.
pub fn judged(reports: &[Report]) -> Option<usize> {
    let key = |report: &Report| (grows(report), report.summary.steps, report.summary.epochs);
    (0..reports.len()).max_by_key(|&index| key(&reports[index]))
}

fn grows(report: &Report) -> bool {
    report.verdicts.iter().any(|verdict| verdict.state == State::Grows)
}

impl Life {
    fn of(report: &Report) -> Self {
        let summary = &report.summary;
        Self {
            command: report.info.target.command.clone(),
            ended: report.info.death.as_ref().map_or_else(String::new, |death| death.text.clone()),
            epochs: summary.epochs,
            steps: summary.steps,
            duration_s: summary.duration_s,
            peak_bytes: summary.peak_bytes,
        }
    }

    /// `12 epochs, 480 steps in 40 s, peak 512 MB; ended by signal 15 (SIGTERM): ...`.
    pub(crate) fn text(&self) -> String {
        let epochs = self.epochs.filter(|epochs| *epochs > 0).map(|epochs| words::count(epochs, "epoch"));
        let steps = self.steps.filter(|steps| *steps > 0).map(|steps| words::count(steps, "step"));
        let passed: Vec<String> = epochs.into_iter().chain(steps).collect();
        let passed = if passed.is_empty() { "no step".into() } else { passed.join(", ") };
        let peak = self.peak_bytes.map_or(String::new(), |peak| format!(", peak {}", Bytes(peak)));
        let ended = if self.ended.is_empty() { String::new() } else { format!("; {}", self.ended) };
        format!("{passed} in {}{peak}{ended}", words::seconds(self.duration_s))
    }
}

impl Report {
    /// Takes in the life that followed.
    fn add(&mut self, next: Self) {
        let (own, other) = (&mut self.summary, &next.summary);
        own.epochs = sum(own.epochs, other.epochs);
        own.steps = sum(own.steps, other.steps);
        own.duration_s += other.duration_s;
        own.peak_bytes = own.peak_bytes.max(other.peak_bytes);
        own.processes += other.processes;
        own.cost_s = own.cost_s.zip(other.cost_s).map(|(a, b)| a + b).or(own.cost_s).or(other.cost_s);
        own.longest_pause_s =
            [own.longest_pause_s, other.longest_pause_s].into_iter().flatten().reduce(f64::max);
        own.in_use_at_end_bytes = other.in_use_at_end_bytes;
        self.info.death = next.info.death;
        self.info.end_ns = next.info.end_ns;
        self.info.left = next.info.left;
        self.ending = next.ending;
        self.running = next.running;
        self.excerpts.extend(next.excerpts);
        self.problems.extend(next.problems);
        let fresh = next.notes.into_iter().filter(|note| !self.notes.contains(note)).collect::<Vec<_>>();
        self.notes.extend(fresh);
        for finding in next.findings {
            self.meet(finding);
        }
    }

    /// Of what two lives have found at one place, the surer one stays.
    fn meet(&mut self, finding: Finding) {
        let weight = |one: &Finding| (one.severity, one.confidence);
        match self.findings.iter_mut().find(|known| is_same(known, &finding)) {
            Some(known) if weight(known) >= weight(&finding) => {}
            Some(known) => *known = finding,
            None => self.findings.push(finding),
        }
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().reduce(|a, b| a + b)
}

fn is_same(a: &Finding, b: &Finding) -> bool {
    let place = |one: &Finding| one.sites.first().map(|site| (site.file.clone(), site.line));
    a.class == b.class && place(a) == place(b) && a.container == b.container
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use caulk_core::wire::NoteCode;
    use caulk_core::{
        Confidence, Death, Growth, LeakClass, Note, RunInfo, Series, Settled, Severity, VerdictUnit,
    };

    use super::*;
    use crate::Summary;

    fn life(steps: u64, code: i32, note: &str) -> Report {
        let death = Death {
            code: Some(code),
            signal: None,
            kill: None,
            text: format!("exited with code {code}"),
            stopped: false,
        };
        let summary =
            Summary { steps: Some(steps), duration_s: 2.0, peak_bytes: Some(steps), ..Summary::default() };
        let info = RunInfo { death: Some(death), ..RunInfo::default() };
        Report { info, summary, notes: vec![Note::new(NoteCode::Alarm, note)], ..Report::default() }
    }

    #[test]
    fn lives_add_up_and_the_last_one_ends_the_run() {
        let joined = join(vec![life(5, 1, "a"), life(9, 1, "b"), life(3, 0, "a")]).unwrap();
        let Summary { steps, duration_s, peak_bytes, .. } = joined.summary;
        assert_eq!((steps, peak_bytes), (Some(17), Some(9)));
        assert!((duration_s - 6.0).abs() < 1e-9);
        assert_eq!(joined.info.death.and_then(|death| death.code), Some(0));
        let notes: Vec<_> = joined.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(notes, ["a", "b"]);
        let steps: Vec<_> = joined.lives.iter().map(|life| life.steps).collect();
        assert_eq!(steps, [Some(5), Some(9), Some(3)]);
        assert_eq!(joined.lives[0].text(), "5 steps in 2.0 s, peak 5 B; exited with code 1");
    }

    #[test]
    fn one_life_is_the_whole_run() {
        let one = life(5, 1, "a");
        assert_eq!(join(vec![one.clone()]), Some(one));
        assert_eq!(join(Vec::new()), None);
    }
    #[test]
    fn what_grows_most_comes_first_however_sure_it_is() {
        let finding = |severity, confidence, bytes| {
            Finding::new(Settled {
                severity,
                confidence,
                growth: Some(Growth::of_bytes(VerdictUnit::Epoch, Series::InUse, bytes, Some(bytes))),
                ..Settled::of(LeakClass::UnboundedHistory)
            })
        };
        let findings = vec![
            finding(Severity::Warning, Confidence::Proved, 9e6),
            finding(Severity::Error, Confidence::Likely, 3e5),
            finding(Severity::Error, Confidence::Proved, 2e6),
        ];
        let joined = join(vec![Report { findings, ..life(5, 0, "a") }]).unwrap();
        let order: Vec<f64> =
            joined.findings.iter().filter_map(|found| Some(found.growth.as_ref()?.bytes_per_unit)).collect();
        assert_eq!(order, [2e6, 3e5, 9e6]);
    }
}
