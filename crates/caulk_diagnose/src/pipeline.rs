//! From a recording to a diagnosis, stage by stage: each process for itself, then all of them together.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use caulk_core::wire::{ContainerKind, Note as Said, NoteCode};
use caulk_core::{Ending, Finding, GpuUse, LeakClass, Recording, Remark, Scope, Series, Site, Verdict};

use crate::children::Children;
use crate::claim::{Claim, Observed, Relation, Relations, of_each, settle};
use crate::files::{Files, Sources};
use crate::judged::Judged;
use crate::part::Part;
use crate::process::Process;
use crate::settle::findings;
use crate::unexplained::{is_harmless, is_unexplained, unexplained};
use crate::unknown;
use crate::{
    allocated, copy_on_write, cycles, ending, exhausted, gathered, gpu, gpu_lines, gpu_rest, gpu_retention,
    heap, left_behind, native, outside, page_cache, patterns, peaks, profiler, ranks, refusals, resources,
    retention, share, shm_files, stored, suspect, training, unended, verdicts, workers,
};

/// What a recording says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosis {
    /// How the run ended; `None` while it runs, or if nobody saw its end.
    pub ending: Option<Ending>,
    /// What every series does.
    pub verdicts: Vec<Verdict>,
    /// Leaks, most harmful first.
    pub findings: Vec<Finding>,
    /// What the run's looks at each GPU come to.
    pub gpus: Vec<GpuUse>,
    /// What could not be looked at, and what was looked at in vain; for people.
    pub notes: Vec<Remark>,
}

/// Part of the growth that cycles must account for, as far as their objects tell, before it is left open whether they are
/// all of it: what else hangs on them is not known.
const MUCH: f64 = 0.25;

/// Judges a recording.
pub fn diagnose(recording: &Recording, sources: &dyn Sources) -> Diagnosis {
    let files = Files::new(sources);
    let processes = Process::all(recording);
    let mut diagnosis = Diagnosis::default();
    let mut unexplained = false;
    let mut parts: Vec<Part<'_>> =
        processes.iter().map(|process| part_of(&files, process, recording)).collect();
    workers::join(&mut parts);
    let end_ns = parts.iter().filter_map(|part| part.process.seen_until()).max().unwrap_or(0);
    let last = parts.iter_mut().filter(|part| part.process.lives_at(end_ns));
    verdicts::share_the_room(&mut last.map(|part| &mut part.judged).collect::<Vec<_>>());
    let mut claims: Vec<Claim> = Vec::new();
    for (claim, verdict) in copy_on_write::findings(&files, &parts, &files_of(&processes)) {
        claims.push(claim.into());
        diagnosis.verdicts.extend(verdict);
    }
    diagnosis.notes.extend(ranks::remarks(&parts));
    let known = OnceCell::new();
    let patterns = || known.get_or_init(|| sources.patterns(&files_of(&processes))).as_slice();
    for Part { process, judged, mut findings, told, .. } in parts {
        if findings.iter().any(|finding| finding.class() == LeakClass::NativeGrowth) {
            findings = settle(findings, |claims| patterns::of_lines(claims, patterns()));
        }
        findings = settle(findings, |claims| stored::relations(&files, process, claims));
        findings = settle(findings, |claims| share::relations(&judged, claims));
        unexplained |= is_unexplained(&judged, &findings);
        diagnosis.notes.extend(notes(process, &judged, &findings));
        diagnosis.notes.extend(gpu_rest::remark(recording, process));
        let within = findings.iter().any(|finding| finding.scope == Scope::Epoch);
        diagnosis.verdicts.extend(judged.told(within).into_iter().filter(|_| told));
        claims.extend(findings);
    }
    if let Some(verdict) = outside::of_tree(recording, &processes) {
        diagnosis.notes.extend(outside::remark(&verdict, &processes));
        diagnosis.verdicts.push(verdict);
    }
    diagnosis.notes.extend(page_cache::remark(recording));
    diagnosis.notes.extend(shm_files::remark(recording));
    diagnosis.gpus = gpu::devices(recording, &processes);
    diagnosis.notes.extend(diagnosis.gpus.iter().cloned().map(Remark::GpuDevice));
    claims.extend(made(left_behind::findings(recording)));
    if unexplained || claims.iter().any(Claim::weighs) {
        let of_many_lines = |claim: &Claim| resources::are_of_several_kinds(&processes, claim);
        claims = settle(claims, |claims| patterns::relations(claims, patterns(), of_many_lines));
        claims = settle(claims, |claims| resources::openers(&files, &processes, claims));
        if unexplained {
            let suspected = patterns::suspected(&claims, patterns());
            if !suspected.is_empty() {
                // Source that shows what keeps it is a better lead than the line that allocates.
                claims = settle(claims, |claims| yielding(claims, native::is_suspected));
            }
            claims.extend(made(suspected));
        }
    }
    diagnosis.findings = findings(claims);
    diagnosis.ending = ending::ending(&files, recording, &diagnosis.findings);
    let ended = ending::out_of_gpu(recording).map(|(pid, _)| pid);
    diagnosis.notes.extend(refusals::remarks(&files, recording, ended, &diagnosis.findings));
    diagnosis.notes.extend(unknown::remark(&processes));
    diagnosis.notes.dedup();
    diagnosis
}

fn part_of<'a>(files: &Files<'_>, process: &'a Process<'a>, recording: &Recording) -> Part<'a> {
    let mut judged = verdicts::of_process(recording, process);
    let findings = of_process(files, process, &mut judged, recording);
    let traced = workers::master(process).map(|_| {
        let suspects = suspect::traced(files, process, &judged);
        made(suspect::findings(files, process, &judged, suspects)).collect()
    });
    Part { process, judged, findings, traced: traced.unwrap_or_default(), told: true }
}

