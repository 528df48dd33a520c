//! A recording and the program's sources to verdicts and findings: the join of what was seen from outside, what the
//! agents saw from inside, and what the source says.
//!
//! Values in, values out: no I/O. Sources come through [`Sources`], so that a recording can be judged in memory. Nothing
//! is invented: growth without a cause found stays without one, and what was looked at is said.

mod allocated;
mod baselines;
mod children;
mod class;
mod compare;
mod covered;
mod cycles;
mod exhausted;
mod fix;
mod generations;
mod gpu;
mod gpu_lines;
mod gpu_rest;
mod growth;
mod heap;
mod held;
mod left;
mod limits;
mod loss;
mod makers;
mod merge;
mod name;
mod native;
mod opened;
mod outside;
mod page_cache;
mod patterns;
mod peaks;
mod pinned;
mod place;
mod process;
mod profiler;
mod ranks;
mod reached;
mod resources;
mod retention;
mod sharing;
mod shm_files;
mod small;
mod stored;
mod suspect;
mod training;
mod unaccounted;
mod unended;
mod units;
mod uses;
mod verdicts;
mod within;
mod workers;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use caulk_core::wire::{ContainerKind, Note};
use caulk_core::{
    Confidence, Diagnostic, Finding, GpuUse, LeakClass, Recording, Scope, Series, Severity, Site, State,
    Verdict, most_harmful_first,
};
use caulk_python::Module;

use crate::children::Children;
pub use crate::compare::{CompareError, compare};
use crate::process::Process;
pub use crate::uses::{lines, stacks, totals};

/// Where the text of the program's files comes from.
pub trait Sources {
    /// Text of a file by the name that the program's code objects have; `None` where it cannot be read.
    fn read(&self, path: &str) -> Option<String>;
    /// The name as reports write it: relative to where caulk was started, when below it.
    fn display(&self, path: &str) -> String;
    /// Leak patterns that source alone shows in the projects of these files, under the names that reports write.
    fn patterns(&self, files: &BTreeSet<String>) -> Vec<Diagnostic>;
}

/// What a recording says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosis {
    /// What every series does.
    pub verdicts: Vec<Verdict>,
    /// Leaks, most harmful first.
    pub findings: Vec<Finding>,
    /// What the run's looks at each GPU come to.
    pub gpus: Vec<GpuUse>,
    /// What could not be looked at, and what was looked at in vain; for people.
    pub notes: Vec<String>,
}

/// Part of the growth that cycles must account for, as far as their objects tell, before it is left open whether they are
/// all of it: what else hangs on them is not known.
const MUCH: f64 = 0.25;
/// Part of the growth that is explained by what is proved, however little that is.
const PROVED: f64 = 0.5;
/// Looks at all containers below which it is no news that none of them was found to grow.
const FEWEST_LOOKS: usize = 4;

/// Judges a recording.
pub fn diagnose(recording: &Recording, sources: &dyn Sources) -> Diagnosis {
    let files = Files { sources, parsed: RefCell::default() };
    let processes = Process::all(recording);
    let mut diagnosis = Diagnosis::default();
    let mut unexplained = false;
    let mut parts: Vec<Part<'_>> =
        processes.iter().map(|process| Part::of(&files, process, recording)).collect();
    workers::join(&mut parts);
    let end_ns = parts.iter().filter_map(|part| part.process.seen_until()).max().unwrap_or(0);
    let last = parts.iter_mut().filter(|part| part.process.lives_at(end_ns));
    verdicts::share_the_room(&mut last.map(|part| &mut part.judged).collect::<Vec<_>>());
    for (finding, verdict) in sharing::findings(&files, &parts, &files_of(&processes)) {
        diagnosis.findings.push(finding);
        diagnosis.verdicts.extend(verdict);
    }
    diagnosis.notes.extend(ranks::notes(&parts));
    let known = OnceCell::new();
    let patterns = || known.get_or_init(|| sources.patterns(&files_of(&processes))).as_slice();
    for Part { process, judged, mut findings, told, .. } in parts {
        if findings.iter().any(native::is_suspected) {
            patterns::adopt(&mut findings, patterns());
        }
        stored::name(&files, process, &mut findings);
        unexplained |= is_unexplained(&judged, &findings);
        diagnosis.notes.extend(notes(process, &judged, &findings));
        diagnosis.notes.extend(gpu_rest::note(recording, process));
        let within = findings.iter().any(|finding| finding.scope == Scope::Epoch);
        diagnosis.verdicts.extend(judged.told(within).into_iter().filter(|_| told));
        diagnosis.findings.extend(findings);
    }
    if let Some(verdict) = outside::of_tree(recording, &processes) {
        diagnosis.notes.extend(outside::note(&verdict, &processes));
        diagnosis.verdicts.push(verdict);
    }
    diagnosis.notes.extend(page_cache::note(recording));
    diagnosis.notes.extend(shm_files::note(recording));
    diagnosis.gpus = gpu::devices(recording);
    diagnosis.notes.extend(gpu::of_devices(&diagnosis.gpus));
    diagnosis.findings.extend(left::findings(recording));
    if unexplained || diagnosis.findings.iter().any(|finding| finding.severity > Severity::Info) {
        let of_many_lines = |finding: &Finding| resources::are_of_several_kinds(&processes, finding);
        patterns::join(&mut diagnosis.findings, patterns(), of_many_lines);
        resources::locate(&files, &processes, &mut diagnosis.findings);
        if unexplained {
            let suspected = patterns::suspected(&diagnosis.findings, patterns());
            if !suspected.is_empty() {
                // Source that shows what keeps it is a better lead than the line that allocates.
                demote(&mut diagnosis.findings, native::is_suspected);
            }
            diagnosis.findings.extend(suspected);
        }
    }
    most_harmful_first(&mut diagnosis.findings);
    diagnosis.findings = merge::once(merge::by_role(diagnosis.findings));
    most_harmful_first(&mut diagnosis.findings);
    diagnosis.findings.iter_mut().for_each(Finding::cut_twins);
    diagnosis.notes.dedup();
    diagnosis
}

