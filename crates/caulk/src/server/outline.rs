//! What a message is about, without keeping it.
//!
//! One pass over its bytes, in memory that does not depend on them.

use std::io::{self, BufRead};

use serde_json::Value;

/// Longest key or id that is kept, in bytes.
const KEPT: usize = 128;

/// What a JSON object of the protocol says at its top.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Values in it, nested ones included.
    pub(super) values: usize,
    id: Option<Value>,
    method: bool,
}

/// Where in the document a byte stands.
#[derive(Debug, Default)]
struct Scan {
    depth: usize,
    /// In a string, and whether the next character is escaped.
    string: Option<bool>,
    /// What stands behind the last comma or colon, cut off.
    text: Vec<u8>,
    /// The key before the last colon at the top.
    key: Vec<u8>,
}

impl Outline {
    /// Reads everything there is.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn of(from: &mut impl BufRead) -> io::Result<Self> {
        let (mut outline, mut scan) = (Self::default(), Scan::default());
        loop {
            let bytes = from.fill_buf()?;
            if bytes.is_empty() {
                return Ok(outline);
            }
            for byte in bytes {
                outline.take(&mut scan, *byte);
            }
            let length = bytes.len();
            from.consume(length);
        }
    }

    /// Whether somebody waits for an answer.
    pub(super) fn wants_answer(&self) -> bool {
        self.method && self.id.is_some()
    }

    /// The id of the request, or null.
    pub(super) fn id(&self) -> Value {
        self.id.clone().unwrap_or_default()
    }

    fn take(&mut self, scan: &mut Scan, byte: u8) {
        if let Some(escaped) = scan.string {
            scan.string = match byte {
                b'"' if !escaped => None,
                b'\\' => Some(!escaped),
                _ => Some(false),
            };
            return scan.keep(byte);
        }
        match byte {
            b'"' => {
                scan.string = Some(false);
                scan.keep(byte);
            }
            b'{' | b'[' => {
                scan.depth += 1;
                self.values += 1;
                scan.text.clear();
            }
            b'}' | b']' => {
                self.end(scan);
                scan.depth = scan.depth.saturating_sub(1);
            }
            b',' => {
                self.values += 1;
                self.end(scan);
            }
            b':' if scan.depth == 1 => scan.key = std::mem::take(&mut scan.text),
            b':' => scan.text.clear(),
            byte if byte.is_ascii_whitespace() => (),
            byte => scan.keep(byte),
        }
    }

    /// A value has ended.
    fn end(&mut self, scan: &mut Scan) {
        if scan.depth == 1 {
            let id = || {
                serde_json::from_slice(&scan.text).ok().filter(|id: &Value| id.is_number() || id.is_string())
            };
            match scan.key.as_slice() {
                b"\"id\"" => self.id = id(),
                b"\"method\"" => self.method = true,
                _ => (),
            }
            scan.key.clear();
        }
        scan.text.clear();
    }
}

impl Scan {
    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.text.len() < KEPT {
            self.text.push(byte);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    fn check(text: &str, id: Option<&str>, answer: bool) {
        let outline = Outline::of(&mut text.as_bytes()).unwrap();
        assert_eq!(outline.id.as_ref().map(Value::to_string).as_deref(), id, "{text}");
        assert_eq!(outline.wants_answer(), answer, "{text}");
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        check(r#"{"id": 7, "method": "a", "params": {"id": 8}}"#, Some("7"), true);
        check(
            r#"{"params": {"id": 8, "x": ["}\"", "\\"]}, "method": "a", "id" : "x\"y" }"#,
            Some(r#""x\"y""#),
            true,
        );
        check(r#"{"method": "a", "params": {"id": 8}}"#, None, false);
        check(r#"{"id": 7, "result": "method"}"#, Some("7"), false);
        check(r#"{"id": [7], "method": "a"}"#, None, false);
        check(&format!(r#"{{"id": "{}", "method": "a"}}"#, "x".repeat(KEPT)), None, false);
        check("]]}}\"", None, false);
    }

    #[test]
    fn values_are_counted() {
        let values = |text: &str| Outline::of(&mut text.as_bytes()).unwrap().values;
        assert_eq!(values(r#"{"a": [1, 2, {"b": 3}], "c": "[[[,,,"}"#), 6);
    }
}
