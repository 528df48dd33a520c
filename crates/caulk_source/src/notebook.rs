//! Jupyter notebooks: the code cells as one Python text, and changed text back into the cells.
//!
//! Only the `source` of changed code cells is written; everything else of the file keeps its bytes. Lines that only
//! `IPython` understands become comments that know what they were.

use std::collections::BTreeMap;

use ruff_python_ast::PySourceType;
use ruff_python_ast::token::TokenKind;
use ruff_text_size::{Ranged, TextSize};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The line before every cell; private characters occur in nobody's source.
const SEPARATOR: &str = "#\u{F8FF}";
/// First of the characters that number masked lines.
const FIRST_MASK: u32 = 0x10_0000;
/// Masked lines that can be numbered.
const MOST_MASKS: u32 = 0xFFFD;
/// Characters that a mask takes the place of.
const MASKED: usize = 3;
/// Magics of a whole cell whose cell is still Python.
const PYTHON_CELLS: [&str; 5] = ["%%capture", "%%time", "%%timeit", "%%prun", "%%python3"];

/// A notebook as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notebook {
    raw: String,
    cells: Vec<Cell>,
    /// What masked lines began with.
    masks: Vec<String>,
}

/// A code cell.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    /// From 1, among all cells.
    number: u32,
    /// Where in the file the value of its `source` is.
    start: usize,
    end: usize,
    source: String,
    /// Line in the joined text.
    first_line: u32,
}

#[derive(Deserialize)]
struct RawNotebook<'a> {
    #[serde(borrow)]
    cells: Option<Vec<RawCell<'a>>>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    kernelspec: Option<Language>,
    language_info: Option<Language>,
}

#[derive(Deserialize)]
struct Language {
    language: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct RawCell<'a> {
    cell_type: String,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
}

impl Metadata {
    fn is_python(&self) -> bool {
        let info = self.language_info.as_ref().and_then(|info| info.name.as_deref());
        let spec = self.kernelspec.as_ref().and_then(|spec| spec.language.as_deref());
        info.or(spec).is_none_or(|language| language.to_ascii_lowercase().contains("python"))
    }
}

impl Notebook {
    /// The notebook and its code; the error is for people.
    pub(crate) fn new(raw: String) -> Result<(Self, String), String> {
        let text = raw.trim_start_matches('\u{feff}');
        let document: RawNotebook<'_> =
            serde_json::from_str(text).map_err(|error| format!("not a notebook: {error}"))?;
        let raw_cells = document.cells.ok_or("a notebook of a format before 4 is not looked at")?;
        let mut notebook = Self { raw: String::new(), cells: Vec::new(), masks: Vec::new() };
        let mut joined = String::new();
        let mut line = 1;
        let is_python = document.metadata.is_python();
        let code_cells = (1..).zip(raw_cells).filter(|(_, cell)| is_python && cell.cell_type == "code");
        for (number, cell) in code_cells {
            let Some(source) = cell.source else { continue };
            // The value is a part of the text that it was parsed from.
            let start = source.get().as_ptr() as usize - raw.as_ptr() as usize;
            let code = lines(source.get())?.concat();
            let masked = notebook.mask(&code);
            let own_lines = masked.split('\n').count() as u32;
            joined.push_str(&part(&masked));
            let end = start + source.get().len();
            notebook.cells.push(Cell { number, start, end, source: code, first_line: line + 1 });
            line += own_lines + 1;
        }
        notebook.raw = raw;
        Ok((notebook, joined))
    }

    /// First line of every cell in the joined text, and the cell's number.
    pub(crate) fn starts(&self) -> Vec<(u32, u32)> {
        self.cells.iter().map(|cell| (cell.first_line, cell.number)).collect()
    }

    /// The number of every cell, and its text as it is in the file.
    pub(crate) fn sources(&self) -> Vec<(u32, &str)> {
        self.cells.iter().map(|cell| (cell.number, cell.source.as_str())).collect()
    }

