//! The report as a JSON document, by the contract of schema 2.

use caulk_core::{Ending, Finding, GpuUse, Note, RunInfo, Verdict};
use serde::Serialize;

use crate::outlook::outlook;
use crate::{Life, Report, SCHEMA, Summary, headline};

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    tool: Tool<'a>,
    command: &'a str,
    run: Run<'a>,
    summary: &'a Summary,
    leak_found: bool,
    outlook: Answer,
    verdicts: &'a [Verdict],
    findings: &'a [Finding],
    /// Of a program that uses one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    gpus: &'a [GpuUse],
    notes: &'a [Note],
    problems: Vec<Problem<'a>>,
    /// Of a command that was started again.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    lives: &'a [Life],
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct Run<'a> {
    running: bool,
    folder: &'a str,
    ending: Option<&'a Ending>,
    #[serde(flatten)]
    info: &'a RunInfo,
}

/// The answer as the text gives it.
#[derive(Serialize)]
struct Answer {
    state: &'static str,
    brief: String,
    sentence: String,
}

#[derive(Serialize)]
struct Problem<'a> {
    message: &'a str,
}

/// The whole report as one indented JSON document that ends with a line break.
#[expect(clippy::missing_panics_doc, reason = "plain data is always valid JSON")]
pub fn json(report: &Report) -> String {
    let outlook = outlook(&report.verdicts);
    let document = Document {
        schema: SCHEMA,
        tool: Tool { name: "caulk", version: env!("CARGO_PKG_VERSION") },
        command: if report.command.is_empty() { "run" } else { &report.command },
        run: Run {
            running: report.running,
            folder: &report.folder,
            ending: report.ending.as_ref(),
            info: &report.info,
        },
        summary: &report.summary,
        leak_found: report.leak_found(),
        outlook: Answer {
            state: outlook.as_str(),
            brief: outlook.brief(),
            sentence: headline::headline(outlook, !report.running, false, &report.findings).sentence,
        },
        verdicts: &report.verdicts,
        findings: &report.findings,
        gpus: &report.gpus,
        notes: &report.notes,
        problems: report.problems.iter().map(|message| Problem { message }).collect(),
        lives: &report.lives,
    };
    // Values of plain data with string keys: there is nothing in them that JSON cannot hold.
    let mut text = serde_json::to_string_pretty(&document).expect("plain data is valid JSON");
    text.push('\n');
    text
}
