//! Reading files, many at once.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Problem;
use rayon::prelude::*;

use crate::encoding::Encoding;

/// Longest file that is read, in bytes: longer ones are data.
const LONGEST: u64 = 16 << 20;

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it lies.
    pub path: Utf8PathBuf,
    /// Its text; line ends and a byte order mark as they are.
    pub text: String,
    encoding: Encoding,
}

impl Document {
    /// Takes bytes for the content of a file.
    ///
    /// # Errors
    /// The problem, where the bytes are no Python.
    pub fn new(path: &Utf8Path, bytes: &[u8]) -> Result<Self, Problem> {
        let (text, encoding) =
            Encoding::decode(bytes).map_err(|error| Problem::of_file(path, error.to_string()))?;
        Ok(Self { path: path.to_owned(), text, encoding })
    }

    /// The bytes of the file with another text in it; `None` where its encoding cannot hold the text.
    pub fn with(&self, text: &str) -> Option<Vec<u8>> {
        self.encoding.encode(text)
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
    let failed = |error: io::Error| Problem::of_file(path, format!("failed to read: {error}"));
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > LONGEST {
        return Err(Problem::of_file(path, format!("{} MB are not looked at", bytes >> 20)));
    }
    Document::new(path, &fs::read(path).map_err(failed)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
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
