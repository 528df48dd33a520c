//! The course of `caulk heal`: a run of the program as it is, then rounds of runs with edits.

use caulk_check::Texts;
use caulk_core::Severity;
use caulk_heal::{
    Compared, EditCandidate, EditRefusal, EditVerdict, Effect, Measure, NotComparable, OutputDifference,
    Reference, Search, Trial, candidates, effects, expected_runs, outside, patched,
};
use caulk_report::{Outlook, Report, outlook, seconds};

use super::document::{ComparedRow, Document, EditRow, KEPT, LeftRow, Outcome, RunRow};
use super::runner::{Ran, Runner};
use super::shadow::Shadow;
use crate::cli::HealArgs;
use crate::printer::Printer;

/// Rounds, and runs in all, after which the search ends.
const MOST_ROUNDS: usize = 16;
const MOST_RUNS: usize = 40;

/// What makes runs comparable.
const SEED: &str = "set a seed, for example `torch.manual_seed(0)`, `random.seed(0)` and `numpy.random.seed(0)`, and give \
                    each data loader a `generator`";

/// What autograd reports if a graph ends too early.
const NO_GRAPH: &str = "does not require grad and does not have a grad_fn";

/// What is kept so far.
struct Session<'a> {
    runner: Runner<'a>,
    printer: Printer,
    args: &'a HealArgs,
    document: Document,
    /// Sources with the edits that are kept.
    texts: Texts,
    /// Report of the last run with them.
    report: Report,
    tried: Vec<EditCandidate>,
    /// Sources as they are.
    originals: Texts,
    /// A run that was recorded before.
    recorded: Option<Report>,
}

/// What runs with edits are compared with.
struct Unedited {
    output: Reference,
    files: Vec<Option<String>>,
    /// The unedited program has run twice, and what differs by itself is masked.
    masked: bool,
}

/// How a run with edits differs from the unedited program.
enum Changed {
    Output(OutputDifference),
    File(String),
}

/// Ends the course before its end.
enum Halt {
    /// A person wants the end: the exit code.
    Signal(i32),
    /// Nothing more can be learned.
    Ended(Outcome, Option<String>),
    Error(anyhow::Error),
}

impl From<anyhow::Error> for Halt {
    fn from(error: anyhow::Error) -> Self {
        Self::Error(error)
    }
}

/// A heal that is over.
pub(crate) struct Healed {
    pub(crate) document: Document,
    /// The sources with all edits that were proven.
    pub(crate) texts: Texts,
    /// The exit code of a signal that ended it; an error if a run could not be started, copied or judged, or if it changed
    /// files of the project.
    pub(crate) end: anyhow::Result<Option<i32>>,
}

/// Heals a program. What was proven before an error or a signal is in the result.
pub(crate) fn heal(
    args: &HealArgs,
    shadow: &Shadow,
    folder: &camino::Utf8Path,
    recorded: Option<Report>,
    printer: Printer,
) -> Healed {
    let target: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut session = Session {
        runner: Runner::new(args, shadow, folder, printer),
        printer,
        args,
        document: Document::new(caulk_record::redact(&target), folder.to_string()),
        texts: shadow.texts(),
        report: Report::default(),
        tried: Vec::new(),
        originals: shadow.texts(),
        recorded,
    };
    let end = match session.course(shadow) {
        Ok(()) => Ok(None),
        Err(Halt::Signal(code)) => {
            session.end(Outcome::Interrupted, None);
            Ok(Some(code))
        }
        Err(Halt::Ended(outcome, reason)) => {
            session.end(outcome, reason);
            Ok(None)
        }
        Err(Halt::Error(error)) => {
            session.end(Outcome::Failed, Some(format!("{error:#}")));
            Err(error)
        }
    };
    session.document.left = left(&session.report, &session.tried);
    Healed { document: session.document, texts: session.texts, end }
}