fn of_process(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &mut Judged,
    recording: &Recording,
) -> Vec<Claim> {
    let died =
        recording.info.death.as_ref().is_none_or(|death| death.signal.is_some() || death.kill.is_some());
    let suspects = suspect::of_process(files, process, judged, died);
    let filling = suspect::filling(judged, &suspects);
    let mut findings: Vec<Claim> = made(suspect::findings(files, process, judged, suspects)).collect();
    if let Some(open) = native::open(judged, &findings, filling.map_or(0.0, |filling| filling.bytes)) {
        let cycle = cycles::finding(files, process, judged, open);
        let known = cycle.or_else(|| profiler::finding(files, process, judged, open));
        let lines = known
            .map_or_else(|| native::findings(files, process, judged, open, &findings), |known| vec![known]);
        let mut lines: Vec<Claim> =
            made(lines).filter(|line| !findings.iter().any(|finding| caches(finding, line))).collect();
        let rate = judged.in_use().map_or(0.0, |verdict| verdict.bytes_per_unit);
        let much = |line: &Claim| cycles::is_collectable(line) && line.bytes_per_unit() >= MUCH * rate;
        if lines.iter().any(much)
            && findings.iter().all(|finding| !finding.weighs())
            && let Some(more) = cycles::until_collected(process, judged)
        {
            judged.postpone(more, "rises by objects in cycles, for which the collector has not come by yet");
            lines = settle(lines, |lines| yielding(lines, cycles::is_collectable));
        }
        findings.extend(lines);
    } else {
        findings = settle(findings, |claims| allocated::relations(files, process, judged, claims));
        findings.extend(made(cycles::waiting(files, process, judged)));
    }
    if findings.iter().any(|finding| finding.weighs() && !native::is_nameless(finding)) {
        findings = settle(findings, |claims| yielding(claims, native::is_nameless));
    }
    findings = settle(findings, |claims| gpu_lines::relations(files, process, judged, claims));
    let on_gpu = gpu_lines::findings(files, process, judged, &findings);
    findings.extend(made(on_gpu));
    if let Some(filling) = filling {
        filling.tell(judged, findings.iter().any(Claim::weighs));
    }
    let kept = retention::finding(process, judged, &findings);
    findings.extend(made(kept));
    findings.extend(made(gpu_retention::findings(recording, process, judged)));
    let is_resident = |finding: &Claim| {
        finding.class() != LeakClass::AllocatorFragmentation && finding.growth_in(Series::Rss).is_some()
    };
    if findings.iter().any(|finding| finding.weighs() && is_resident(finding)) {
        judged.leave_to_resident();
    }
    let children = Children::of(recording, process);
    findings.extend(made(resources::findings(files, process, judged, &children, recording)));
    findings = settle(findings, unended::notes);
    findings = settle(findings, |claims| unended::relations(files, process, judged, claims));
    findings.extend(made(peaks::findings(files, process)));
    let is_known = findings.iter().any(|finding| finding.scope == Scope::Epoch);
    if let Some(within) = judged.within.filter(|_| !is_known) {
        let level = judged.in_use().map_or(0.0, |verdict| verdict.last);
        findings.extend(made(gathered::finding(files, process, within, level)));
    }
    findings.extend(made(training::findings(files, process)));
    let exhausted = exhausted::finding(files, process, recording, &findings);
    findings.extend(made(exhausted));
    if is_harmless(judged, &findings) {
        judged.leave_small();
    }
    findings
}

/// Is the line in a function whose results a cache is found to keep?
fn caches(cache: &Claim, line: &Claim) -> bool {
    let same = |(a, b): (&Site, &Site)| (&a.file, &a.function) == (&b.file, &b.function);
    let is_cache = cache.holder_path.last().is_some_and(|kind| kind == ContainerKind::LruCache.as_str());
    is_cache && cache.sites.first().zip(line.sites.first()).is_some_and(same)
}

/// The claims of what a detector observed.
fn made(observed: impl IntoIterator<Item = Observed>) -> impl Iterator<Item = Claim> {
    observed.into_iter().map(Claim::from)
}

/// Some claims are mere advice beside others.
fn yielding<'a>(claims: &[Claim], which: fn(&Claim) -> bool) -> Relations<'a> {
    of_each(claims, which, |_| Relation::Yields)
}

fn notes(process: &Process<'_>, judged: &Judged, findings: &[Claim]) -> Vec<Remark> {
    // A watch that was refused once is no matter where another one has seen lines.
    let refused = |note: &Said| note.code == NoteCode::TraceRefused && !process.hits.is_empty();
    let told = process.notes.iter().filter(|note| profiler::is_told(process, note) && !refused(note));
    let mut notes: Vec<Remark> = told.map(|&note| Remark::Recorded(note.into())).collect();
    let cannot_look = process.notes.iter().any(|note| note.code.stops_censuses());
    if is_unexplained(judged, findings) && !cannot_look {
        notes.push(unexplained(process, judged, findings));
    }
    notes.extend(retention::remark(process, findings));
    notes.extend(gpu::remark(process));
    notes
}

/// Files of the user that are known to run.
fn files_of(processes: &[Process<'_>]) -> BTreeSet<String> {
    let ran = processes.iter().flat_map(Process::files).filter(|file| heap::is_of_user(file));
    let scripts = processes.iter().filter_map(|process| process.hello?.argv.first()).map(String::as_str);
    ran.chain(scripts).map(str::to_owned).collect()
}
