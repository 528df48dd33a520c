//! Cells of notebooks, by the names that their code objects have while ipykernel runs them.
//!
//! ipykernel compiles a cell under the name `ipykernel_PID/HASH.py` in the folder for temporary files, where nothing lies. The
//! hash is `MurmurHash2` of the cell's text with a fixed seed (`ipykernel/compiler.py`, `get_file_name`). So a cell is found
//! again by its text.

use std::cell::OnceCell;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_source::{Document, Excludes, Extent, ProjectRoot};

/// `get_tmp_hash_seed` of ipykernel.
const SEED: u32 = 0xC70F_6907;

/// A code cell of a notebook.
struct CodeCell {
    /// As reports name it: `fit.ipynb:cell 3`.
    name: String,
    hash: u32,
    text: String,
}

/// The notebooks of a folder, read when the first cell is asked for.
pub(crate) struct NotebookCells {
    folder: Utf8PathBuf,
    cells: OnceCell<Vec<CodeCell>>,
}

impl NotebookCells {
    pub(crate) fn new(folder: &str) -> Self {
        Self { folder: folder.into(), cells: OnceCell::new() }
    }

    /// The name in reports and the Python text of the cell that a code object or a report names so.
    pub(crate) fn find(&self, path: &str) -> Option<(&str, &str)> {
        let hash = compiled(path);
        if hash.is_none() && !path.contains(".ipynb:cell ") {
            return None;
        }
        let cells = self.cells.get_or_init(|| read(&self.folder));
        let is_it = |cell: &&CodeCell| hash.map_or(cell.name == path, |hash| cell.hash == hash);
        cells.iter().find(is_it).map(|cell| (cell.name.as_str(), cell.text.as_str()))
    }
}

/// The hash in the name of a cell's code object.
fn compiled(path: &str) -> Option<u32> {
    let (folder, file) = path.rsplit_once('/')?;
    folder.rsplit('/').next()?.strip_prefix("ipykernel_")?;
    file.strip_suffix(".py")?.parse().ok()
}

/// The code cells of all notebooks below a folder. One that cannot be read has none.
fn read(folder: &Utf8Path) -> Vec<CodeCell> {
    let root = ProjectRoot { folder: folder.to_owned(), extent: Extent::Folder };
    let Ok(excludes) = Excludes::new(folder, &[]) else { return Vec::new() };
    let (files, _) = caulk_source::files(&root, &excludes);
    let notebooks: Vec<Utf8PathBuf> =
        files.into_iter().filter(|file| file.extension() == Some("ipynb")).collect();
    let (notebooks, _) = caulk_source::read(&notebooks);
    notebooks.iter().flat_map(|notebook| of_notebook(folder, notebook)).collect()
}

fn of_notebook(folder: &Utf8Path, notebook: &Document) -> Vec<CodeCell> {
    let shown = notebook.path.strip_prefix(folder).unwrap_or(&notebook.path);
    let cell = |(number, source): (u32, &str)| {
        let hash = murmur_hash_2(source.as_bytes());
        CodeCell { name: format!("{shown}:cell {number}"), hash, text: without_magics(source) }
    };
    notebook.cell_sources().into_iter().map(cell).collect()
}

/// Lines that are no Python but `IPython`'s own commands, as `pass`.
fn without_magics(source: &str) -> String {
    let line = |line: &str| {
        let code = line.trim_start();
        if code.starts_with(['%', '!']) {
            format!("{}pass", &line[..line.len() - code.len()])
        } else {
            line.to_owned()
        }
    };
    source.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// `MurmurHash2` (A. Appleby, 2008), with the seed of ipykernel.
fn murmur_hash_2(data: &[u8]) -> u32 {
    const FACTOR: u32 = 0x5BD1_E995;
    let mut hash = SEED ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in words.by_ref() {
        let mut key = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(FACTOR);
        key = (key ^ (key >> 24)).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ key;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let key = rest.iter().rev().fold(0, |key, byte| key << 8 | u32::from(*byte));
        hash = (hash ^ key).wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use super::*;

    /// Values of ipykernel 7.1, `murmur2_x86(text, get_tmp_hash_seed())`.
    #[test]
    fn hashes_are_those_of_ipykernel() {
        let known = [
            ("", 3_990_065_800),
            ("x = 1", 3_427_300_630),
            ("abcd", 804_720_481),
            ("fit(10)", 1_942_956_757),
            ("# ü\nhistory.append(model(x))\n", 1_153_180_163),
        ];
        for (text, hash) in known {
            assert_eq!(murmur_hash_2(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn a_cell_is_found_by_its_code_s_name_and_by_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let notebook = r##"{"cells": [
            {"cell_type": "markdown", "source": ["# Title"]},
            {"cell_type": "code", "source": ["%time fit(10)\n", "fit(10)"]},
            {"cell_type": "code", "source": "fit(10)"}
        ]}"##;
        fs::create_dir(folder.path().join("notes")).unwrap();
        fs::write(folder.path().join("notes/fit.ipynb"), notebook).unwrap();
        fs::write(folder.path().join("broken.ipynb"), "{").unwrap();
        let cells = NotebookCells::new(folder.path().to_str().unwrap());
        let third = Some(("notes/fit.ipynb:cell 3", "fit(10)"));
        assert_eq!(cells.find("/tmp/ipykernel_77/1942956757.py"), third);
        assert_eq!(cells.find("notes/fit.ipynb:cell 3"), third);
        let second = Some(("notes/fit.ipynb:cell 2", "pass\nfit(10)"));
        assert_eq!(cells.find("notes/fit.ipynb:cell 2"), second);
        for other in ["/tmp/ipykernel_77/1.py", "/tmp/77/1942956757.py", "train.py", "fit.ipynb:cell 9"] {
            assert_eq!(cells.find(other), None, "{other}");
        }
    }
}
