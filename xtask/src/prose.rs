//! Plain English: watches a short list of words that `docs/style.md` advises against.
//!
//! The tree still has many. So this is a ratchet: the number of uses that are left is listed for each word, and no number
//! may rise. The words of the two pages that explain them are not counted: those stand in backticks there.

mod counts;
mod phrases;
mod text;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::console::{self, failure};
use crate::workspace::Workspace;
use counts::{Counts, Kind};
use words::{WORDS, Word};

/// The words of one file.
#[derive(Debug)]
struct File {
    kind: Kind,
    name: String,
    words: Vec<String>,
}

/// Folders and files whose English is read.
const PLACES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "crates",
    "python/caulk",
    "xtask/src",
    "caulk-clips/README.md",
    "caulk-clips/crates",
    "caulk-clips/docs",
    "caulk-clips/python/caulk_clips",
];

/// Folders below them that are for tests alone, and the list of words itself.
const LEFT_OUT: &[&str] = &["tests", "snapshots", "target", "prose"];

/// Files shown for a word whose number has risen.
const SHOWN: usize = 6;

/// Fails if a watched word is used more often than the list allows, and names the numbers that can be lowered.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let files = files(workspace)?;
    for text in fallen(&files, WORDS) {
        console::note(text);
    }
    let risen = risen(&files, WORDS);
    if risen.is_empty() {
        return Ok(());
    }
    Err(failure(
        format!("there are more of the words that docs/style.md advises against:\n  {}", risen.join("\n  ")),
        "write it as docs/style.md shows; names of code stand in backticks and do not count",
    ))
}

/// One text for each number that is higher than the list allows.
fn risen(files: &[File], words: &[Word]) -> Vec<String> {
    let changed = words.iter().flat_map(|word| changes(files, word));
    let risen = changed.filter(|(_, _, found, known)| found > known);
    risen
        .map(|(word, kind, found, known)| {
            let mut places: Vec<_> = places(files, word, kind).collect();
            places.sort_by_key(|(name, count)| (usize::MAX - count, *name));
            let shown: Vec<_> =
                places.iter().take(SHOWN).map(|(name, count)| format!("{name} ({count})")).collect();
            let more = if places.len() > SHOWN { ", ..." } else { "" };
            format!(
                "`{}`: {found} in {}, {known} are allowed. Write: {}. Found in {}{more}",
                word.phrase,
                kind.name(),
                word.instead,
                shown.join(", ")
            )
        })
        .collect()
}

/// One text for each number that is lower than the list allows.
fn fallen(files: &[File], words: &[Word]) -> Vec<String> {
    let changed = words.iter().flat_map(|word| changes(files, word));
    let fallen = changed.filter(|(_, _, found, known)| found < known);
    fallen
        .map(|(word, kind, found, known)| {
            format!(
                "`{}`: {known} are allowed in {}, {found} are left; lower the number to {found} in words.rs",
                word.phrase,
                kind.name()
            )
        })
        .collect()
}

fn changes<'w>(
    files: &[File],
    word: &'w Word,
) -> impl Iterator<Item = (&'w Word, Kind, usize, usize)> + use<'w> {
    let mut found = Counts::default();
    for file in files {
        found += (file.kind, phrases::count(&file.words, word.phrase));
    }
    found.beside(word.known).into_iter().map(move |(kind, found, known)| (word, kind, found, known))
}

/// The files of a kind that have a word, each with how often.
fn places<'f>(files: &'f [File], word: &Word, kind: Kind) -> impl Iterator<Item = (&'f str, usize)> {
    let files = files.iter().filter(move |file| file.kind == kind);
    let counted = files.map(|file| (file.name.as_str(), phrases::count(&file.words, word.phrase)));
    counted.filter(|(_, count)| *count > 0)
}