/// What is said of one process.
pub(crate) struct Part<'a> {
    pub(crate) process: &'a Process<'a>,
    pub(crate) judged: verdicts::Judged,
    pub(crate) findings: Vec<Finding>,
    /// Of a process that works for another: what a line was seen to grow in it, found to be a leak or not.
    pub(crate) traced: Vec<Finding>,
    /// Its verdicts are told.
    pub(crate) told: bool,
}

impl<'a> Part<'a> {
    fn of(files: &Files<'_>, process: &'a Process<'a>, recording: &Recording) -> Self {
        let mut judged = verdicts::of_process(recording, process);
        let findings = of_process(files, process, &mut judged, recording);
        let traced = workers::master(process).map(|_| {
            let suspects = suspect::traced(files, process, &judged);
            suspect::findings(files, process, &judged, suspects)
        });
        Self { process, judged, findings, traced: traced.unwrap_or_default(), told: true }
    }
}

fn of_process(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &mut verdicts::Judged,
    recording: &Recording,
) -> Vec<Finding> {
    let died =
        recording.info.death.as_ref().is_none_or(|death| death.signal.is_some() || death.kill.is_some());
    let suspects = suspect::of_process(files, process, judged, died);
    let filling = suspect::filling(judged, &suspects);
    let mut findings = suspect::findings(files, process, judged, suspects);
    if let Some(open) = native::open(judged, &findings, filling.map_or(0.0, |filling| filling.bytes)) {
        let cycle = cycles::finding(files, process, judged, open);
        let known = cycle.or_else(|| profiler::finding(files, process, judged, open));
        let mut lines = known
            .map_or_else(|| native::findings(files, process, judged, open, &findings), |known| vec![known]);
        lines.retain(|line| !findings.iter().any(|finding| caches(finding, line)));
        let rate = judged.in_use().map_or(0.0, |verdict| verdict.bytes_per_unit);
        let much = |line: &Finding| {
            let bytes = line.growth.as_ref().map_or(0.0, |growth| growth.bytes_per_unit);
            cycles::is_collectable(line) && bytes >= MUCH * rate
        };
        if lines.iter().any(much)
            && findings.iter().all(|finding| finding.severity == Severity::Info)
            && let Some(more) = cycles::until_collected(process, judged)
        {
            judged.postpone(more, "rises by objects in cycles, for which the collector has not come by yet");
            demote(&mut lines, cycles::is_collectable);
        }
        findings.extend(lines);
    } else {
        allocated::locate(files, process, judged, &mut findings);
        findings.extend(cycles::waiting(files, process, judged));
    }
    if findings.iter().any(|finding| finding.severity > Severity::Info && !native::is_nameless(finding)) {
        demote(&mut findings, native::is_nameless);
    }
    gpu_lines::join(files, process, judged, &mut findings);
    if let Some(filling) = filling {
        filling.tell(judged, findings.iter().any(|finding| finding.severity > Severity::Info));
    }
    findings.extend(retention::finding(process, judged, &findings));
    let is_resident = |finding: &Finding| {
        finding.class != LeakClass::AllocatorFragmentation
            && finding.growth.as_ref().is_some_and(|growth| growth.series == Series::Rss)
    };
    if findings.iter().any(|finding| finding.severity > Severity::Info && is_resident(finding)) {
        judged.leave_to_resident();
    }
    findings.extend(resources::findings(
        files,
        process,
        judged,
        &Children::of(recording, process),
        recording,
    ));
    unended::join(files, process, judged, &mut findings);
    findings.extend(peaks::findings(files, process));
    let is_known = findings.iter().any(|finding| finding.scope == Scope::Epoch);
    if let Some(within) = judged.within.filter(|_| !is_known) {
        findings.extend(within::finding(files, process, within));
    }
    findings.extend(training::findings(files, process));
    findings.extend(exhausted::finding(files, process, recording, &findings));
    findings
}

