//! From a recording to a report: read, judge, and bring the source lines that the findings point at.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::NoteCode;
use caulk_core::{Comparison, Finding, HeapTotal, LineUse, Note, Recording, RunInfo, StackUse};
use caulk_diagnose::Sources;
use caulk_report::{Details, Excerpts, ProfileHead, Report};
use jiff::Timestamp;

use crate::recorder::Recorded;
use crate::sources::Disk;
use crate::{lives, summary};

/// Longest file that is shown line by line.
const MOST_LINES: u32 = 20_000;
/// The error if a profile is wanted and there is none.
const NO_HEAP: &str = "the heap of this run was not sampled\nhint: `caulk run` samples the heap of CPython on glibc, without `--no-heap` and `--no-agent`";
/// Lines of the heap whose source a page may show.
const MOST_ROWS: usize = 200;

/// Reads and judges the run in `folder`, with the lives that followed the first one.
///
/// # Errors
/// If there is no recording in it, or a later caulk wrote it.
pub(crate) fn report(folder: &Utf8Path) -> anyhow::Result<Report> {
    let mut reports = vec![life(folder)?];
    for later in lives::later(folder) {
        match life(&later) {
            Ok(report) => reports.push(report),
            Err(error) => reports[0].problems.push(format!("`{later}` cannot be read: {error:#}")),
        }
    }
    Ok(caulk_report::join(reports).unwrap_or_default())
}

/// Judges the lives of a run that has just ended.
///
/// # Errors
/// As [`report`].
pub(crate) fn ended(lives: Vec<Recorded>) -> anyhow::Result<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for recorded in lives {
        match recorded {
            Recorded::Memory(recording) => reports.push(judged(&recording, None)),
            Recorded::Folder(folder) => match (life(&folder), reports.first_mut()) {
                (Ok(report), _) => reports.push(report),
                (Err(error), Some(first)) => {
                    first.problems.push(format!("`{folder}` cannot be read: {error:#}"));
                }
                (Err(error), None) => return Err(error),
            },
        }
    }
    Ok(caulk_report::join(reports).unwrap_or_default())
}

/// The life of a run by which its report judges memory, from 1.
///
/// # Errors
/// As [`report`].
pub(crate) fn judged_life(folder: &Utf8Path) -> anyhow::Result<usize> {
    let mut reports = vec![life(folder)?];
    // Of a life that cannot be read nothing is known; the report says so.
    reports.extend(lives::later(folder).map(|later| life(&later).unwrap_or_default()));
    Ok(caulk_report::judged(&reports).unwrap_or_default() + 1)
}

/// Reads and judges one life.
///
/// # Errors
/// As [`report`].
pub(crate) fn life(folder: &Utf8Path) -> anyhow::Result<Report> {
    Ok(judged(&caulk_record::read(folder)?, Some(folder)))
}

/// The page of one life for a browser, and all that goes into it.
///
/// # Errors
/// As [`report`].
pub(crate) fn page(folder: &Utf8Path, whole: Option<Report>, with_source: bool) -> anyhow::Result<String> {
    let recording = caulk_record::read(folder)?;
    let sources = Disk::new(&recording.info.target.directory);
    let lines = caulk_diagnose::lines(&recording, &sources);
    let stacks = caulk_diagnose::stacks(&recording, &sources);
    // A run that ended before its second census has none to compare.
    let changes = caulk_diagnose::compare(&recording, &sources, None, None).unwrap_or_default();
    let mut excerpts = Excerpts::default();
    for row in lines.iter().take(MOST_ROWS).filter(|_| with_source) {
        for (line, text) in sources.lines(&row.file, &BTreeSet::from([row.line])) {
            excerpts.insert(&row.file, line, &text);
        }
    }
    let report = whole.unwrap_or_else(|| judged(&recording, Some(folder)));
    let details = Details {
        recording: &recording,
        lines: &lines,
        stacks: &stacks,
        changes: &changes,
        excerpts: &excerpts,
        with_source,
    };
    Ok(caulk_report::html(&report, &details))
}

