//! Notebooks: lines of all code cells in one, to lines of one cell.

use std::collections::BTreeMap;

/// By notebook, the first line of every code cell in the joined text and the cell's number, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells(BTreeMap<String, Vec<(u32, u32)>>);

/// A line as a person finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// Cell of a notebook, from 1; `None` in other files.
    pub cell: Option<u32>,
    /// Line in the file or cell, from 1.
    pub line: u32,
}

impl Cells {
    /// Adds a notebook: for every code cell its first line in the joined text, and its number from 1.
    pub fn insert(&mut self, file: &str, cells: Vec<(u32, u32)>) {
        self.0.insert(file.to_owned(), cells);
    }

    /// Where a line of a file is.
    pub fn place(&self, file: &str, line: u32) -> Numbered {
        let starts = self.0.get(file).map_or(&[][..], Vec::as_slice);
        match starts.iter().rev().find(|(first, _)| *first <= line) {
            Some((first, cell)) => Numbered { cell: Some(*cell), line: line - first + 1 },
            None => Numbered { cell: None, line },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cells_count_from_their_cell() {
        let mut cells = Cells::default();
        cells.insert("a.ipynb", vec![(1, 2), (4, 3)]);
        let check = |file, line, cell, local| {
            assert_eq!(cells.place(file, line), Numbered { cell, line: local });
        };
        check("a.ipynb", 3, Some(2), 3);
        check("a.ipynb", 4, Some(3), 1);
        check("a.ipynb", 9, Some(3), 6);
        check("a.py", 9, None, 9);
    }
}
