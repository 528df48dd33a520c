//! For programs.

use caulk_diff::Difference;

/// Version of this document: fields may be added under one number.
const SCHEMA: u32 = 1;

#[derive(serde::Serialize)]
struct Compared<'a> {
    schema: u32,
    #[serde(flatten)]
    difference: &'a Difference,
}

/// One indented document that ends with a line break.
#[expect(clippy::missing_panics_doc, reason = "plain data is always valid JSON")]
pub fn difference_json(difference: &Difference) -> String {
    let document = Compared { schema: SCHEMA, difference };
    let mut text = serde_json::to_string_pretty(&document).expect("plain data is valid JSON");
    text.push('\n');
    text
}
