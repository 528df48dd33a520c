//! Every format of a check, on the same findings.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use caulk_core::{
    Applicability, ChainStep, Confidence, Diagnostic, Edit, Fix, LeakClass, Place, Position, Problem, Proof,
    Scope, Severity, Site, SiteRole,
};
use caulk_report::check::{self, CheckReport, FixSummary};
use caulk_report::{Format, TextOptions, check_in};

const SOURCE: [(u32, &str); 6] = [
    (76, "        for images, target in self.loader:"),
    (77, "            pred = self.model(images)"),
    (78, "            spatial_iou = self.iou(pred, target)"),
    (79, "            self.all_st_ious.append(spatial_iou)"),
    (80, "            self.log(spatial_iou)"),
    (91, "        self.all_ct_ious.append(center_iou)"),
];

fn graph_in_list() -> Diagnostic {
    let file = "leaky/main.py".to_owned();
    let step = |line, text: &str, note: &str| ChainStep {
        file: file.clone(),
        line,
        text: text.to_owned(),
        note: note.to_owned(),
    };
    let at = |column| Position { line: 79, column };
    Diagnostic {
        class: LeakClass::GraphKeptInContainer,
        confidence: Confidence::Proved,
        scope: Scope::Run,
        severity: Severity::Error,
        proof: Proof::FULL,
        message: "`self.all_st_ious` grows once per validation batch, for the whole run; each entry keeps the graph of `self.model(images)`".into(),
        sites: vec![Site {
            role: SiteRole::Grows,
            file: file.clone(),
            line: 79,
            end_line: 79,
            column: 13,
            function: "DetectionTrainer.validate".into(),
            text: "self.all_st_ious.append(spatial_iou)".into(),
            cell: None,
        }],
        container: "self.all_st_ious".into(),
        chain: vec![
            step(77, "pred = self.model(images)", "`pred` carries a graph: nothing turns gradients off here"),
            step(78, "spatial_iou = self.iou(pred, target)", "and so does what is computed from it"),
            step(79, "self.all_st_ious.append(spatial_iou)", "an attribute of the trainer, which lives as long as the run; nothing clears it"),
        ],
        fix: Some(Fix {
            applicability: Applicability::Unsafe,
            description: "store `spatial_iou` without its graph".into(),
            edits: vec![Edit { file: file.clone(), start: at(48), end: at(48), content: ".detach()".into() }],
        }),
        twins: vec![Place { file, line: 91, text: "self.all_ct_ious.append(center_iou)".into() }],
        more_twins: 0,
    }
}

fn in_notebook() -> Diagnostic {
    let mut diagnostic = graph_in_list();
    diagnostic.class = LeakClass::FigureNotClosed;
    diagnostic.severity = Severity::Warning;
    diagnostic.confidence = Confidence::Likely;
    diagnostic.message = "a figure is drawn in every step, and none is closed".into();
    diagnostic.container = "plt.subplots()".into();
    diagnostic.chain.clear();
    diagnostic.twins.clear();
    diagnostic.sites[0] = Site {
        file: "plots, 50 %.ipynb".into(),
        line: 12,
        end_line: 12,
        column: 9,
        function: "<module>".into(),
        text: "fig, axes = plt.subplots()".into(),
        ..diagnostic.sites[0].clone()
    };
    let at = Position { line: 13, column: 1 };
    diagnostic.fix = Some(Fix {
        applicability: Applicability::Safe,
        description: "close the figure".into(),
        edits: vec![Edit {
            file: "plots, 50 %.ipynb".into(),
            start: at,
            end: at,
            content: "    plt.close(fig)\n".into(),
        }],
    });
    diagnostic
}

fn report() -> CheckReport {
    let mut report = CheckReport {
        findings: vec![in_notebook(), graph_in_list()],
        notices: vec![Problem {
            file: "train.py".into(),
            line: Some(3),
            column: Some(7),
            message: "unused suppression: nothing is found here".into(),
        }],
        problems: vec![Problem::of_file("broken.py", "not UTF-8: byte 7 cannot be read")],
        unread: vec![Problem::of_file("broken.py", "not UTF-8: byte 7 cannot be read")],
        incomplete: true,
        left: vec![Problem::of_file(
            "link.py",
            "it stays as it is: a link leads out of the project, to `/x.py`",
        )],
        files: 12,
        suppressed: 2,
        known: 1,
        ..CheckReport::default()
    };
    for (line, text) in SOURCE {
        report.excerpts.insert("leaky/main.py", line, text);
    }
    report.excerpts.insert("plots, 50 %.ipynb", 11, "last line of another cell");
    report.excerpts.insert("plots, 50 %.ipynb", 12, "    fig, axes = plt.subplots()");
    report.excerpts.insert("plots, 50 %.ipynb", 13, "    axes.plot(losses)");
    report.cells.insert("plots, 50 %.ipynb", vec![(1, 2), (12, 5)]);
    report.sort();
    report
}