    /// The number of every cell, and its part of the joined text.
    pub(crate) fn parts(&self, joined: &str) -> Vec<(u32, String)> {
        let numbers = self.cells.iter().map(|cell| cell.number);
        numbers.zip(split(joined).into_iter().flatten()).collect()
    }

    /// The file with another text in its cells; `None` where the text has other cells.
    pub(crate) fn with(&self, joined: &str) -> Option<String> {
        let texts = split(joined).filter(|texts| texts.len() == self.cells.len())?;
        let mut out = String::with_capacity(self.raw.len());
        let mut done = 0;
        for (cell, text) in self.cells.iter().zip(texts) {
            let text = self.unmask(&text);
            out.push_str(&self.raw[done..cell.start]);
            let value = &self.raw[cell.start..cell.end];
            let written = if text == cell.source { value.to_owned() } else { self.written(value, &text)? };
            out.push_str(&written);
            done = cell.end;
        }
        out.push_str(&self.raw[done..]);
        Some(out)
    }

    /// A cell's text as JSON, in the form that its `source` has: a list of lines or one string. Lines that stay the
    /// same keep their bytes.
    fn written(&self, value: &str, text: &str) -> Option<String> {
        let Ok(old) = serde_json::from_str::<Vec<&RawValue>>(value) else {
            return self.quoted(text);
        };
        let kept: Vec<(String, &str)> = old
            .iter()
            .map(|raw| Some((serde_json::from_str(raw.get()).ok()?, raw.get())))
            .collect::<Option<_>>()?;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            let same = kept.iter().find(|(old, _)| old == line);
            lines.push(same.map_or_else(|| self.quoted(line), |(_, raw)| Some((*raw).to_owned()))?);
        }
        let inner = &value[1..value.len() - 1];
        let before = &inner[..inner.len() - inner.trim_start().len()];
        let after = &inner[inner.trim_end().len()..];
        // The elements are parts of the text that they were parsed from.
        let offset = |part: &str| part.as_ptr() as usize - value.as_ptr() as usize;
        let between = match old.as_slice() {
            [first, second, ..] => {
                value[offset(first.get()) + first.get().len()..offset(second.get())].to_owned()
            }
            _ => format!(",{}", if before.contains('\n') { before } else { " " }),
        };
        Some(format!("[{before}{}{after}]", lines.join(&between)))
    }

    fn quoted(&self, text: &str) -> Option<String> {
        let json = serde_json::to_string(text).ok()?;
        if !self.raw.is_ascii() {
            return Some(json);
        }
        // The file escapes what is not ASCII, and goes on doing so.
        let escaped = |unit: u16| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            _ => format!("\\u{unit:04x}"),
        };
        Some(json.encode_utf16().map(escaped).collect())
    }

    /// Python in which lines for `IPython` are comments behind a statement that does nothing.
    fn mask(&mut self, code: &str) -> String {
        let lines: Vec<&str> = code.split('\n').collect();
        let cell_magic = lines.iter().position(|line| !line.trim().is_empty());
        let cell_magic = cell_magic.filter(|at| lines[*at].starts_with("%%"));
        let whole = cell_magic.is_some_and(|at| {
            let name = lines[at].split_whitespace().next().unwrap_or("");
            !PYTHON_CELLS.contains(&name)
        });
        let body = match cell_magic {
            // The magic itself would make a magic of the whole cell.
            Some(at) => lines.iter().enumerate().map(|(i, line)| if i == at { "" } else { *line }).collect(),
            None => lines.clone(),
        };
        let magics = if whole { BTreeMap::new() } else { magic_lines(&body.join("\n")) };
        let masked = lines.iter().enumerate().map(|(index, line)| {
            if line.trim().is_empty() {
                (*line).to_owned()
            } else if whole || cell_magic == Some(index) {
                self.mask_line("", line)
            } else if let Some(indentation) = magics.get(&index) {
                // A line that goes on with a magic must not look like a block of its own.
                self.mask_line(indentation, line.strip_prefix(indentation.as_str()).unwrap_or(line))
            } else {
                (*line).to_owned()
            }
        });
        masked.collect::<Vec<_>>().join("\n")
    }

    fn mask_line(&mut self, indentation: &str, line: &str) -> String {
        let number = self.masks.len() as u32;
        let Some(mark) = char::from_u32(FIRST_MASK + number).filter(|_| number < MOST_MASKS) else {
            return line.to_owned();
        };
        let start: String = line.chars().take(MASKED).collect();
        let rest = &line[start.len()..];
        self.masks.push(start);
        format!("{indentation}0#{mark}{rest}")
    }

    fn unmask(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("0#") {
            let behind = &rest[at + 2..];
            let mark = behind.chars().next();
            let number = mark.and_then(|mark| (mark as u32).checked_sub(FIRST_MASK));
            let start = number.and_then(|number| self.masks.get(number as usize));
            if let (Some(start), Some(mark)) = (start, mark) {
                out.push_str(&rest[..at]);
                out.push_str(start);
                rest = &behind[mark.len_utf8()..];
            } else {
                out.push_str(&rest[..at + 2]);
                rest = behind;
            }
        }
        out.push_str(rest);
        out
    }
}

