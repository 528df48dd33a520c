//! The whole report on every recording of `python/tests/recordings`, as text and as JSON. `cargo xtask record` makes the
//! recordings and accepts the snapshots; `INSTA_UPDATE=always cargo test -p caulk recordings::` accepts them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_report::TextOptions;
use caulk_verify::{Checklist, Grade, Verification};
use serde_json::Value;

use crate::{assemble, commands};

/// One program in `python/tests/programs/index.toml`.
#[derive(Debug, serde::Deserialize)]
struct Program {
    shows: String,
    #[serde(default)]
    class: Vec<String>,
    #[serde(default)]
    unnamed: bool,
    #[serde(default)]
    runs: BTreeMap<String, Vec<String>>,
    folder: Option<String>,
    not_recorded: Option<String>,
}

/// Lines of a report that is not written in full.
const MOST_LINES: usize = 60;

const PROGRAMS: &str = "python/tests/programs";
const RECORDINGS: &str = "python/tests/recordings";
/// Recordings that earlier versions made, `old-COMMIT-PROGRAM`: they are never made anew.
const OLD: &str = "old-";

fn root() -> Utf8PathBuf {
    let crates = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).expect("a workspace").canonicalize_utf8().expect("a folder")
}

fn index() -> BTreeMap<String, Program> {
    let path = root().join(PROGRAMS).join("index.toml");
    toml::from_str(&fs::read_to_string(path).expect("an index")).expect("a valid index")
}

/// Names of files in a folder that end so, without that end.
fn names(folder: &str, end: &str) -> BTreeSet<String> {
    let files = root().join(folder).read_dir_utf8().expect("a folder").map(|file| file.expect("a file"));
    files.filter_map(|file| Some(file.file_name().strip_suffix(end)?.to_owned())).collect()
}

/// Unpacks a recording into a folder, as one of a program that ran in this checkout; returns its folder.
fn unpack(folder: &Path, name: &str) -> Utf8PathBuf {
    let archive = root().join(RECORDINGS).join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--file"]).arg(archive).arg("--directory").arg(folder);
    assert!(tar.status().expect("tar starts").success(), "{name}");
    let folder = Utf8Path::from_path(folder).expect("text").join(name);
    let head = folder.join("run.json");
    let mut info: Value =
        serde_json::from_str(&fs::read_to_string(&head).expect("a head")).expect("valid JSON");
    let directory = root().join(info["target"]["directory"].as_str().expect("a folder"));
    info["target"]["directory"] = directory.as_str().into();
    // After every change of the sources: the report warns of sources that are newer than the run.
    info["started"] = "2100-01-01T00:00:00+00:00[UTC]".into();
    fs::write(head, info.to_string()).expect("a writable folder");
    folder
}

/// Compares the reports on a recording with the snapshots; returns the document, and what `caulk verify` makes of it.
fn check(name: &str) -> (Value, Verification) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let folder = unpack(place.path(), name);
    let mut report = assemble::report(&folder).expect("a recording");
    let recording = caulk_record::read(&folder).expect("a recording");
    let verification = commands::verify::checked(&recording, &report, None, &Checklist::default());
    report.folder = name.to_owned();
    let anywhere = |text: String| {
        let text = text.replace(root().as_str(), "[ROOT]");
        text.replace(&format!(": \"{}\"", env!("CARGO_PKG_VERSION")), ": \"[VERSION]\"")
    };
    let usual = anywhere(caulk_report::text(&report, &TextOptions::default()));
    let full = anywhere(caulk_report::text(&report, &TextOptions { full: true, ..TextOptions::default() }));
    assert!(usual.lines().count() <= MOST_LINES, "{usual}");
    let json = anywhere(caulk_report::json(&report));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(root().join(RECORDINGS));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(format!("{name}.txt"), usual);
        insta::assert_snapshot!(format!("{name}.full.txt"), full);
        insta::assert_snapshot!(format!("{name}.json"), json);
    });
    (serde_json::from_str(&json).expect("valid JSON"), verification)
}

/// Does something with every name, on all cores, and returns what failed.
fn each(names: &[String], work: impl Fn(&str) + Sync + RefUnwindSafe) -> Vec<String> {
    let (next, failed) = (Mutex::new(names.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, Into::into) {
            scope.spawn(|| {
                while let Some(name) = { next.lock().expect("no panic").next() } {
                    if catch_unwind(|| work(name)).is_err() {
                        failed.lock().expect("no panic").push(name.clone());
                    }
                }
            });
        }
    });
    failed.into_inner().expect("no panic")
}

