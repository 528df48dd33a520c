//! Comma-separated values, as RFC 4180 has them.

/// Why a text is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A quote that is never closed.
    #[error("line {0}: a quote is not closed")]
    OpenQuote(usize),
    /// A row with more or fewer cells than the first.
    #[error("line {line}: {cells} cells, the head has {expected}")]
    Ragged {
        /// Where.
        line: usize,
        /// Cells that it has.
        cells: usize,
        /// Cells of the head.
        expected: usize,
    },
}

/// Rows of cells with the lines where they begin; the first row is the head. Empty lines are left out.
///
/// # Errors
/// If quotes or rows do not match.
pub fn parse(text: &str) -> Result<Vec<(usize, Vec<String>)>, TableError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
    let (mut row, mut cell) = (Vec::new(), String::new());
    let (mut line, mut begin, mut quoted) = (1, 1, None);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted.is_some() && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' if quoted.is_some() => quoted = None,
            '"' if cell.is_empty() => quoted = Some(line),
            ',' if quoted.is_none() => row.push(std::mem::take(&mut cell)),
            '\r' if quoted.is_none() && characters.peek() == Some(&'\n') => {}
            '\n' if quoted.is_none() => {
                row.push(std::mem::take(&mut cell));
                rows.push((begin, std::mem::take(&mut row)));
                begin = line + 1;
            }
            other => cell.push(other),
        }
        line += usize::from(character == '\n');
    }
    if let Some(line) = quoted {
        return Err(TableError::OpenQuote(line));
    }
    row.push(cell);
    rows.push((begin, row));
    rows.retain(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()));
    let expected = rows.first().map_or(0, |(_, head)| head.len());
    match rows.iter().find(|(_, cells)| cells.len() != expected) {
        Some((line, cells)) => Err(TableError::Ragged { line: *line, cells: cells.len(), expected }),
        None => Ok(rows),
    }
}

/// One line of a table.
pub fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.into_iter().map(quoted).collect();
    cells.join(",") + "\n"
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn cells_with_commas_quotes_and_lines_come_back() {
        let cells = ["a,b", "say \"x\"", "two\nlines", "plain", ""];
        let text = line(["1", "2", "3", "4", "5"]) + &line(cells) + &line(["z"; 5]);
        let rows = parse(&text).unwrap();
        assert_eq!(rows[1], (2, cells.map(String::from).to_vec()));
        assert_eq!(rows[2].0, 4);
    }

    #[test]
    fn marks_and_ends_of_other_systems_are_borne() {
        let rows = parse("\u{feff}a,b\r\n1,2\r\n\r\n").unwrap();
        assert_eq!(rows, [(1, vec!["a".into(), "b".into()]), (2, vec!["1".into(), "2".into()])]);
    }

    #[test]
    fn errors_name_their_line() {
        assert_eq!(parse("a,b\n\n1,2,3\n"), Err(TableError::Ragged { line: 3, cells: 3, expected: 2 }));
        assert_eq!(parse("a\n\"b\n"), Err(TableError::OpenQuote(2)));
    }
}
