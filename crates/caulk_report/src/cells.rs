//! Notebooks: lines of all code cells in one, to lines of one cell.

use std::collections::BTreeMap;
use std::path::Path;

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

/// The file that a name of a cell is of, as the report of a run writes it: `fit.ipynb` of `fit.ipynb:cell 3`.
pub(crate) fn file(name: &str) -> &str {
    let is_notebook = |file: &str| Path::new(file).extension().is_some_and(|ending| ending == "ipynb");
    let cell = |(file, number): &(&str, &str)| is_notebook(file) && number.parse::<u32>().is_ok();
    name.rsplit_once(":cell ").filter(cell).map_or(name, |(file, _)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_its_notebook_s_file() {
        let known = [("a/b.ipynb:cell 3", "a/b.ipynb"), ("a.py", "a.py"), ("a.py:cell 3", "a.py:cell 3")];
        for (name, expected) in known {
            assert_eq!(file(name), expected);
        }
    }

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
