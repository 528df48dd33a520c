//! SARIF 2.1.0: what code scanning services read.

use caulk_core::{Applicability, Diagnostic, Edit, LeakClass, Severity};
use serde_json::{Value, json};

use super::{CheckReport, gitlab, message};
use crate::{Cells, ascii, cells};

/// One run with its rules and results.
pub fn sarif(report: &CheckReport) -> String {
    let mut classes: Vec<LeakClass> = report.findings.iter().map(|finding| finding.class).collect();
    classes.sort_unstable_by_key(|class| class.as_str());
    classes.dedup();
    let marks = gitlab::fingerprints(&report.findings);
    let results: Vec<Value> = report
        .findings
        .iter()
        .zip(marks)
        .map(|(finding, mark)| result(finding, &mark, &classes, &report.cells))
        .collect();
    let problems: Vec<Value> = report
        .problems
        .iter()
        .map(|problem| {
            let place = location(&problem.file, problem.line.unwrap_or(1), problem.column, &report.cells);
            // What was not read has one notification that says so, beside those that say why in full.
            let id = if report.unread.contains(problem) { "unread" } else { "problem" };
            let level = if id == "unread" && report.incomplete { "error" } else { "warning" };
            let text = json!({"text": problem.message});
            json!({"level": level, "descriptor": {"id": id}, "message": text, "locations": [place]})
        })
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "caulk",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": classes.iter().map(|class| rule(*class)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": !report.incomplete, "toolExecutionNotifications": problems}],
            "results": results,
        }],
    });
    ascii::plain(&format!("{document:#}\n"))
}

fn rule(class: LeakClass) -> Value {
    let mut rule = json!({
        "id": class.as_str(),
        "shortDescription": {"text": class.summary()},
        "properties": {"tags": ["memory", class.group().as_str()]},
    });
    if let Some(found) = caulk_rules::rule(class) {
        rule["help"] = json!({"text": found.explanation, "markdown": found.explanation});
        rule["defaultConfiguration"] = json!({"level": level(found.severity())});
    }
    rule
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn result(finding: &Diagnostic, mark: &str, classes: &[LeakClass], cells: &Cells) -> Value {
    let locations: Vec<Value> = finding
        .sites
        .iter()
        .map(|site| {
            let mut place = location(&site.file, site.line, Some(site.column), cells);
            place["logicalLocations"] = json!([{"fullyQualifiedName": site.function}]);
            place
        })
        .collect();
    let mut result = json!({
        "ruleId": finding.class.as_str(),
        "ruleIndex": classes.iter().position(|class| *class == finding.class),
        "level": level(finding.severity),
        "message": {"text": message(finding)},
        "locations": locations.first().into_iter().collect::<Vec<_>>(),
        "relatedLocations": locations.iter().skip(1).collect::<Vec<_>>(),
        "partialFingerprints": {"caulk/v1": mark},
    });
    if !finding.chain.is_empty() {
        let steps: Vec<Value> = finding
            .chain
            .iter()
            .map(|step| {
                let mut place = location(&step.file, step.line, None, cells);
                place["message"] = json!({"text": step.note});
                json!({"location": place})
            })
            .collect();
        result["codeFlows"] = json!([{"threadFlows": [{"locations": steps}]}]);
    }
    let fix = finding.fix.as_ref().filter(|fix| fix.applicability != Applicability::DisplayOnly);
    if let Some(fix) = fix.filter(|fix| !fix.edits.is_empty()) {
        result["fixes"] = json!([{
            "description": {"text": fix.description},
            "artifactChanges": changes(&fix.edits, cells),
        }]);
    }
    result
}

fn changes(edits: &[Edit], cells: &Cells) -> Vec<Value> {
    let mut files: Vec<&str> = edits.iter().map(|edit| edit.file.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    files
        .into_iter()
        .map(|file| {
            let own = edits.iter().filter(|edit| edit.file == file);
            let replacements: Vec<Value> = own.map(|edit| replacement(edit, cells)).collect();
            json!({"artifactLocation": {"uri": uri(file)}, "replacements": replacements})
        })
        .collect()
}

fn replacement(edit: &Edit, cells: &Cells) -> Value {
    let line = |line| cells.place(&edit.file, line).line;
    json!({
        "deletedRegion": {
            "startLine": line(edit.start.line),
            "startColumn": edit.start.column,
            "endLine": line(edit.end.line),
            "endColumn": edit.end.column,
        },
        "insertedContent": {"text": edit.content},
    })
}

fn location(file: &str, line: u32, column: Option<u32>, cells: &Cells) -> Value {
    let place = cells.place(file, line);
    let mut region = json!({"startLine": place.line});
    if let Some(column) = column {
        region["startColumn"] = json!(column);
    }
    if let Some(cell) = place.cell {
        region["properties"] = json!({"cell": cell});
    }
    json!({"physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": region}})
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let path = cells::file(path);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") };
    let path: String = path.bytes().map(escape).collect();
    if path.starts_with('/') { format!("file://{path}") } else { path }
}