/// A cell as a part of the joined text.
pub(crate) fn part(cell: &str) -> String {
    [SEPARATOR, "\n", cell, "\n"].concat()
}

/// The cells of a joined text; `None` if something stands before the first one, or there is none.
fn split(joined: &str) -> Option<Vec<String>> {
    let mut texts: Vec<Vec<&str>> = Vec::new();
    for line in joined.split('\n') {
        if line == SEPARATOR { texts.push(Vec::new()) } else { texts.last_mut()?.push(line) }
    }
    // The line end behind the last cell is not of the cell.
    texts.last_mut()?.pop();
    Some(texts.iter().map(|lines| lines.join("\n")).collect())
}

/// Whether a line of the joined text only stands between two cells.
pub(crate) fn is_separator(line: &str) -> bool {
    line == SEPARATOR
}

/// The lines of a cell's `source`: a list of strings, or one string.
fn lines(source: &str) -> Result<Vec<String>, String> {
    serde_json::from_str::<Vec<String>>(source)
        .or_else(|_| serde_json::from_str::<String>(source).map(|text| vec![text]))
        .map_err(|error| format!("not a notebook: the source of a cell is no text: {error}"))
}

/// Lines, from 0, on which something stands that only `IPython` understands, with the indentation of the statement.
fn magic_lines(code: &str) -> BTreeMap<usize, String> {
    if !code.contains(['%', '!', '?', '/', ';', ',']) {
        return BTreeMap::new();
    }
    // A cell that is too much for the parser is too much without its magics, too.
    let Ok(parsed) = caulk_python::parse(code, PySourceType::Ipynb) else { return BTreeMap::new() };
    let ends: Vec<usize> = code.match_indices('\n').map(|(at, _)| at).collect();
    let line_of = |offset: TextSize| ends.partition_point(|end| *end < offset.to_usize());
    let lines: Vec<&str> = code.split('\n').collect();
    let kinds = [TokenKind::IpyEscapeCommand, TokenKind::Question];
    let mut magics = BTreeMap::new();
    for token in parsed.tokens().iter().filter(|token| kinds.contains(&token.kind())) {
        let first = line_of(token.start());
        let line = lines.get(first).copied().unwrap_or("");
        let indentation = &line[..line.len() - line.trim_start().len()];
        magics.extend((first..=line_of(token.end())).map(|line| (line, indentation.to_owned())));
    }
    magics
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use ruff_python_parser::parse_unchecked_source;

    use super::*;

    fn notebook(cells: &[&str]) -> String {
        let cells: Vec<String> = cells
            .iter()
            .map(|source| {
                format!(
                    "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"metadata\": {{\"x\":1}},\n   \"outputs\": [{{\"data\": 1.50}}],\n   \"source\": {source}\n  }}"
                )
            })
            .collect();
        format!(
            "{{\n \"cells\": [\n  {{\"cell_type\": \"markdown\", \"source\": [\"# Title\"]}},\n{}\n ],\n \"metadata\": {{}},\n \"nbformat\": 4\n}}\n",
            cells.join(",\n")
        )
    }

    /// Masks, changes nothing, and comes back as it was.
    fn check(source: &str, joined: &str) {
        let raw = notebook(&[source]);
        let (read, text) = Notebook::new(raw.clone()).unwrap();
        let shown: String = text.chars().map(|c| if c as u32 >= FIRST_MASK { '@' } else { c }).collect();
        assert_eq!(shown, format!("{SEPARATOR}\n{joined}\n"));
        assert_eq!(read.with(&text).unwrap(), raw);
        let parsed = parse_unchecked_source(&text, PySourceType::Python);
        assert!(parsed.has_valid_syntax(), "{text}");
    }

    #[test]
    fn magics_are_masked_and_come_back() {
        check(r#"["x = 1\n", "y = 2"]"#, "x = 1\ny = 2");
        check(r#"["%matplotlib inline\n", "x = 1\n"]"#, "0#@tplotlib inline\nx = 1\n");
        check(r#"["if x:\n", "    !pip install a\n", "y = !ls"]"#, "if x:\n    0#@p install a\n0#@ !ls");
        check(
            r#"["x = (1\n", "  % 2)\n", "s = '''\n", "%no magic\n", "'''"]"#,
            "x = (1\n  % 2)\ns = '''\n%no magic\n'''",
        );
        check(r#"["%%bash\n", "for f in *; do\n", "  x\n", "\n"]"#, "0#@ash\n0#@ f in *; do\n0#@\n\n");
        check(r#"["%%time\n", "x = 1\n", "%cd a\n"]"#, "0#@ime\nx = 1\n0#@ a\n");
        check(r#"["!ls \\\n", "  -l\n", "x?"]"#, "0#@ \\\n0#@l\n0#@");
        check(r#""x = 1\n%cd a""#, "x = 1\n0#@ a");
        check("[]", "");
    }

    #[test]
    fn only_changed_cells_are_written() {
        let raw = notebook(&[
            "[\n    \"%cd a\\n\",\n    \"a = \\\"\\u00e4\\\"\\n\",\n    \"b = 1\"\n   ]",
            "[\"c = 2\"]",
        ]);
        let (read, text) = Notebook::new(raw.clone()).unwrap();
        let changed = text.replace("b = 1", "b = 'ö'\nd = 4");
        let expected = raw.replace("\"b = 1\"", "\"b = '\\u00f6'\\n\",\n    \"d = 4\"");
        assert_eq!(read.with(&changed).unwrap(), expected);
        let changed = text.replace("c = 2", "import x\nc = 2");
        assert_eq!(read.with(&changed).unwrap(), raw.replace("[\"c = 2\"]", "[\"import x\\n\", \"c = 2\"]"));
        assert_eq!(read.with(&text.replace(SEPARATOR, "")), None);
    }

    #[test]
    fn cells_are_numbered_among_all_cells() {
        let raw = notebook(&[r#"["a\n", "b"]"#, r#"["c"]"#]);
        let (read, text) = Notebook::new(raw.clone()).unwrap();
        assert_eq!(read.starts(), [(2, 2), (5, 3)]);
        assert_eq!(text.lines().nth(4), Some("c"));
    }

    #[test]
    fn what_is_no_python_notebook_is_told_or_left_alone() {
        assert!(Notebook::new("{".into()).unwrap_err().starts_with("not a notebook"));
        assert!(Notebook::new(r#"{"worksheets": []}"#.into()).unwrap_err().contains("format before 4"));
        let julia = r#"{"cells": [{"cell_type": "code", "source": "x"}], "metadata": {"language_info": {"name": "julia"}}}"#;
        assert_eq!(Notebook::new(julia.into()).unwrap().1, "");
    }
}
