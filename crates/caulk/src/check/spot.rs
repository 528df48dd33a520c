//! A line of a file, as a person types it.

use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};

/// `FILE:LINE`; of a notebook `FILE:CELL:LINE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// As it was typed.
    pub(crate) file: Utf8PathBuf,
    pub(crate) cell: Option<u32>,
    pub(crate) line: u32,
}

/// Why a text is no place.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a place; write for example train.py:84, or notes.ipynb:3:84 for a line of the third cell")]
pub(crate) struct SpotError;

impl FromStr for Spot {
    type Err = SpotError;

    fn from_str(text: &str) -> Result<Self, SpotError> {
        let (before, line) = text.rsplit_once(':').ok_or(SpotError)?;
        let line = line.parse().ok().filter(|line| *line > 0).ok_or(SpotError)?;
        let cell = before.rsplit_once(':').and_then(|(file, cell)| Some((file, cell.parse().ok()?)));
        match cell.filter(|(file, _)| Utf8Path::new(file).extension() == Some("ipynb")) {
            Some((file, cell)) => Ok(Self { file: file.into(), cell: Some(cell), line }),
            None if before.is_empty() => Err(SpotError),
            None => Ok(Self { file: before.into(), cell: None, line }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, Option<u32>, u32)>) {
        let spot = expected.map(|(file, cell, line)| Spot { file: file.into(), cell, line });
        assert_eq!(text.parse().ok(), spot, "{text}");
    }

    #[test]
    fn places_are_files_and_lines() {
        check("a.py:3", Some(("a.py", None, 3)));
        check("c:/a.py:3", Some(("c:/a.py", None, 3)));
        check("a.py:3:7", Some(("a.py:3", None, 7)));
        check("a.ipynb:2:7", Some(("a.ipynb", Some(2), 7)));
        for text in ["", "a.py", ":3", "a.py:0", "a.py:x"] {
            check(text, None);
        }
    }
}