/// Is the line in a function whose results a cache is found to keep?
fn caches(cache: &Finding, line: &Finding) -> bool {
    let same = |(a, b): (&Site, &Site)| (&a.file, &a.function) == (&b.file, &b.function);
    let is_cache = cache.holder_path.last().is_some_and(|kind| kind == ContainerKind::LruCache.as_str());
    is_cache && cache.sites.first().zip(line.sites.first()).is_some_and(same)
}

/// Makes some findings mere advice.
fn demote(findings: &mut [Finding], which: fn(&Finding) -> bool) {
    findings
        .iter_mut()
        .filter(|finding| which(finding))
        .for_each(|finding| finding.severity = Severity::Info);
}

fn notes(process: &Process<'_>, judged: &verdicts::Judged, findings: &[Finding]) -> Vec<String> {
    // A watch that was refused once is no matter where another one has seen lines.
    let refused = |note: &Note| note.code == "trace-refused" && !process.hits.is_empty();
    let told = process.notes.iter().filter(|note| profiler::is_told(process, note) && !refused(note));
    let mut notes: Vec<String> = told.map(|note| note.text.clone()).collect();
    let cannot_look = process.notes.iter().any(|note| note.code.starts_with("census-"));
    if is_unexplained(judged, findings) && !cannot_look {
        notes.push(unexplained(process, judged, findings));
    }
    notes.extend(retention::note(process, findings));
    notes.extend(gpu::notes(process));
    notes
}

/// Memory grows, and nothing was found that accounts for it.
fn is_unexplained(judged: &verdicts::Judged, findings: &[Finding]) -> bool {
    let explains = |finding: &Finding| finding.severity > Severity::Info && !native::is_suspected(finding);
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    grows.is_some_and(|verdict| {
        !findings.iter().any(explains) && proved(findings) < PROVED * verdict.bytes_per_unit
    })
}

/// Bytes per unit that proved findings account for, harmful or not.
fn proved(findings: &[Finding]) -> f64 {
    let proved = findings.iter().filter(|finding| finding.confidence == Confidence::Proved);
    let growths = proved.filter_map(|finding| finding.growth.as_ref());
    growths
        .filter(|growth| growth.series == Series::InUse)
        .map(|growth| growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit))
        .sum()
}

/// Files of the user that are known to run.
fn files_of(processes: &[Process<'_>]) -> BTreeSet<String> {
    let ran = processes.iter().flat_map(Process::files).filter(|file| heap::is_of_user(file));
    let scripts = processes.iter().filter_map(|process| process.hello?.argv.first()).map(String::as_str);
    ran.chain(scripts).map(str::to_owned).collect()
}

/// What to make of growth for which nothing was found.
fn unexplained(process: &Process<'_>, judged: &verdicts::Judged, findings: &[Finding]) -> String {
    let (looks, followed) = (process.censuses(), process.ids().len());
    let times = match looks {
        0 => "not at all".to_owned(),
        1 => "once".to_owned(),
        looks => format!("{looks} times"),
    };
    if looks < FEWEST_LOOKS {
        return format!(
            "memory in use grows, and the run was too short to tell what holds it: the containers (lists, dicts and the \
             like) were looked at {times}, which takes place once growth shows and within what caulk may cost. Let it \
             run longer"
        );
    }
    let found = if findings.iter().any(native::is_suspected) {
        "what holds it was not found"
    } else {
        "nothing that was found accounts for it"
    };
    let mut text = format!(
        "memory in use grows, and {found}: all containers (lists, dicts and the like) were looked at {times}, and \
         {followed} that grow were followed. Native code may hold it, or a chain of objects or closures that was not \
         recognised"
    );
    if heap::is_beside_profile(process, judged) {
        text.push_str(
            ". It is not in the heap profile either: what takes memory from the C library by a way of its own \
             (`ctypes.CDLL(\"libc.so.6\").malloc`, a library that finds `malloc` itself) is not seen there; \
             `ctypes.CDLL(None)` is",
        );
    }
    text
}

/// The program's files, each parsed once.
pub(crate) struct Files<'a> {
    sources: &'a dyn Sources,
    parsed: RefCell<HashMap<String, Option<Rc<Module>>>>,
}

impl Files<'_> {
    pub(crate) fn module(&self, path: &str) -> Option<Rc<Module>> {
        let mut parsed = self.parsed.borrow_mut();
        let entry = parsed.entry(path.to_owned());
        // Edits carry the name that reports use.
        let parse = || Some(Rc::new(Module::parse(&self.display(path), &self.sources.read(path)?)));
        entry.or_insert_with(parse).clone()
    }

    pub(crate) fn display(&self, path: &str) -> String {
        self.sources.display(path)
    }
}
