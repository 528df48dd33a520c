//! Columns: caulk counts characters from 1, editors count units of an encoding from 0.

use lsp_types::{InitializeParams, Position, PositionEncodingKind, Range};

/// What an editor counts in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of 16 bits: what every editor can.
    Utf16,
}

impl Encoding {
    /// The best that the editor offers.
    pub(super) fn negotiate(params: &InitializeParams) -> Self {
        let general = params.capabilities.general.as_ref();
        let offered = general.and_then(|general| general.position_encodings.as_deref()).unwrap_or_default();
        if offered.contains(&PositionEncodingKind::UTF8) { Self::Utf8 } else { Self::Utf16 }
    }

    pub(super) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    fn units(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
        }
    }
}

/// A text with its lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines<'a>(Vec<&'a str>);

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        Self(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect())
    }

    /// The text of a line, from 1.
    pub(super) fn line(&self, line: u32) -> &'a str {
        self.0.get(line.saturating_sub(1) as usize).copied().unwrap_or("")
    }

    /// Where an editor sees a line and column from 1.
    pub(super) fn position(&self, line: u32, column: u32, encoding: Encoding) -> Position {
        let before = self.line(line).chars().take(column.saturating_sub(1) as usize);
        let character = before.map(|c| encoding.units(c)).sum::<usize>();
        Position { line: line.saturating_sub(1), character: character as u32 }
    }

    /// The rest of a line from a column on, without what stands behind it.
    pub(super) fn to_end_of_line(&self, line: u32, column: u32, encoding: Encoding) -> Range {
        let end = self.line(line).trim_end().chars().count() as u32 + 1;
        Range {
            start: self.position(line, column, encoding),
            end: self.position(line, end.max(column), encoding),
        }
    }
}

/// Replaces a range of a text as an editor describes it; positions behind a line's end are its end.
pub(super) fn replace(text: &mut String, range: Range, new: &str, encoding: Encoding) {
    let (start, end) = (offset(text, range.start, encoding), offset(text, range.end, encoding));
    text.replace_range(start..end.max(start), new);
}

fn offset(text: &str, position: Position, encoding: Encoding) -> usize {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let Some(start) = starts.into_iter().nth(position.line as usize) else { return text.len() };
    let line = text[start..].split('\n').next().unwrap_or("");
    let mut units = 0;
    for (at, c) in line.char_indices() {
        if units >= position.character as usize {
            return start + at;
        }
        units += encoding.units(c);
    }
    start + line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_are_counted_as_the_editor_does() {
        let lines = Lines::new("x = 1\r\ns = '😀ä' + t\n");
        assert_eq!(lines.position(2, 9, Encoding::Utf16), at(1, 9));
        assert_eq!(lines.position(2, 9, Encoding::Utf8), at(1, 12));
        assert_eq!(lines.to_end_of_line(1, 5, Encoding::Utf16).end, at(0, 5));
    }

    #[test]
    fn edits_of_an_editor_are_applied() {
        let check = |text: &str, start, end, new: &str, encoding, expected: &str| {
            let mut changed = text.to_owned();
            replace(&mut changed, Range { start, end }, new, encoding);
            assert_eq!(changed, expected);
        };
        check("a😀b\nc", at(0, 3), at(0, 4), "x", Encoding::Utf16, "a😀x\nc");
        check("a😀b\nc", at(0, 5), at(0, 6), "x", Encoding::Utf8, "a😀x\nc");
        check("a\nb", at(0, 1), at(1, 0), "", Encoding::Utf16, "ab");
        check("a", at(9, 9), at(9, 9), "x", Encoding::Utf16, "ax");
    }
}
