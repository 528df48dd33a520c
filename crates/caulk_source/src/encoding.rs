//! Bytes to text and back, by Python's rules: UTF-8, with or without a byte order mark, unless a comment in the first
//! two lines declares something else (PEP 263).

use encoding_rs::UTF_8;

/// How a file writes its characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

/// Why bytes are no text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EncodingError {
    /// Not in the encoding that it declares, or in UTF-8 without a declaration.
    #[error("not {0}: byte {1} cannot be read")]
    Invalid(String, usize),
    /// An encoding that is not known.
    #[error("declares the encoding `{0}`, which is not known")]
    Unknown(String),
}

impl Encoding {
    /// Decodes a file. A byte order mark stays in the text.
    ///
    /// # Errors
    /// [`EncodingError`] where Python would refuse the file too.
    pub fn decode(bytes: Vec<u8>) -> Result<(String, Self), EncodingError> {
        let encoding = match declared(&bytes) {
            Some(name) => Self::named(&name)?,
            None => Self(UTF_8),
        };
        if encoding.0 == UTF_8 {
            return Self::utf8(bytes);
        }
        match encoding.0.decode_without_bom_handling(&bytes) {
            (text, false) => Ok((text.into_owned(), encoding)),
            (_, true) => Err(EncodingError::Invalid(encoding.0.name().into(), 0)),
        }
    }

    /// Decodes UTF-8, whatever comments say.
    ///
    /// # Errors
    /// [`EncodingError::Invalid`] where the bytes are not that.
    pub fn utf8(bytes: Vec<u8>) -> Result<(String, Self), EncodingError> {
        let invalid = |at| EncodingError::Invalid("UTF-8".into(), at);
        let text = String::from_utf8(bytes).map_err(|error| invalid(error.utf8_error().valid_up_to()))?;
        Ok((text, Self(UTF_8)))
    }

    /// The bytes of a text; `None` where it has characters that the encoding has not.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        match self.0.encode(text) {
            (bytes, _, false) => Some(bytes.into_owned()),
            (_, _, true) => None,
        }
    }

    fn named(name: &str) -> Result<Self, EncodingError> {
        // Python's names and those of the web differ in separators.
        let web = name.to_ascii_lowercase().replace('_', "-");
        let web = match web.as_str() {
            "utf8" | "utf-8-sig" => "utf-8",
            "iso-latin-1-unix" => "latin1",
            other => other.strip_suffix("-unix").or_else(|| other.strip_suffix("-dos")).unwrap_or(other),
        };
        let spellings = [web.to_owned(), web.replace('-', ""), web.replace("latin-", "latin")];
        let found = spellings
            .iter()
            .find_map(|name| encoding_rs::Encoding::for_label_no_replacement(name.as_bytes()));
        found.map(Self).ok_or_else(|| EncodingError::Unknown(name.to_owned()))
    }
}

/// The name in a comment such as `# -*- coding: latin-1 -*-` in one of the first two lines.
fn declared(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for line in bytes.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()).take(2) {
        let line = String::from_utf8_lossy(line);
        let comment = line.trim_start_matches([' ', '\t', '\u{c}']);
        if comment.is_empty() {
            continue;
        }
        let after = comment.strip_prefix('#')?.split_once("coding").map(|(_, after)| after);
        let Some(after) = after.and_then(|after| after.strip_prefix([':', '='])) else { continue };
        let name: String = after
            .trim_start_matches([' ', '\t'])
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            .collect();
        if !name.is_empty() {
            return Some(name);
        }
    }
    None
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    fn check(bytes: &[u8], text: &str) {
        let (decoded, encoding) = Encoding::decode(bytes.to_owned()).unwrap();
        assert_eq!(decoded, text);
        assert_eq!(encoding.encode(&decoded).unwrap(), bytes);
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        check("größe = 1\r\n".as_bytes(), "größe = 1\r\n");
        check(b"\xef\xbb\xbfx = 1\n", "\u{feff}x = 1\n");
        check(b"# -*- coding: latin-1 -*-\nx = '\xe4\x80'\n", "# -*- coding: latin-1 -*-\nx = 'ä€'\n");
        check(
            b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n",
            "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'€'\n",
        );
        check(b"# coding: utf8\n'\xc3\xa4'\n", "# coding: utf8\n'ä'\n");
    }

    #[test]
    fn only_a_comment_in_the_first_two_lines_declares() {
        check("x = 1\ny = 2\n# coding: latin-1\n'ä'\n".as_bytes(), "x = 1\ny = 2\n# coding: latin-1\n'ä'\n");
        check("x = 'coding: latin-1'\n'ä'\n".as_bytes(), "x = 'coding: latin-1'\n'ä'\n");
    }

    #[test]
    fn what_python_refuses_is_refused() {
        assert_eq!(
            Encoding::decode(b"x = '\xe4'\n".to_vec()),
            Err(EncodingError::Invalid("UTF-8".into(), 5))
        );
        assert_eq!(
            Encoding::decode(b"# coding: klingon\n".to_vec()),
            Err(EncodingError::Unknown("klingon".into()))
        );
    }

    #[test]
    fn characters_that_an_encoding_lacks_are_not_written() {
        let (_, latin) = Encoding::decode(b"# coding: latin-1\n".to_vec()).unwrap();
        assert_eq!(latin.encode("漢"), None);
    }
}