#[test]
fn every_program_is_in_the_index() {
    let index = index();
    for folder in ["examples", PROGRAMS] {
        let inside =
            index.iter().filter(|(_, program)| program.folder.as_deref().unwrap_or(PROGRAMS) == folder);
        let known: BTreeSet<String> = inside.map(|(name, _)| name.clone()).collect();
        assert_eq!(known, names(folder, ".py"), "{folder}");
    }
    for (name, program) in &index {
        assert!(program.shows.ends_with('.'), "{name} shows: {}", program.shows);
    }
}

#[test]
fn every_program_is_recorded_or_the_index_says_why_not() {
    let index = index();
    let recorded = index.iter().filter(|(_, program)| program.not_recorded.is_none());
    let wanted = recorded.flat_map(|(name, program)| {
        let runs = program.runs.keys().map(move |run| format!("{name}-{run}"));
        std::iter::once(name.clone()).chain(runs)
    });
    let kept = names(RECORDINGS, ".tar.gz");
    assert_eq!(
        wanted.collect::<BTreeSet<_>>(),
        kept.into_iter().filter(|name| !name.starts_with(OLD)).collect()
    );
}

#[test]
fn the_reports_on_all_recordings_are_as_they_were() {
    let index = index();
    let kept: Vec<String> = names(RECORDINGS, ".tar.gz").into_iter().collect();
    let failed = each(&kept, |name| {
        let (document, verification) = check(name);
        let program =
            name.strip_prefix(OLD).and_then(|name| name.split_once('-')).map_or(name, |(_, name)| name);
        // Runs beside a program's own show something else.
        let Some(program) = index.get(program) else { return };
        let findings = document["findings"].as_array().expect("a list").iter();
        let alarms =
            findings.filter(|finding| finding["severity"] == "warning" || finding["severity"] == "error");
        let classes: BTreeSet<&str> = alarms.filter_map(|finding| finding["class"].as_str()).collect();
        if program.class.is_empty() {
            assert!(classes.is_empty(), "{name}: {classes:?}");
        } else {
            let known = program.class.iter().any(|class| classes.contains(class.as_str()));
            assert!(known, "{name}: {classes:?}, and the index says {:?}", program.class);
        }
        // A program that fails by itself is not verified either.
        let fails = !program.class.is_empty() || program.unnamed || verification.command_failed();
        assert_eq!(verification.grade() == Grade::Fail, fails, "{name}: {verification:#?}");
    });
    assert!(failed.is_empty(), "other reports than before, {} of {}: {failed:?}", failed.len(), kept.len());
}

/// The part of a pprof profile from which its sums follow.
#[derive(Clone, PartialEq, prost::Message)]
struct Profile {
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[test]
fn a_profile_has_all_live_bytes_of_its_recording() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let folder = unpack(place.path(), "list_in_loop");
    let packed = assemble::profile(&folder).expect("a profile");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut bytes)
        .expect("gzip");
    let profile = <Profile as prost::Message>::decode(bytes.as_slice()).expect("a profile");
    let sum: i64 = profile.sample.iter().map(|sample| sample.value[0]).sum();
    let recording = caulk_record::read(&folder).expect("a recording");
    let live: f64 = caulk_diagnose::totals(&recording).iter().map(|total| total.live.bytes).sum();
    assert!(live > 1e6, "the recording has a heap: {live}");
    // Each sample is rounded to whole bytes.
    assert!((sum as f64 - live).abs() <= profile.sample.len() as f64, "{sum} of {live}");
    assert!(profile.sample.iter().any(|sample| sample.location_id.len() > 1));
}

#[test]
fn reports_without_source_have_no_line_of_the_program() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let folder = unpack(place.path(), "list_in_loop");
    let report = assemble::report(&folder).expect("a recording");
    let program = fs::read_to_string(root().join(PROGRAMS).join("list_in_loop.py")).expect("a program");
    let quoted = |text: &str| {
        let code = program.lines().filter_map(|line| line.split('#').next()).map(str::trim);
        code.filter(|code| code.contains("append(") && text.contains(*code)).count()
    };
    assert!(quoted(&caulk_report::json(&report)) > 0);
    for format in [caulk_report::Format::Json, caulk_report::Format::Markdown] {
        let text = caulk_report::run_without_source(&report, format).expect("a format without source");
        assert!(text.contains("list_in_loop.py") && quoted(&text) == 0, "{text}");
    }
}

#[test]
fn a_recording_of_a_later_version_is_refused() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let folder = unpack(place.path(), "list_in_loop");
    let head = folder.join("run.json");
    let mut info: Value = serde_json::from_slice(&fs::read(&head).expect("a head")).expect("valid JSON");
    (info["schema"], info["caulk"]) = (99.into(), "7.0".into());
    fs::write(head, info.to_string()).expect("a writable folder");
    let error = assemble::report(&folder).expect_err("a later version's");
    assert!(format!("{error:#}").contains("caulk 7.0"), "{error:#}");
}
