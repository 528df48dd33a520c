//! What people and programs read after a run, as snapshots.

mod samples;

use caulk_core::wire::NoteCode;
use caulk_core::{
    Finding, Kill, LeakClass, Limit, LimitKind, Note, ProcessRef, Scope, Series, Settled, Severity, State,
    Verdict, VerdictUnit,
};
use caulk_report::{Excerpts, Format, Report, TextOptions, run_in};
use samples::{death, graph_in_list, growing, run, scalar_per_epoch, verdict};

fn check(name: &str, report: &Report) {
    insta::assert_snapshot!(name, caulk_report::text(report, &TextOptions::default()));
}

fn leak() -> Report {
    Report {
        verdicts: vec![growing()],
        findings: [graph_in_list(), scalar_per_epoch()].map(Finding::new).into(),
        ..run()
    }
}

#[test]
fn a_leak_with_its_line() {
    check("leak", &leak());
}

#[test]
fn a_gpu_has_an_end_of_its_own() {
    let gpu = Verdict {
        series: Series::CudaAllocated,
        limit: Some(Limit { kind: LimitKind::Gpu, bytes: 40 << 30 }),
        oom_in_s: Some([3500.0, 3700.0]),
        ..growing()
    };
    let text = |gpu| {
        let report = Report { verdicts: vec![growing(), gpu], ..run() };
        caulk_report::text(&report, &TextOptions { width: 160, ..TextOptions::default() })
    };
    let told = text(gpu.clone());
    // It comes before the host's: the report leads with it.
    assert!(told.contains("GPU memory grows by 16.5 MB per epoch, and nothing"), "{told}");
    assert!(told.contains("it would have reached the end of the GPU's memory (40.0 GB) after"), "{told}");
    assert!(told.contains("  Memory grows by 16.5 MB per epoch."), "{told}");
    assert!(told.contains("it would have reached the cgroup limit of 64.0 GB after"), "{told}");
    assert!(!text(Verdict { limit: None, oom_in_s: None, ..gpu }).contains("the GPU's memory"));
}

#[test]
fn a_leak_on_a_narrow_terminal() {
    let text = caulk_report::text(&leak(), &TextOptions { width: 60, ..TextOptions::default() });
    insta::assert_snapshot!("leak_narrow", text);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let text = caulk_report::text(&leak(), &TextOptions { color: true, ..TextOptions::default() });
    insta::assert_snapshot!("leak_color", text.replace('\x1b', "␛"));
}

#[test]
fn a_leak_while_it_still_runs() {
    let mut report = leak();
    report.running = true;
    report.info.death = None;
    report.info.complete = false;
    check("leak_running", &report);
}

#[test]
fn growth_without_a_cause() {
    let note = "looked at 1,204 containers, 3 graphs and 2 threads: none grew in step with the epochs";
    check(
        "growth_without_cause",
        &Report { verdicts: vec![growing()], notes: vec![Note::new(NoteCode::Unexplained, note)], ..run() },
    );
}

#[test]
fn memory_that_does_not_grow() {
    check("flat", &Report { verdicts: vec![verdict(State::Flat)], ..run() });
    check(
        "plateau",
        &Report {
            verdicts: vec![verdict(State::Plateaus)],
            findings: vec![Finding::new(scalar_per_epoch())],
            ..run()
        },
    );
}

#[test]
fn too_few_epochs() {
    let mut open = verdict(State::Undecided);
    (open.boundaries, open.warmup, open.more_needed, open.interval) = (3, 0, Some(2), None);
    check("undecided", &Report { verdicts: vec![open], ..run() });
}

#[test]
fn killed_for_memory() {
    let mut report = leak();
    let mut end = death(None, Some(9));
    end.kill = Some(Kill::Oom);
    end.text = "the cgroup counted 1 OOM kill while the program died, at 63.9 GB of 64.0 GB".into();
    report.info.death = Some(end);
    check("oom_killed", &report);
}

#[test]
fn crashed_stopped_failed() {
    let ended = |code, signal| {
        let mut report = Report { verdicts: vec![verdict(State::Flat)], ..run() };
        report.info.death = Some(death(code, signal));
        report
    };
    check("segfault", &ended(None, Some(11)));
    check("interrupted", &ended(None, Some(2)));
    check("exit_1", &ended(Some(1), None));
}

#[test]
fn lives_of_a_command_that_was_started_again() {
    let mut first = leak();
    let mut end = death(None, Some(15));
    end.text = "ended by signal 15 (SIGTERM): the guard had told it to end".into();
    first.info.death = Some(end);
    let second = Report { verdicts: vec![verdict(State::Flat)], ..run() };
    let joined = caulk_report::join(vec![first, second]).expect("two lives");
    check("lives", &joined);
    assert!(caulk_report::json(&joined).contains("\"lives\""));
    assert!(!caulk_report::json(&leak()).contains("\"lives\""));
}

#[test]
fn a_supervisor_that_was_killed() {
    let mut report = leak();
    report.info.death = None;
    report.info.complete = false;
    report.problems = vec!["the table `samples` stops in the middle of a batch; 3 s may be missing".into()];
    check("supervisor_killed", &report);
}

#[test]
fn a_program_without_torch() {
    let flat = Verdict {
        series: Series::Rss,
        unit: VerdictUnit::Seconds,
        unit_seconds: Some(1.0),
        boundary_units: 10.0,
        bytes_per_epoch: None,
        ..verdict(State::Grows)
    };
    let note = Note::new(NoteCode::NoAgent, "torch was not imported: boundaries are cut every 10 s");
    check("no_torch", &Report { verdicts: vec![flat], notes: vec![note.clone(), note], ..run() });
}

