//! What git ignores, folder by folder, and what `.ignore` files add to that.
//!
//! The rules are those of `ignore::Walk`, which reads its files without a bound: a pipe in place of a `.gitignore` would
//! stop it. Here they are plain files of a bounded size.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};

use crate::plain;

/// Most rules that count for a folder, those above it included, in bytes: compiled, they take up to a thousand times as
/// much. A file that would be more is not read.
const MOST: u64 = 256 << 10;

/// A file of rules that cannot be used, and why.
pub(crate) type Unread = (PathBuf, String);

/// The rules of a folder and of those above it, which come first. Folders without rules are not among them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    levels: Arc<Vec<Arc<Level>>>,
    /// How long the files were that they were read from, in bytes.
    bytes: u64,
}

#[derive(Debug, Default)]
struct Level {
    /// `.ignore`
    own: Option<Gitignore>,
    /// `.gitignore`
    git: Option<Gitignore>,
    /// `.git/info/exclude`
    exclude: Option<Gitignore>,
    /// The user's own, for every repository.
    everywhere: Option<Gitignore>,
    /// A repository begins here: rules of git further up are none of its business.
    top: bool,
}

impl Rules {
    /// What the user ignores everywhere, and the rules of all folders above one, if they reach into it.
    pub(crate) fn above(folder: &Path, reach: bool, unread: &mut Vec<Unread>) -> Self {
        let mut bytes = 0;
        let everywhere = gitconfig_excludes_path().and_then(|path| load(&path, folder, &mut bytes, unread));
        let start = Self::default().with(Level { everywhere, ..Level::default() }, bytes);
        let folders: Vec<&Path> = folder.ancestors().skip(1).filter(|_| reach).collect();
        folders.into_iter().rev().fold(start, |rules, folder| rules.enter(folder, unread))
    }

    /// The rules inside a folder, which is just below.
    pub(crate) fn enter(&self, folder: &Path, unread: &mut Vec<Unread>) -> Self {
        let repository = folder.join(".git");
        let top = repository.exists();
        let mut bytes = self.bytes;
        let mut load = |path: &Path| load(path, folder, &mut bytes, unread);
        let (own, git) = (load(&folder.join(".ignore")), load(&folder.join(".gitignore")));
        let exclude = if top { load(&common(repository).join("info/exclude")) } else { None };
        if !top && own.is_none() && git.is_none() {
            return self.clone();
        }
        self.with(Level { own, git, exclude, everywhere: None, top }, bytes)
    }

    fn with(&self, level: Level, bytes: u64) -> Self {
        let levels = self.levels.iter().cloned().chain([Arc::new(level)]).collect();
        Self { levels: Arc::new(levels), bytes }
    }

    /// Whether a file or folder in the folder is left out.
    pub(crate) fn ignore(&self, path: &Path, folder: bool) -> bool {
        let matched = |rules: &Option<Gitignore>| match rules {
            Some(rules) => rules.matched(path, folder).map(|_| ()),
            None => Match::None,
        };
        let (mut own, mut git, mut exclude, mut everywhere) =
            (Match::None, Match::None, Match::None, Match::None);
        let mut below_top = true;
        for level in self.levels.iter().rev() {
            own = own.or(matched(&level.own));
            if below_top {
                git = git.or(matched(&level.git));
                exclude = exclude.or(matched(&level.exclude));
                below_top = !level.top;
            }
            everywhere = everywhere.or(matched(&level.everywhere));
        }
        own.or(git).or(exclude).or(everywhere).is_ignore()
    }
}

/// Where the repository of a worktree keeps its `info`: a worktree's `.git` is a file that names a folder, in which
/// `commondir` names the repository.
fn common(git: PathBuf) -> PathBuf {
    let line = |path: &Path| {
        let bytes = plain::read(path, MOST).ok()?;
        Some(String::from_utf8_lossy(&bytes).lines().next()?.to_owned())
    };
    let Some(folder) = line(&git).and_then(|line| Some(line.strip_prefix("gitdir: ")?.to_owned())) else {
        return git;
    };
    let folder = git.parent().unwrap_or(&git).join(folder);
    line(&folder.join("commondir")).map_or(folder.clone(), |common| folder.join(common))
}

/// The rules in a file, for what lies in a folder; `None` where there is none. `bytes` of rules are known already.
pub(crate) fn load(
    file: &Path,
    folder: &Path,
    bytes: &mut u64,
    unread: &mut Vec<Unread>,
) -> Option<Gitignore> {
    let text = match plain::read(file, MOST.saturating_sub(*bytes)) {
        Ok(text) => text,
        Err(error) if error.is_absent() => return None,
        Err(error) => {
            unread.push((file.to_owned(), error.to_string()));
            return None;
        }
    };
    *bytes += text.len() as u64;
    let text = String::from_utf8_lossy(&text);
    let mut rules = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // Git, too, goes on behind a line that it does not understand.
        let _ = rules.add_line(None, line);
    }
    let rules = rules.build();
    if rules.is_err() {
        unread.push((file.to_owned(), "they are too many to be compiled".to_owned()));
    }
    rules.ok().filter(|rules| !rules.is_empty())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use super::*;

    fn check(tree: &[(&str, &str)], path: &str, ignored: bool) {
        let guard = tempfile::tempdir().unwrap();
        for (file, text) in tree {
            let file = guard.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let mut unread = Vec::new();
        let mut rules = Rules::default().enter(guard.path(), &mut unread);
        let mut folder = guard.path().to_owned();
        for part in Path::new(path).parent().unwrap() {
            folder.push(part);
            rules = rules.enter(&folder, &mut unread);
        }
        assert_eq!(rules.ignore(&guard.path().join(path), false), ignored, "{tree:?} {path}");
        assert!(unread.is_empty());
    }

    #[test]
    fn the_nearest_rule_counts() {
        check(&[(".gitignore", "\u{feff}a.py\n")], "x/a.py", true);
        check(&[(".gitignore", "*.py\n"), ("x/.gitignore", "!a.py\n")], "x/a.py", false);
        check(&[(".gitignore", "*.py\n"), (".ignore", "!a.py\n")], "a.py", false);
        check(&[(".gitignore", "/x/a.py\n[\n")], "x/a.py", true);
    }

    #[test]
    fn a_repository_has_its_own_rules() {
        check(&[(".gitignore", "a.py\n"), ("x/.git/HEAD", "")], "x/a.py", false);
        check(&[(".ignore", "a.py\n"), ("x/.git/HEAD", "")], "x/a.py", true);
        check(&[(".git/info/exclude", "a.py\n")], "x/a.py", true);
        let worktree =
            [("x/.git", "gitdir: ../r/w\n"), ("r/w/commondir", "..\n"), ("r/info/exclude", "a.py\n")];
        check(&worktree, "x/a.py", true);
    }
}