/// Judges a recording.
pub(crate) fn judged(recording: &Recording, folder: Option<&Utf8Path>) -> Report {
    let summary = summary::of(recording);
    let sources = Disk::new(&recording.info.target.directory);
    let diagnosis = caulk_diagnose::diagnose(recording, &sources);
    let running = runs(&recording.info);
    let mut notes = recording.info.notes.clone();
    notes.extend(diagnosis.notes.iter().map(caulk_report::note));
    let mut excerpts = Excerpts::default();
    for (file, lines) in Excerpts::wanted(&diagnosis.findings) {
        for (line, text) in sources.lines(&file, &lines) {
            excerpts.insert(&file, line, &text);
        }
    }
    notes.extend(edited(&sources, &diagnosis.findings, &recording.info));
    Report {
        command: "run".into(),
        ending: diagnosis.ending,
        running,
        folder: folder.map(short).unwrap_or_default(),
        verdicts: diagnosis.verdicts,
        findings: diagnosis.findings,
        gpus: diagnosis.gpus,
        notes,
        problems: recording.problems.clone(),
        summary,
        excerpts,
        info: recording.info.clone(),
        lives: Vec::new(),
    }
}

/// What each line of a run's program holds of the heap.
pub(crate) struct ByLine {
    pub(crate) rows: Vec<LineUse>,
    /// What every process holds, over all lines.
    pub(crate) totals: Vec<HeapTotal>,
    /// The name that reports give to the one file that is wanted.
    pub(crate) file: Option<String>,
    /// The source to show beside.
    pub(crate) excerpts: Excerpts,
}

/// What the lines hold, of all files or of one.
///
/// # Errors
/// If there is no recording, or the file is none of the program's.
pub(crate) fn lines(folder: &Utf8Path, file: Option<&str>) -> anyhow::Result<ByLine> {
    let recording = caulk_record::read(folder)?;
    let sources = Disk::new(&recording.info.target.directory);
    let mut rows = caulk_diagnose::lines(&recording, &sources);
    let totals = caulk_diagnose::totals(&recording);
    let mut excerpts = Excerpts::default();
    let mut bring = |file: &str, wanted: &BTreeSet<u32>| {
        for (line, text) in sources.lines(file, wanted) {
            excerpts.insert(file, line, &text);
        }
    };
    let Some(file) = file else {
        for row in &rows {
            bring(&row.file, &BTreeSet::from([row.line]));
        }
        return Ok(ByLine { rows, totals, file: None, excerpts });
    };
    // As the run names it, or as it is seen from here.
    let here = fs::canonicalize(file).ok().map(|path| sources.display(&path.to_string_lossy()));
    let names = [Some(sources.display(file)), here];
    let known = |name: &&String| rows.iter().any(|row| row.file == **name);
    let Some(name) = names.iter().flatten().find(known).cloned() else {
        let files: BTreeSet<&str> = rows.iter().map(|row| row.file.as_str()).collect();
        let files =
            if files.is_empty() { "none".into() } else { files.into_iter().collect::<Vec<_>>().join(", ") };
        anyhow::bail!("no line of `{file}` holds memory in this run\nhint: files with memory: {files}");
    };
    rows.retain(|row| row.file == name);
    bring(&name, &(1..=MOST_LINES).collect());
    Ok(ByLine { rows, totals, file: Some(name), excerpts })
}

/// What has changed between two moments of a run, and the source of the lines that grew.
///
/// # Errors
/// If there is no recording, or no such moments in it.
pub(crate) fn comparison(
    folder: &Utf8Path,
    from: Option<u64>,
    to: Option<u64>,
) -> anyhow::Result<(Vec<Comparison>, Excerpts)> {
    let recording = caulk_record::read(folder)?;
    let sources = Disk::new(&recording.info.target.directory);
    let comparisons = caulk_diagnose::compare(&recording, &sources, from, to)?;
    let mut excerpts = Excerpts::default();
    for line in comparisons.iter().flat_map(|comparison| &comparison.lines) {
        for (number, text) in sources.lines(&line.file, &BTreeSet::from([line.line])) {
            excerpts.insert(&line.file, number, &text);
        }
    }
    Ok((comparisons, excerpts))
}

/// What each stack of a run's program holds of the heap.
///
/// # Errors
/// If there is no recording.
pub(crate) fn stacks(folder: &Utf8Path) -> anyhow::Result<Vec<StackUse>> {
    let recording = caulk_record::read(folder)?;
    Ok(caulk_diagnose::stacks(&recording, &Disk::new(&recording.info.target.directory)))
}

