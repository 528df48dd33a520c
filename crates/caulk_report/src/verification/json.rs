//! For programs.

use caulk_verify::{Grade, Verification};

/// Version of this document: fields may be added under one number.
const SCHEMA: u32 = 1;

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: u32,
    /// Of the required checks together.
    grade: Grade,
    /// Folder of the recording; empty if there is none.
    run: &'a str,
    #[serde(flatten)]
    verification: &'a Verification,
}

/// One indented document that ends with a line break.
#[expect(clippy::missing_panics_doc, reason = "plain data is always valid JSON")]
pub fn verification_json(verification: &Verification, run: &str) -> String {
    let document = Document { schema: SCHEMA, grade: verification.grade(), run, verification };
    let mut text = serde_json::to_string_pretty(&document).expect("plain data is valid JSON");
    text.push('\n');
    text
}