const PLAIN: TextOptions = TextOptions { color: false, width: 100, full: false };

#[test]
fn text() {
    insta::assert_snapshot!("check_text", check::text(&report(), &PLAIN, false));
    assert_eq!(check::text(&CheckReport::default(), &PLAIN, true), "");
    let quiet = check::text(&report(), &PLAIN, true);
    assert!(quiet.contains("broken.py") && !quiet.contains("unused suppression"), "{quiet}");
}

#[test]
fn twins_that_are_not_shown_are_counted() {
    let mut report = report();
    let finding = report.findings.iter_mut().find(|finding| !finding.twins.is_empty()).expect("one");
    finding.twins = vec![finding.twins[0].clone(); 20];
    finding.more_twins = 29;
    let text = check::text(&report, &PLAIN, false);
    assert!(text.contains("and 43 more"), "{text}");
    assert!(check::json(&report).contains("\"more_twins\": 29"));
}

#[test]
fn hints_that_are_not_shown_are_counted() {
    let mut report = report();
    let all = report.findings.len();
    report.hide_hints();
    assert_eq!((report.findings.len(), report.hints), (all, 0));
    assert!(!check::text(&report, &PLAIN, false).contains("not shown: --info"));
    for finding in &mut report.findings {
        finding.severity = Severity::Info;
    }
    report.hide_hints();
    assert_eq!((report.findings.len(), report.hints), (0, all));
    let text = check::text(&report, &PLAIN, false);
    assert!(text.ends_with(&format!("{all} hints not shown: --info\n")), "{text}");
    assert!(check::concise(&report, &PLAIN, false).contains("hints not shown: --info"));
    report.hints = 1;
    assert!(check::text(&report, &PLAIN, false).ends_with("1 hint not shown: --info\n"));
}

#[test]
fn concise() {
    insta::assert_snapshot!("check_concise", check::concise(&report(), &PLAIN, false));
}

#[test]
fn json() {
    insta::assert_snapshot!(
        "check_json",
        check::json(&report()).replace(env!("CARGO_PKG_VERSION"), "[version]")
    );
}

#[test]
fn sarif() {
    let mut document: serde_json::Value = serde_json::from_str(&check::sarif(&report())).unwrap();
    let driver = &mut document["runs"][0]["tool"]["driver"];
    driver["version"] = "[version]".into();
    for rule in driver["rules"].as_array_mut().unwrap() {
        // Whether there is a page, and what it says, is the rule's business.
        let rule = rule.as_object_mut().unwrap();
        rule.remove("help");
        rule.remove("defaultConfiguration");
    }
    insta::assert_json_snapshot!("check_sarif", document);
}

#[test]
fn github_and_gitlab() {
    insta::assert_snapshot!("check_github", check::github(&report()));
    insta::assert_snapshot!("check_gitlab", check::gitlab(&report()));
}

#[test]
fn statistics() {
    insta::assert_snapshot!("check_statistics", check::statistics(&report()));
    let json: serde_json::Value = serde_json::from_str(&check::statistics_json(&report())).unwrap();
    assert_eq!(json[0]["count"], 1);
}

#[test]
fn marks_tell_equal_findings_apart() {
    let report = CheckReport { findings: vec![graph_in_list(), graph_in_list()], ..report() };
    let entries: serde_json::Value = serde_json::from_str(&check::gitlab(&report)).unwrap();
    assert_ne!(entries[0]["fingerprint"], entries[1]["fingerprint"]);
}

#[test]
fn summaries() {
    let check = |report: &CheckReport, expected: &str| {
        assert_eq!(check::text(report, &PLAIN, false).trim_end(), expected);
    };
    check(&CheckReport::default(), "No Python files found.");
    check(&CheckReport { files: 1, ..CheckReport::default() }, "No leak patterns in 1 file.");
    let fixed = FixSummary { applied: vec![(LeakClass::FigureNotClosed, 2)], only_shown: false };
    let report = CheckReport { files: 3, known: 1, fixed: Some(fixed), ..CheckReport::default() };
    check(
        &report,
        "Fixed 2 findings (2 figure-not-closed).\nNo leak patterns in 3 files.\nNot shown: 1 known to the baseline.",
    );
}

#[test]
fn markdown() {
    let formatted = check_in(&report(), Format::Markdown, &PLAIN, false);
    insta::assert_snapshot!("check_markdown", formatted);
    let mut steering = graph_in_list();
    steering.message = "a <img src=x> for @everybody `a < b`".into();
    let steering = CheckReport { findings: vec![steering], ..CheckReport::default() };
    let text = check_in(&steering, Format::Markdown, &PLAIN, false);
    assert!(text.contains("a &lt;img src=x> for &#64;everybody `a < b`"), "{text}");
}
