//! JSON that a terminal and a log can show.

use std::fmt::Write as _;

use caulk_core::{steers, without_marks};

/// The same document, in which characters that steer a terminal or a runner are escaped. They stand in strings alone, and
/// JSON itself asks to escape only the first 32.
pub(crate) fn plain(json: &str) -> String {
    if !json.contains("##") && !json.contains(|c| steers(c) && c != '\n') {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if steers(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    without_marks(&out, "\\u0023").into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_says_the_same_and_steers_nothing() {
        let document = json!({"file": "a\x1b\u{9b}\u{7f}\u{202e}##[error]##vso[x]\n.py"});
        let text = plain(&format!("{document:#}\n"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).ok(), Some(document));
        assert!(!text.contains("##") && text.chars().all(|c| c == '\n' || !steers(c)), "{text}");
    }
}