#[test]
fn pages_that_come_faster_than_what_is_in_use_are_told() {
    let faster = Verdict {
        series: Series::Rss,
        bytes_per_unit: 90e6,
        interval: Some([80e6, 99e6]),
        text: "rises more and more slowly".into(),
        ..verdict(State::Undecided)
    };
    let text = |verdicts: Vec<Verdict>| {
        let report = Report { verdicts, ..run() };
        caulk_report::text(&report, &TextOptions { width: 160, ..TextOptions::default() })
    };
    let told = text(vec![growing(), faster.clone()]);
    assert!(
        told.contains("Resident memory gains 85.8 MB per epoch so far, faster than what is in use"),
        "{told}"
    );
    let as_fast = Verdict { interval: Some([1e6, 99e6]), ..faster.clone() };
    assert!(!text(vec![growing(), as_fast]).contains("so far"));
    assert!(!text(vec![verdict(State::Flat), faster]).contains("so far"));
}

#[test]
fn retention_is_no_leak() {
    let rss = Verdict { series: Series::Rss, ..verdict(State::Grows) };
    let report = Report { verdicts: vec![verdict(State::Flat), rss], ..run() };
    assert!(!report.leak_found());
    check("resident", &report);
    let gaps = Settled::of(LeakClass::AllocatorFragmentation);
    check("retention", &Report { findings: vec![Finding::new(gaps)], ..report });
}

#[test]
fn workers_and_open_files_that_grow() {
    let workers = ProcessRef { role: "worker".into(), index: 0, count: 4 };
    let pss = Verdict { series: Series::Pss, process: workers, ..verdict(State::Grows) };
    let fds = Verdict {
        series: Series::Fds,
        bytes_per_unit: 12.0,
        bytes_per_epoch: None,
        last: 120.0,
        ..verdict(State::Grows)
    };
    check("workers", &Report { verdicts: vec![verdict(State::Flat), pss, fds], ..run() });
}

#[test]
fn nothing_was_measured() {
    let mut report = Report { ..run() };
    report.summary =
        caulk_report::Summary { duration_s: 0.04, processes: 1, ..caulk_report::Summary::default() };
    check("nothing", &report);
}

#[test]
fn a_source_that_was_edited_since_is_not_quoted() {
    let mut report = leak();
    report.excerpts = Excerpts::default();
    report.excerpts.insert("leaky/main.py", 79, "        pass");
    let text = caulk_report::text(&report, &TextOptions::default());
    assert!(text.contains("79 | self.all_st_ious.append(spatial_iou)"), "{text}");
    assert!(!text.contains("pass"), "{text}");
}

#[test]
fn a_statement_over_several_lines_is_shown_whole() {
    let mut report = leak();
    let lines = ["results = run(", "    model,", "    into=self.all_st_ious,", ")"];
    for (number, text) in (79..).zip(lines) {
        report.excerpts.insert("leaky/main.py", number, &format!("        {text}"));
    }
    let mut finding = graph_in_list();
    finding.sites[0].end_line = 82;
    finding.sites[0].text = lines[0].into();
    report.findings = vec![Finding::new(finding)];
    let text = caulk_report::text(&report, &TextOptions::default());
    let shown = " 81 |     into=self.all_st_ious,\n    |          ^^^^^^^^^^^^^^^^\n 82 | )\n";
    assert!(text.contains(shown), "{text}");
}

#[test]
fn a_peak_is_no_leak() {
    let report = |change: fn(&mut Settled)| {
        let mut finding = graph_in_list();
        change(&mut finding);
        Report { verdicts: vec![verdict(State::Flat)], findings: vec![Finding::new(finding)], ..run() }
    };
    assert!(report(|_| ()).leak_found());
    assert!(!report(|finding| finding.scope = Scope::Peak).leak_found());
    assert!(!report(|finding| finding.severity = Severity::Info).leak_found());
}

#[test]
fn the_document_keeps_its_contract() {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(env!("CARGO_PKG_VERSION"), "[version]");
    settings.bind(|| insta::assert_snapshot!("document", caulk_report::json(&leak())));
    let empty: serde_json::Value = serde_json::from_str(&caulk_report::json(&run())).expect("valid JSON");
    assert_eq!(empty["verdicts"], serde_json::json!([]));
    assert_eq!(empty["findings"], serde_json::json!([]));
    assert_eq!(empty["schema"], 2);
    assert_eq!(empty["problems"], serde_json::json!([]));
}

#[test]
fn the_formats_that_services_read() {
    // One finding with a line, one without: it stands at the script.
    let mut nameless = scalar_per_epoch();
    nameless.sites.clear();
    let findings = [graph_in_list(), nameless].map(Finding::new).into();
    let report = Report { findings, problems: vec!["a file cannot be read".into()], ..leak() };
    let mut settings = insta::Settings::clone_current();
    settings
        .add_filter(&format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION")), "\"version\": \"[version]\"");
    settings.bind(|| {
        for (name, format) in [
            ("concise", Format::Concise),
            ("github", Format::Github),
            ("gitlab", Format::Gitlab),
            ("markdown", Format::Markdown),
        ] {
            let text = run_in(&report, format, &TextOptions::default());
            insta::assert_snapshot!(format!("run_{name}"), text);
        }
    });
    let text = run_in(&report, Format::Sarif, &TextOptions::default());
    let sarif: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    let place = |index: usize| {
        let place = &sarif["runs"][0]["results"][index]["locations"][0]["physicalLocation"];
        (place["artifactLocation"]["uri"].clone(), place["region"]["startLine"].clone())
    };
    assert_eq!(place(0), ("leaky/main.py".into(), 79.into()));
    assert_eq!(place(1), ("leaky/main.py".into(), 1.into()));
}
