//! A run made up in memory: what agents would have said, and the sources that they would have said it of.

use std::collections::{BTreeSet, HashMap};

use caulk_check::{Job, Selection};
use caulk_core::wire::{
    BackwardSite, Boundary, ContainerKind, ContainerLen, Contents, Holder, Message, NoteCode, PathStep, Peak,
    Phase, StepKind, TraceHit, Trait, Unit,
};
use caulk_core::{
    AgentEvent, Comparison, Diagnostic, Evidence, Finding, Limits, LineUse, ProcessRecord, Recording, Role,
    Sample, StackUse, SystemSample,
};
use caulk_diagnose::{CompareError, Diagnosis, Sources, diagnose};

pub(crate) const MB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
pub(crate) const FILE: &str = "/job/train.py";

/// `train.py` and files of libraries, and what source alone shows of it.
struct Text(HashMap<String, String>, Vec<Diagnostic>);

impl Sources for Text {
    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn display(&self, path: &str) -> String {
        path.trim_start_matches("/job/").to_owned()
    }

    fn patterns(&self, files: &BTreeSet<String>) -> Vec<Diagnostic> {
        if files.contains(FILE) { self.1.clone() } else { Vec::new() }
    }
}

pub(crate) struct Run {
    recording: Recording,
    source: String,
    libraries: Vec<(&'static str, &'static str)>,
}

impl Run {
    pub(crate) fn of(source: &str) -> Self {
        let mut recording = Recording::default();
        recording.info.limits = Limits { physical_bytes: 8 << 30, ..Limits::default() };
        recording.processes =
            vec![ProcessRecord { pid: 7, role: Role::Main, agent: true, ..ProcessRecord::default() }];
        Self { recording, source: source.to_owned(), libraries: Vec::new() }
    }

    pub(crate) fn with_source(self, source: &str) -> Self {
        Self { source: source.to_owned(), ..self }
    }

    /// With a file of a library.
    pub(crate) fn with_library(mut self, path: &'static str, source: &'static str) -> Self {
        self.libraries.push((path, source));
        self
    }

    /// The line of the source that contains a text, from 1.
    pub(crate) fn line(&self, text: &str) -> u32 {
        let found = self.source.lines().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("`{text}` is in the source")) as u32 + 1
    }

    pub(crate) fn say(mut self, message: impl Into<Message>) -> Self {
        self.recording.events.push(AgentEvent { time_ns: 0, pid: 7, message: message.into() });
        self
    }

    /// Ends of epochs of ten seconds and twenty steps, with these bytes in use.
    pub(crate) fn epochs(self, in_use: impl IntoIterator<Item = u64>) -> Self {
        self.boundaries(Unit::Epoch, 20, in_use)
    }

    pub(crate) fn boundaries(
        mut self,
        unit: Unit,
        steps: u64,
        in_use: impl IntoIterator<Item = u64>,
    ) -> Self {
        for (seq, bytes) in (0..).zip(in_use) {
            let time_ns = (u64::from(seq) + 1) * 10 * SECOND;
            let steps = (u64::from(seq) + 1) * steps;
            let boundary = Boundary {
                seq,
                time_ns,
                unit,
                index: if unit == Unit::Steps { steps } else { u64::from(seq) },
                steps,
                phase: Phase::Train,
                malloc_bytes: bytes,
                rss_bytes: bytes + 300 * MB,
                census_objects: 100_000,
                ..Boundary::default()
            };
            let rss_bytes = boundary.rss_bytes;
            self = self.say(boundary);
            self.recording.samples.push(Sample { time_ns, pid: 7, rss_bytes, ..Sample::default() });
            let system = SystemSample {
                time_ns,
                available_bytes: 1 << 30,
                tree_rss_bytes: rss_bytes,
                ..SystemSample::default()
            };
            self.recording.system.push(system);
        }
        self
    }

    /// Something of that many elements at each boundary.
    pub(crate) fn grown(
        mut self,
        kind: ContainerKind,
        holder: Holder,
        contents: Contents,
        lengths: impl IntoIterator<Item = u64>,
    ) -> Self {
        let id = holder.id;
        for (boundary, len) in (0..).zip(lengths) {
            self = self.say(ContainerLen { boundary, id, kind, len, ..ContainerLen::default() });
        }
        self.say(holder).say(Contents { id, sampled: 8, ..contents })
    }

    /// The armed trace saw it grow at the line that contains a text.
    pub(crate) fn traced(self, id: u32, text: &str, function: &str) -> Self {
        let line = self.line(text);
        self.say(TraceHit {
            id,
            file: FILE.into(),
            line,
            function: function.into(),
            user_file: FILE.into(),
            user_line: line,
            user_function: function.into(),
            growth: 12,
            count: 12,
        })
    }

    pub(crate) fn backward(self, text: &str, site: BackwardSite) -> Self {
        let line = self.line(text);
        self.say(BackwardSite { file: FILE.into(), line, count: 160, ..site })
    }

    pub(crate) fn peak(self, peak: Peak) -> Self {
        self.say(Peak { file: FILE.into(), line: 1, ..peak })
    }

    pub(crate) fn edit(mut self, change: impl FnOnce(&mut Recording)) -> Self {
        change(&mut self.recording);
        self
    }

    /// The texts of all notes.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.diagnose().notes.iter().map(|remark| caulk_report::note(remark).text).collect()
    }

    /// The text of the first note about something.
    pub(crate) fn note(&self, code: &NoteCode) -> Option<String> {
        self.diagnose()
            .notes
            .iter()
            .map(caulk_report::note)
            .find(|note| note.code == *code)
            .map(|note| note.text)
    }

    pub(crate) fn diagnose(&self) -> Diagnosis {
        self.diagnose_with(Vec::new())
    }

    /// The same, joined with what `caulk check` finds in the source.
    pub(crate) fn diagnose_checked(&self) -> Diagnosis {
        let selection = Selection::standard();
        let found = caulk_check::check(Job::of_text("train.py", &self.source, &selection));
        self.diagnose_with(found.diagnostics)
    }

    fn diagnose_with(&self, patterns: Vec<Diagnostic>) -> Diagnosis {
        diagnose(&self.recording, &self.sources(patterns))
    }

    fn sources(&self, patterns: Vec<Diagnostic>) -> Text {
        let mut files = HashMap::from([(FILE.to_owned(), self.source.clone())]);
        files.extend(self.libraries.iter().map(|(path, source)| ((*path).to_owned(), (*source).to_owned())));
        Text(files, patterns)
    }

    pub(crate) fn lines(&self) -> Vec<LineUse> {
        caulk_diagnose::lines(&self.recording, &self.sources(Vec::new()))
    }

    pub(crate) fn stacks(&self) -> Vec<StackUse> {
        caulk_diagnose::stacks(&self.recording, &self.sources(Vec::new()))
    }

    pub(crate) fn compare(
        &self,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Vec<Comparison>, CompareError> {
        caulk_diagnose::compare(&self.recording, &self.sources(Vec::new()), from, to)
    }

    /// The one finding that there is.
    #[track_caller]
    pub(crate) fn finding(&self) -> Finding {
        let diagnosis = self.diagnose();
        assert_eq!(diagnosis.findings.len(), 1, "{diagnosis:#?}");
        diagnosis.findings.into_iter().next().expect("there is one")
    }
}