impl Session<'_> {
    fn course(&mut self, shadow: &Shadow) -> Result<(), Halt> {
        if let Some(recorded) = &self.recorded
            && !recorded.leak_found()
        {
            self.report = recorded.clone();
            self.conclude(false);
            return Ok(());
        }
        self.printer.progress("run 1: the program as it is");
        let first = self.run(&self.texts.clone(), &[])?;
        if !first.succeeded {
            return Err(Halt::failed(&first));
        }
        if !shadow.has_run(&self.args.command) {
            return Err(Halt::Error(anyhow::anyhow!(
                "the command imported nothing of the project `{}`\n\
                 hint: start caulk in the project's folder; a package that is installed in place needs PYTHONPATH or --in-place",
                shadow.root
            )));
        }
        // A shorter run may not show the growth of the recorded one.
        let recorded = self.recorded.take().filter(|_| !first.report.leak_found());
        self.report = recorded.unwrap_or_else(|| first.report.clone());
        if !self.report.leak_found() {
            self.conclude(false);
            return Ok(());
        }
        self.round_up(shadow, &outside(&self.report.findings, &self.texts));
        let count = self.candidates().len();
        if count == 0 {
            let reason = "no finding has an edit that could be tried".to_owned();
            return Err(Halt::Ended(Outcome::GrowthLeft, Some(reason)));
        }
        self.expect(count, first.report.summary.duration_s);
        let mut unedited = self.unedited(&first)?;
        for _ in 0..MOST_ROUNDS {
            let candidates = self.candidates();
            if candidates.is_empty() || self.runner.runs() >= MOST_RUNS {
                break;
            }
            self.round(candidates, &mut unedited)?;
        }
        self.conclude(true);
        Ok(())
    }

    /// Prints how many runs to expect, and how long they take.
    fn expect(&self, count: usize, duration_s: f64) {
        let (least, most) = expected_runs(count);
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let all = |runs: usize| seconds(duration_s * runs as f64);
        self.printer.progress(&format!(
            "{count} edit{} to try: {least} more run{} ({}) if all help, up to {most} ({}) if one does harm; then other edits are tried",
            plural(count),
            plural(least),
            all(least),
            all(most),
        ));
    }

    fn candidates(&self) -> Vec<EditCandidate> {
        candidates(&self.report.findings, &self.tried, &self.texts)
    }

    /// Tries the edits of one report.
    fn round(&mut self, candidates: Vec<EditCandidate>, unedited: &mut Unedited) -> Result<(), Halt> {
        let base = (self.texts.clone(), self.report.clone());
        let mut search = Search::new(candidates.len());
        let mut halt = None;
        while let Some(group) = search.next().map(<[usize]>::to_vec) {
            if self.runner.runs() >= MOST_RUNS {
                break;
            }
            let all: Vec<&EditCandidate> =
                search.kept().iter().chain(&group).map(|edit| &candidates[*edit]).collect();
            let edits: Vec<&EditCandidate> = group.iter().map(|edit| &candidates[*edit]).collect();
            let Some(changed) = patched(&base.0, all.iter().copied()) else {
                let reason = "it does not fit together with another edit".to_owned();
                search.record(Trial::Harmed(EditRefusal::CannotApply(reason)));
                continue;
            };
            let mut texts = base.0.clone();
            texts.extend(changed);
            self.printer.progress(&format!("run {}: {}", self.runner.runs() + 1, places(&all).join(", ")));
            let tried = self.run(&texts, &all);
            let judged = tried.and_then(|ran| {
                let trial = self.trial(&ran, &edits, &base.1, unedited)?;
                Ok((ran, trial))
            });
            let (ran, trial) = match judged {
                Ok(judged) => judged,
                Err(reason) => {
                    halt = Some(reason);
                    break;
                }
            };
            let result = match &trial {
                Trial::Harmed(refusal) => format!("refused: {refusal}"),
                Trial::Harmless(_) => "harmless, not all of it helps".into(),
            };
            let kept = search.record(trial);
            self.note_result(ran.number, if kept { KEPT.into() } else { result });
            if kept {
                self.texts = texts;
                self.report = ran.report;
            }
        }
        for (candidate, verdict) in candidates.iter().zip(search.verdicts()) {
            self.document.edits.push(EditRow::of(candidate, &verdict));
        }
        self.tried.extend(candidates);
        match halt {
            Some(halt) => Err(halt),
            None => Ok(()),
        }
    }

    fn trial(
        &mut self,
        ran: &Ran,
        edits: &[&EditCandidate],
        before: &Report,
        unedited: &mut Unedited,
    ) -> Result<Trial, Halt> {
        if !ran.succeeded {
            let cut = ran.errors.contains(NO_GRAPH);
            // Tracebacks of IPython are coloured.
            let line = anstream::adapter::strip_str(ran.last_error()).to_string();
            return Ok(Trial::Harmed(if cut {
                EditRefusal::GradientCut
            } else {
                EditRefusal::Crashed(line)
            }));
        }
        let mut compared = self.compare(ran, unedited);
        if compared.is_err() && !unedited.masked {
            self.mask(unedited)?;
            compared = self.compare(ran, unedited);
        }
        let compared = match compared {
            Ok(compared) => compared,
            Err(Changed::Output(difference)) => {
                return Ok(Trial::Harmed(EditRefusal::OutputChanged(difference)));
            }
            Err(Changed::File(file)) => return Ok(Trial::Harmed(EditRefusal::FileChanged(file))),
        };
        self.document.compared = Some(ComparedRow {
            lines: compared.lines,
            numbers: compared.numbers,
            masked: unedited.output.masked(),
            files: self.args.same.iter().map(ToString::to_string).collect(),
        });
        let before = Measure { verdicts: &before.verdicts, findings: &before.findings };
        let after = Measure { verdicts: &ran.report.verdicts, findings: &ran.report.findings };
        let mut effects = effects(edits, before, after);
        if compared.lines == 0 && ran.files.is_empty() {
            let open = "the program prints nothing to compare; name a file that it writes: --same FILE";
            for effect in effects.iter_mut().filter(|effect| **effect == Effect::Helped) {
                *effect = Effect::Open(open.into());
            }
        }
        Ok(Trial::Harmless(effects))
    }

    fn compare(&self, ran: &Ran, unedited: &Unedited) -> Result<Compared, Changed> {
        let compared = unedited.output.compare(ran.output()).map_err(Changed::Output)?;
        let mut files = self.args.same.iter().zip(ran.files.iter().zip(&unedited.files));
        match files.find(|(_, (now, before))| now != before) {
            Some((name, _)) => Err(Changed::File(name.to_string())),
            None => Ok(compared),
        }
    }

    /// What runs with edits are compared with.
    fn unedited(&self, first: &Ran) -> Result<Unedited, Halt> {
        let missing = self.args.same.iter().zip(&first.files).find(|(_, file)| file.is_none());
        if let Some((name, _)) = missing {
            return Err(Halt::not_comparable(&format!("the run made no file `{name}`")));
        }
        let output = Reference::new(first.output(), self.args.tolerance);
        Ok(Unedited { output, files: first.files.clone(), masked: false })
    }

    /// Runs the unedited program again, and masks what differs by itself.
    fn mask(&mut self, unedited: &mut Unedited) -> Result<(), Halt> {
        let originals = self.originals.clone();
        let number = self.runner.runs() + 1;
        self.printer
            .progress(&format!("run {number}: the program as it is, to learn what differs by itself"));
        let second = self.run(&originals, &[])?;
        if !second.succeeded {
            return Err(Halt::failed(&second));
        }
        let mut files = self.args.same.iter().zip(second.files.iter().zip(&unedited.files));
        if let Some((name, _)) = files.find(|(_, (one, other))| one != other) {
            let reason = format!("`{name}` differs between two runs of the unedited program");
            return Err(Halt::not_comparable(&reason));
        }
        unedited.output.mask(second.output()).map_err(|reason| Halt::not_comparable(&explained(&reason)))?;
        unedited.masked = true;
        Ok(())
    }

    /// Runs the program, and notes the run.
    fn run(&mut self, texts: &Texts, edits: &[&EditCandidate]) -> Result<Ran, Halt> {
        if let Some(signal) = caulk_supervise::noted_signal() {
            return Err(Halt::of_signal(signal));
        }
        let ran = self.runner.run(texts)?;
        let mut row = RunRow::of(ran.number, &ran.report, ran.cut, ran.in_use.clone());
        row.edits = places(edits);
        if edits.is_empty() {
            row.result = "unedited".into();
        }
        self.document.runs.push(row);
        match ran.interrupted {
            Some(signal) => {
                self.note_result(ran.number, "interrupted".into());
                Err(Halt::of_signal(signal))
            }
            None => Ok(ran),
        }
    }

    fn note_result(&mut self, number: usize, result: String) {
        if let Some(row) = self.document.runs.iter_mut().find(|row| row.number == number) {
            row.result = result;
        }
    }

    /// Edits that cannot be tried at all.
    fn round_up(&mut self, shadow: &Shadow, outside: &[EditCandidate]) {
        for candidate in outside {
            let verdict =
                EditVerdict::Refused(EditRefusal::CannotApply(shadow.why_not(&candidate.site.file)));
            self.document.edits.push(EditRow::of(candidate, &verdict));
        }
    }

    fn conclude(&mut self, tried: bool) {
        let undecided = matches!(outlook(&self.report.verdicts), Outlook::Undecided(_) | Outlook::Unknown);
        match () {
            () if self.report.leak_found() => self.end(Outcome::GrowthLeft, None),
            () if undecided => {
                let reason = "memory cannot be judged: let the program run for more epochs";
                self.end(Outcome::Undecided, Some(reason.into()));
            }
            () if tried => self.end(Outcome::Healed, None),
            () => self.end(Outcome::NothingToHeal, None),
        }
    }

    fn end(&mut self, outcome: Outcome, reason: Option<String>) {
        self.document.outcome = outcome;
        self.document.reason = reason;
    }
}

