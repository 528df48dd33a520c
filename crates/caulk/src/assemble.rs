//! From a recording to a report: read, judge, and bring the source lines that the findings point at.

use std::fs;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{Finding, RunInfo};
use caulk_report::{Excerpts, Report};

use crate::sources::Disk;
use crate::summary;

/// Reads and judges the run in `folder`.
///
/// # Errors
/// If there is no recording in it, or a later caulk wrote it.
pub(crate) fn report(folder: &Utf8Path) -> anyhow::Result<Report> {
    let recording = caulk_record::read(folder)?;
    let summary = summary::of(&recording);
    let sources = Disk::new(&recording.info.target.directory);
    let diagnosis = crate::caulk_diagnose::diagnose(&recording, &sources);
    let running = runs(&recording.info);
    let mut notes = recording.info.notes.clone();
    notes.extend(diagnosis.notes);
    let mut excerpts = Excerpts::default();
    for (file, lines) in Excerpts::wanted(&diagnosis.findings) {
        for (line, text) in sources.lines(&file, &lines) {
            excerpts.insert(&file, line, &text);
        }
    }
    notes.extend(edited(&sources, &diagnosis.findings, folder));
    Ok(Report {
        command: "run".into(),
        running,
        folder: short(folder),
        verdicts: diagnosis.verdicts,
        findings: diagnosis.findings,
        notes,
        problems: recording.problems,
        summary,
        excerpts,
        info: recording.info,
    })
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
fn edited(sources: &Disk, findings: &[Finding], folder: &Utf8Path) -> Vec<String> {
    // The ring and the streams are made with the recording, `run.json` is replaced.
    let began =
        |path: &Path| fs::metadata(path).and_then(|found| found.created().or_else(|_| found.modified()));
    let Ok(began) = began(folder.as_std_path()) else { return Vec::new() };
    let mut files: Vec<&str> =
        findings.iter().flat_map(|finding| &finding.sites).map(|site| site.file.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    let changed = |file: &&str| {
        fs::metadata(sources.path(file))
            .and_then(|found| found.modified())
            .is_ok_and(|modified| modified > began)
    };
    let note = |file: &str| format!("`{file}` was changed since the run began; lines and edits may not fit");
    files.into_iter().filter(changed).map(note).collect()
}

/// The folder as a person here would type it.
fn short(folder: &Utf8Path) -> String {
    let here = std::env::current_dir().ok().and_then(|here| Utf8PathBuf::from_path_buf(here).ok());
    let below = here.and_then(|here| folder.strip_prefix(here).ok().map(ToString::to_string));
    below.unwrap_or_else(|| folder.to_string())
}