/// The message of a finding.
pub(crate) fn message(finding: &Finding) -> String {
    caulk_report::message(finding)
}

/// The facts of a finding in words, each with its kind.
pub(crate) fn facts(finding: &Finding) -> Vec<(&'static str, String)> {
    let fact = |evidence| (Evidence::kind(evidence), caulk_report::evidence_text(evidence));
    finding.evidence.iter().map(fact).collect()
}

fn step(kind: StepKind, name: &str, type_name: &str) -> PathStep {
    PathStep { kind, name: name.into(), type_name: type_name.into() }
}

/// `variable.name`, where `variable` is a local of the running `main()`.
pub(crate) fn attribute(id: u32, variable: &str, class: &str, name: &str) -> Holder {
    let class = format!("__main__.{class}");
    Holder {
        id,
        path: vec![
            step(StepKind::Function, "main", ""),
            step(StepKind::Local, variable, &class),
            step(StepKind::Attribute, name, "list"),
        ],
        expression: format!("{variable}.{name}"),
        function: "main".into(),
        file: FILE.into(),
        line: 1,
        name: name.into(),
        owner_type: class,
        complete: true,
        ..Holder::default()
    }
}

/// A local of a running function.
pub(crate) fn local(id: u32, function: &str, name: &str) -> Holder {
    Holder {
        id,
        path: vec![step(StepKind::Function, function, ""), step(StepKind::Local, name, "list")],
        expression: name.into(),
        function: function.into(),
        file: FILE.into(),
        line: 1,
        name: name.into(),
        complete: true,
        ..Holder::default()
    }
}

/// A name of `__main__`.
pub(crate) fn global(id: u32, name: &str) -> Holder {
    Holder {
        id,
        path: vec![step(StepKind::Module, "__main__", ""), step(StepKind::Global, name, "list")],
        expression: name.into(),
        name: name.into(),
        complete: true,
        ..Holder::default()
    }
}

/// What a library keeps: nothing of the user's mentions it.
pub(crate) fn library(id: u32, module: &str, name: &str) -> Holder {
    Holder {
        id,
        path: vec![step(StepKind::Module, module, ""), step(StepKind::Global, name, "dict")],
        expression: format!("{module}.{name}"),
        name: name.into(),
        complete: true,
        ..Holder::default()
    }
}

/// Elements of so many bytes with these facts.
pub(crate) fn elements(bytes: u64, traits: &[Trait]) -> Contents {
    let has = |fact: Trait| traits.contains(&fact);
    Contents {
        bytes_per_element: bytes,
        tensor_bytes_per_element: if has(Trait::Tensor) || has(Trait::Array) { bytes / 2 } else { 0 },
        saved_bytes_per_element: if has(Trait::Graph) { bytes / 2 } else { 0 },
        viewed_bytes_per_element: if has(Trait::Tensor) || has(Trait::Array) { bytes / 2 } else { 0 },
        graph_nodes: if has(Trait::Graph) { 96 } else { 0 },
        traits: traits.to_vec(),
        element_types: vec![("torch.Tensor".into(), 8)],
        ..Contents::default()
    }
}

/// `from`, and `step` more at each of `count` boundaries.
pub(crate) fn rising(from: u64, step: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |boundary| from + step * boundary)
}