impl Halt {
    fn of_signal(signal: i32) -> Self {
        Self::Signal(caulk_supervise::EXIT_SIGNAL_BASE + signal)
    }

    fn failed(ran: &Ran) -> Self {
        let last = Some(ran.last_error()).filter(|line| !line.is_empty());
        let last = last.map_or_else(String::new, |line| format!(": {line}"));
        Self::Ended(Outcome::CommandFailed, Some(format!("run {}: {}{last}", ran.number, ran.report_death())))
    }

    fn not_comparable(reason: &str) -> Self {
        Self::Ended(Outcome::NotComparable, Some(format!("{reason}; {SEED}")))
    }
}

/// `train.py:92`, for each edit.
fn places(edits: &[&EditCandidate]) -> Vec<String> {
    edits.iter().map(|edit| format!("{}:{}", edit.site.file, edit.site.line)).collect()
}

/// Findings without an edit that could be tried.
fn left(report: &Report, tried: &[EditCandidate]) -> Vec<LeftRow> {
    let known = |finding: &&caulk_core::Finding| {
        finding.severity > Severity::Info && !tried.iter().any(|candidate| candidate.is_about(finding))
    };
    let row = |finding: &caulk_core::Finding| LeftRow {
        class: finding.class,
        file: finding.sites.first().map(|site| site.file.clone()).unwrap_or_default(),
        line: finding.sites.first().map_or(0, |site| site.line),
        message: caulk_report::message(finding),
        advice: caulk_report::fix(finding).map(|fix| fix.description),
    };
    report.findings.iter().filter(known).map(row).collect()
}

fn explained(reason: &NotComparable) -> String {
    let of = "between two runs of the unedited program";
    match reason {
        NotComparable::Lines(one, other) => format!("the number of lines differs {of}: {one} and {other}"),
        NotComparable::Text(line) => format!("the text of line {line} differs {of}"),
        NotComparable::LastLine(line) => format!("a number of the last line ({line}) differs {of}"),
        NotComparable::Numbers(some, all) => format!("{some} of {all} numbers differ {of}"),
    }
}
