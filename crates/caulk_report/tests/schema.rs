//! `docs/schema.json` describes the JSON report: it is made from the types, and every recorded report follows it.

use std::fs;

use expect_test::expect_file;
use serde_json::Value;

/// Snapshots of JSON reports.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tests/recordings");

/// `UPDATE_EXPECT=1 cargo nextest run -p caulk_report schema` writes the file.
#[test]
fn the_schema_in_docs_is_that_of_the_types() {
    expect_file!["../../../docs/schema.json"].assert_eq(&caulk_report::schema());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the recordings are files")]
fn every_recorded_report_follows_the_schema() {
    let schema: Value = serde_json::from_str(&caulk_report::schema()).expect("JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let mut reports = 0;
    for entry in fs::read_dir(RECORDINGS).expect("a folder") {
        let path = entry.expect("a file").path();
        if !path.to_string_lossy().ends_with(".json.snap") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        // Below the snapshot's head.
        let (_, report) = text.split_once("\n---\n").expect("a head");
        let report: Value = serde_json::from_str(report).expect("JSON");
        let wrong: Vec<String> = validator
            .iter_errors(&report)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
        reports += 1;
    }
    assert!(reports > 100, "{reports} reports");
}

#[test]
fn a_report_of_another_form_does_not_follow_it() {
    let schema: Value = serde_json::from_str(&caulk_report::schema()).expect("JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let report = caulk_report::json(&caulk_report::Report::default());
    let mut report: Value = serde_json::from_str(&report).expect("JSON");
    assert!(validator.is_valid(&report));
    report["summary"]["peak_bytes"] = "much".into();
    assert!(!validator.is_valid(&report));
}
