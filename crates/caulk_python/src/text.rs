//! The text of a file, its lines and its positions.

use caulk_core::{Position, Problem};
use ruff_python_parser::ParseError;
use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::{TextRange, TextSize};

use crate::spot::Spot;

/// Text with an index of its lines. `\n`, `\r\n` and `\r` end a line; a byte order mark is in no column.
#[derive(Debug)]
pub(crate) struct Source {
    text: String,
    index: LineIndex,
}

impl Source {
    pub(crate) fn new(text: String) -> Self {
        Self { index: LineIndex::from_source_text(&text), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Text of a range; empty for a range that parser recovery placed oddly.
    pub(crate) fn slice(&self, range: TextRange) -> &str {
        self.text.get(range.start().to_usize()..range.end().to_usize()).unwrap_or("")
    }

    /// An expression's text on one line: runs of blanks and line ends become one space.
    pub(crate) fn inline(&self, range: TextRange) -> String {
        let text = self.slice(range);
        if text.contains(['\n', '\r']) {
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn position(&self, offset: TextSize) -> Position {
        let place = self.index.line_column(self.clamp(offset), &self.text);
        Position { line: place.line.get() as u32, column: place.column.get() as u32 }
    }

    pub(crate) fn line_of(&self, offset: TextSize) -> u32 {
        self.index.line_index(self.clamp(offset)).get() as u32
    }

    /// Text of a line without its end and without a byte order mark.
    pub(crate) fn line(&self, line: u32) -> Option<&str> {
        let number = OneIndexed::new(line as usize)?;
        if line as usize > self.index.line_count() {
            return None;
        }
        let text = self.slice(self.index.line_range(number, &self.text));
        Some(text.trim_end_matches(['\n', '\r']).trim_start_matches('\u{feff}'))
    }

    /// Offset of a position; `None` behind the end of its line.
    pub(crate) fn offset(&self, position: Position) -> Option<TextSize> {
        let number = OneIndexed::new(position.line as usize)?;
        if position.line as usize > self.index.line_count() {
            return None;
        }
        let range = self.index.line_range(number, &self.text);
        let text = self.slice(range).trim_end_matches(['\n', '\r']);
        let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let ends = text[mark..].char_indices().map(|(bytes, _)| bytes).chain([text.len() - mark]);
        let column = ends.into_iter().nth((position.column as usize).checked_sub(1)?)?;
        Some(range.start() + TextSize::try_from(mark + column).ok()?)
    }

    pub(crate) fn spot(&self, range: TextRange, function: String) -> Spot {
        let start = self.position(range.start());
        let text = self.line(start.line).unwrap_or("").trim().to_owned();
        let end_line = self.line_of(range.end()).max(start.line);
        Spot { line: start.line, end_line, column: start.column, function, text }
    }

    /// What the parser does not understand.
    pub(crate) fn problem(&self, path: &str, error: &ParseError) -> Problem {
        let place = self.position(error.location.start());
        Problem {
            file: path.to_owned(),
            line: Some(place.line),
            column: Some(place.column),
            message: error.error.to_string(),
        }
    }

    /// Blanks before the first character of the line at `offset`.
    pub(crate) fn indentation(&self, offset: TextSize) -> &str {
        let line = self.line(self.line_of(offset)).unwrap_or("");
        &line[..line.len() - line.trim_start_matches([' ', '\t', '\u{c}']).len()]
    }

    /// The line end that the file uses.
    pub(crate) fn newline(&self) -> &'static str {
        match self.text.find(['\n', '\r']) {
            Some(at) if self.text[at..].starts_with("\r\n") => "\r\n",
            Some(at) if self.text[at..].starts_with('\r') => "\r",
            _ => "\n",
        }
    }

    /// The nearest character boundary at or before an offset.
    fn clamp(&self, offset: TextSize) -> TextSize {
        let mut at = offset.to_usize().min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        TextSize::try_from(at).unwrap_or_default()
    }
}