/// The words of every file that is watched.
fn files(workspace: &Workspace) -> anyhow::Result<Vec<File>> {
    let mut paths = Vec::new();
    for place in PLACES {
        find(&workspace.path(place), &mut paths)?;
    }
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(workspace.root()).unwrap_or(&path).display().to_string();
        read(&path, name)
    };
    paths.into_iter().filter_map(|path| read(path).transpose()).collect()
}

fn find(path: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        paths.push(path.to_path_buf());
        return Ok(());
    }
    let entries = fs::read_dir(path).with_context(|| format!("failed to read {}", path.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to read {}", path.display()))?;
        if !LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            find(&entry.path(), paths)?;
        }
    }
    Ok(())
}

/// The words of a file; `None` if it holds no prose.
fn read(path: &Path, name: String) -> anyhow::Result<Option<File>> {
    let Some(kind) = Kind::of(path) else {
        return Ok(None);
    };
    let source = fs::read_to_string(path).with_context(|| format!("failed to read {name}"))?;
    let texts = match kind {
        Kind::Page => vec![source],
        Kind::Rust => text::of_rust(&source).map_err(|error| anyhow!("failed to read {name}: {error}"))?,
        Kind::Python => text::of_python(&source),
    };
    let words = texts.iter().flat_map(|text| phrases::words(text)).collect();
    Ok(Some(File { kind, name, words }))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn file(kind: Kind, text: &str) -> File {
        File { kind, name: "a".into(), words: phrases::words(text) }
    }

    fn told(pages: usize, rust: usize) -> [Word; 1] {
        [Word { phrase: "told", instead: "reported", known: Counts { pages, rust, python: 0 } }]
    }

    #[test]
    fn a_number_may_not_rise() {
        let files = [file(Kind::Page, "Told once."), file(Kind::Rust, "told and told")];
        assert_eq!(risen(&files, &told(1, 2)), Vec::<String>::new());
        assert_eq!(
            risen(&files, &told(1, 1)),
            ["`told`: 2 in rust, 1 are allowed. Write: reported. Found in a (2)"]
        );
        assert_eq!(risen(&files, &told(0, 0)).len(), 2);
    }

    #[test]
    fn a_number_that_fell_is_to_be_lowered() {
        let files = [file(Kind::Page, "Told once.")];
        assert_eq!(
            fallen(&files, &told(3, 0)),
            ["`told`: 3 are allowed in pages, 1 are left; lower the number to 1 in words.rs"]
        );
        assert_eq!(fallen(&files, &told(1, 0)), Vec::<String>::new());
    }

    /// Fails if a page names code, as "`name` in `file`", that is not there. How many it names.
    fn check_code_of(page: &str) -> usize {
        let workspace = Workspace::here();
        let text = fs::read_to_string(workspace.path(page)).unwrap();
        let pieces: Vec<&str> = text.split("` in `").collect();
        for pair in pieces.windows(2) {
            let name = pair[0].rsplit('`').next().unwrap();
            let file = pair[1].split('`').next().unwrap();
            let source = fs::read_to_string(workspace.path(file)).unwrap_or_default();
            let mut words = source.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            assert!(words.any(|word| word == name), "{page}: `{name}` is not in `{file}`");
        }
        let is_file = |piece: &&str| piece.starts_with("crates/") && !piece.contains(char::is_whitespace);
        for file in text.split('`').filter(is_file) {
            assert!(workspace.path(file).exists(), "{page}: there is no `{file}`");
        }
        pieces.len() - 1
    }

    #[test]
    fn pages_name_code_that_is_there() {
        assert!(check_code_of("docs/glossary.md") > 40);
        assert!(check_code_of("docs/life.md") > 30);
    }

    #[test]
    fn this_workspace_has_no_more_of_the_words_than_are_listed() {
        let files = files(&Workspace::here()).unwrap();
        assert!(files.iter().any(|file| file.name == "docs/style.md"));
        assert_eq!(risen(&files, WORDS), Vec::<String>::new());
    }
}
