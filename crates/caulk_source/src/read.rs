//! Reading files, many at once.

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Problem;
use rayon::prelude::*;

use crate::encoding::Encoding;
use crate::notebook::{self, Notebook};
use crate::plain::{self, PlainError};

/// Longest file that is read, in bytes: longer ones are data.
const LONGEST: u64 = caulk_python::MAX_BYTES as u64;
/// The same for notebooks, most of which is what cells put out.
const LONGEST_NOTEBOOK: u64 = 128 << 20;

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it lies.
    pub path: Utf8PathBuf,
    /// Its text, line ends and a byte order mark as they are; of a notebook, all code cells in one.
    pub text: String,
    encoding: Encoding,
    notebook: Option<Notebook>,
}

impl Document {
    /// Takes bytes for the content of a file.
    ///
    /// # Errors
    /// The problem, where the bytes are no Python, or too many.
    pub fn new(path: &Utf8Path, bytes: &[u8]) -> Result<Self, Problem> {
        Self::of_bytes(path, bytes.to_owned())
    }

    fn of_bytes(path: &Utf8Path, bytes: Vec<u8>) -> Result<Self, Problem> {
        let problem = |message: String| Problem::of_file(path, message);
        if bytes.len() as u64 > longest(path) {
            return Err(problem(PlainError::Long(longest(path)).to_string()));
        }
        if is_notebook(path) {
            let (raw, encoding) = Encoding::utf8(bytes).map_err(|error| problem(error.to_string()))?;
            let (notebook, text) = Notebook::new(raw).map_err(problem)?;
            if text.len() as u64 > LONGEST {
                return Err(problem(format!("the code in it is {}", PlainError::Long(LONGEST))));
            }
            return Ok(Self { path: path.to_owned(), text, encoding, notebook: Some(notebook) });
        }
        let (text, encoding) = Encoding::decode(bytes).map_err(|error| problem(error.to_string()))?;
        Ok(Self { path: path.to_owned(), text, encoding, notebook: None })
    }

    /// The whole file with another text in it; `None` where its cells cannot hold the text.
    pub fn with(&self, text: &str) -> Option<String> {
        self.notebook.as_ref().map_or_else(|| Some(text.to_owned()), |notebook| notebook.with(text))
    }

    /// A whole file as bytes; `None` where its encoding cannot hold it.
    pub fn encode(&self, whole: &str) -> Option<Vec<u8>> {
        self.encoding.encode(whole)
    }

    /// Of a notebook, the first line of every code cell and the cell's number.
    pub fn cells(&self) -> Option<Vec<(u32, u32)>> {
        self.notebook.as_ref().map(Notebook::starts)
    }

    /// Of a notebook, the number of every code cell, and its text as it is in the file, with the commands of `IPython`.
    pub fn cell_sources(&self) -> Vec<(u32, &str)> {
        self.notebook.as_ref().map_or_else(Vec::new, Notebook::sources)
    }

    /// Of a notebook, the number of every code cell, and its part of the text.
    pub fn cell_texts(&self) -> Vec<(u32, String)> {
        self.notebook.as_ref().map_or_else(Vec::new, |notebook| notebook.parts(&self.text))
    }

    /// Of a notebook, its text with other texts in its code cells, by number; `None` where a cell is left as it is.
    pub fn with_cells<'a>(&self, new: impl Fn(u32) -> Option<&'a str>) -> String {
        let part = |(number, old): (u32, String)| notebook::part(new(number).unwrap_or(&old));
        self.cell_texts().into_iter().map(part).collect()
    }

    /// Whether a line of the text only stands between two cells.
    pub fn is_separator(&self, line: &str) -> bool {
        self.notebook.is_some() && notebook::is_separator(line)
    }
}

/// Reads files on all cores; in the order in which they were given. What cannot be read is a problem.
pub fn read(files: &[Utf8PathBuf]) -> (Vec<Document>, Vec<Problem>) {
    let read: Vec<Result<Document, Problem>> = files.par_iter().map(|file| one(file)).collect();
    let (mut documents, mut problems) = (Vec::with_capacity(read.len()), Vec::new());
    for file in read {
        match file {
            Ok(document) => documents.push(document),
            Err(problem) => problems.push(problem),
        }
    }
    (documents, problems)
}

fn one(path: &Utf8Path) -> Result<Document, Problem> {
    let bytes = plain::read(path, longest(path));
    Document::of_bytes(path, bytes.map_err(|error| Problem::of_file(path, error.to_string()))?)
}

/// Longest file of this name that is looked at, in bytes.
fn longest(path: &Utf8Path) -> u64 {
    if is_notebook(path) { LONGEST_NOTEBOOK } else { LONGEST }
}

fn is_notebook(path: &Utf8Path) -> bool {
    path.extension() == Some("ipynb")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_a_problem_and_the_rest_is_read() {
        let guard = tempfile::tempdir().unwrap();
        let top = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        fs::write(top.join("a.py"), "x = 1\n").unwrap();
        fs::write(top.join("b.py"), b"'\xff'").unwrap();
        let (documents, problems) = read(&[top.join("a.py"), top.join("b.py"), top.join("none.py")]);
        assert_eq!(documents.iter().map(|document| document.text.as_str()).collect::<Vec<_>>(), ["x = 1\n"]);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].message.contains("not UTF-8") && problems[1].message.contains("failed to read"));
    }
}
