//! The report as a JSON document, by the contract of schema 2.

use caulk_core::{Ending, GpuUse, Note, RunInfo, Verdict};
use serde::Serialize;

use crate::outlook::outlook;
use crate::shown::Shown;
use crate::{Life, Report, SCHEMA, Summary};

/// The JSON report of `caulk run` and `caulk report`. Sizes are in bytes, times in seconds, unless a name gives another unit.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(title = "Report of caulk"))]
struct Document<'a> {
    /// Version of this format: fields may be added under one number; their meaning never changes.
    schema: u32,
    /// What made the report.
    tool: Tool<'a>,
    /// Command of caulk that observed the program.
    command: &'a str,
    /// The run, from its start to its end.
    run: Run<'a>,
    /// How large the run was.
    summary: &'a Summary,
    /// Whether a leak was found: `--fail-on-leak` then ends with code 3.
    leak_found: bool,
    /// The answer to whether memory grows.
    outlook: Answer,
    /// A judgement on each series of each process.
    verdicts: &'a [Verdict],
    /// Leaks and advice, the most harmful first.
    findings: Vec<Shown<'a>>,
    /// Memory of each GPU; left out if the program uses none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    gpus: &'a [GpuUse],
    /// What else a reader should know.
    notes: &'a [Note],
    /// Parts of the recording that could not be read.
    problems: Vec<Problem<'a>>,
    /// Lives of a command that the guard has started again; left out if there was one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    lives: &'a [Life],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Tool<'a> {
    /// `caulk`.
    name: &'a str,
    /// Version of caulk.
    version: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Run<'a> {
    /// The program is still running.
    running: bool,
    /// Folder of the recording; empty if there is none.
    folder: &'a str,
    /// How the run ended, if that was seen.
    ending: Option<&'a Ending>,
    #[serde(flatten)]
    info: &'a RunInfo,
}

/// The answer as the text gives it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Answer {
    /// `grows`, `retains`, `maps-files`, `grows-within-epoch`, `undecided`, `steady` or `unknown`.
    state: &'static str,
    /// A few words, for a table.
    brief: String,
    /// The first sentence of the text report.
    sentence: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Problem<'a> {
    /// For people.
    message: &'a str,
}

/// Facts of several forms may have one kind, and match more than one of them.
#[cfg(feature = "schema")]
fn any_of(schema: &mut schemars::Schema) {
    if let Some(alternatives) = schema.remove("oneOf") {
        schema.insert("anyOf".into(), alternatives);
    }
    schemars::transform::transform_subschemas(&mut any_of, schema);
}

/// The JSON Schema of [`json`]'s document, ending with a line break: `docs/schema.json`.
#[cfg(feature = "schema")]
#[expect(clippy::missing_panics_doc, reason = "a schema is plain data")]
pub fn schema() -> String {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Document<'_>>();
    schemars::transform::transform_subschemas(&mut any_of, &mut schema);
    let mut text = serde_json::to_string_pretty(&schema).expect("plain data");
    text.push('\n');
    text
}

/// The whole report as one indented JSON document that ends with a line break.
pub fn json(report: &Report) -> String {
    document(report, report.findings.iter().map(Shown::of).collect())
}

/// The same without source lines and edits.
pub(crate) fn json_without_source(report: &Report) -> String {
    document(report, report.findings.iter().map(Shown::without_source).collect())
}

fn document(report: &Report, findings: Vec<Shown<'_>>) -> String {
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
        outlook: Answer { state: outlook.as_str(), brief: outlook.brief(), sentence: report.sentence() },
        verdicts: &report.verdicts,
        findings,
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