/// The same as a pprof profile.
///
/// # Errors
/// If there is no recording, or no sample of a heap in it.
pub(crate) fn profile(folder: &Utf8Path) -> anyhow::Result<Vec<u8>> {
    let recording = caulk_record::read(folder)?;
    let stacks = caulk_diagnose::stacks(&recording, &Disk::new(&recording.info.target.directory));
    anyhow::ensure!(!stacks.is_empty(), NO_HEAP);
    let info = &recording.info;
    let started = info.started.parse::<jiff::Zoned>().ok().map(|started| started.timestamp().as_nanosecond());
    let head = ProfileHead {
        run: &info.id,
        caulk: &info.caulk,
        started_ns: started.and_then(|started| started.try_into().ok()).unwrap_or_default(),
        duration_ns: info.end_ns.map_or(0, |end| end.saturating_sub(info.start_ns)).cast_signed(),
        interval: caulk_diagnose::totals(&recording).first().map_or(0, |total| total.interval),
    };
    Ok(caulk_report::pprof(&stacks, head)?)
}

/// Whether the supervisor of an unfinished recording is still at work.
pub(crate) fn runs(info: &RunInfo) -> bool {
    if info.death.is_some() || info.complete || info.supervisor_pid == 0 {
        return false;
    }
    let here = rustix::system::uname().nodename().to_string_lossy() == info.target.host.as_str();
    // A process id comes back after a while; the executable's name tells whose it is.
    let name = |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    here && name(&info.supervisor_pid.to_string()).is_some_and(|other| Some(other) == name("self"))
}

/// Files with findings that were changed after the run began: what they say may not be what ran.
fn edited(sources: &Disk, findings: &[Finding], info: &RunInfo) -> Vec<Note> {
    let Ok(began) = info.started.parse::<Timestamp>() else { return Vec::new() };
    // The start is written in whole seconds.
    let began = SystemTime::from(began) + Duration::from_secs(1);
    let sites = findings.iter().flat_map(|finding| &finding.sites);
    let files: BTreeSet<&str> = sites.map(|site| site.file.as_str()).collect();
    let changed = |file: &&str| {
        let modified = fs::metadata(sources.path(file)).and_then(|found| found.modified());
        modified.is_ok_and(|modified| modified > began)
    };
    let note = |file: &str| {
        let text = format!("`{file}` was changed after the run began; lines and edits may not fit");
        Note::new(NoteCode::SourceChanged, text)
    };
    files.into_iter().filter(changed).map(note).collect()
}

/// The folder as a person here would type it.
fn short(folder: &Utf8Path) -> String {
    let here = std::env::current_dir().ok().and_then(|here| Utf8PathBuf::from_path_buf(here).ok());
    let below = here.and_then(|here| folder.strip_prefix(here).ok().map(ToString::to_string));
    below.unwrap_or_else(|| folder.to_string())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use caulk_core::{LeakClass, Settled, Site, SiteRole, Target};

    use super::*;

    fn finding(file: &str) -> Finding {
        let site = Site {
            role: SiteRole::Grows,
            file: file.into(),
            line: 1,
            end_line: 1,
            column: 1,
            function: String::new(),
            text: String::new(),
            cell: None,
        };
        Finding::new(Settled { sites: vec![site], ..Settled::of(LeakClass::UnboundedHistory) })
    }

    #[test]
    fn a_file_edited_during_the_run_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.py"), "x = 1\n").unwrap();
        let sources = Disk::new(folder.path().to_str().unwrap());
        let check = |started: &str, notes: usize| {
            let info = RunInfo { started: started.into(), ..RunInfo::default() };
            let findings = [finding("a.py"), finding("a.py"), finding("gone.py")];
            assert_eq!(edited(&sources, &findings, &info).len(), notes, "{started}");
        };
        check("2020-01-01T00:00:00+01:00[Europe/Berlin]", 1);
        check(&jiff::Zoned::now().to_string(), 0);
        check("", 0);
    }

    #[test]
    fn a_run_goes_on_while_its_supervisor_lives_on_this_host() {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let target = Target { host, ..Target::default() };
        let info = RunInfo { supervisor_pid: std::process::id(), target, ..RunInfo::default() };
        assert!(runs(&info));
        assert!(!runs(&RunInfo { complete: true, ..info.clone() }));
        assert!(!runs(&RunInfo { supervisor_pid: 1, ..info.clone() }));
        assert!(!runs(&RunInfo { target: Target::default(), ..info }));
    }
}
