//! What was found last time, if nothing has changed since.
//!
//! The key covers the content of every file of the project: what is found in one is decided in others. It covers this
//! very build and all settings too, so an entry is never wrong, only unused. Nothing here is an error: where nothing
//! can be written, everything is looked at again.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::{CheckOutcome, Job};
use caulk_source::read_plain;

use crate::files;

/// Longest entry that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Entries that are kept.
const MOST: usize = 16;

/// The outcomes of earlier checks of one project.
#[derive(Debug)]
pub(crate) struct Cache {
    home: Utf8PathBuf,
    folder: Utf8PathBuf,
}

impl Cache {
    /// The cache of the project in a folder: below its `.caulk`, or what `CAULK_HOME` names instead. None where a link
    /// in the project would lead elsewhere: whoever wrote the project may have put it there.
    pub(crate) fn of(root: &Utf8Path) -> Option<Self> {
        let chosen = std::env::var(caulk_record::HOME_VARIABLE).ok().filter(|home| !home.is_empty());
        if let Some(home) = chosen {
            return Some(Self::new(home.as_str().into()));
        }
        let cache = Self::new(&caulk_record::home(root, None));
        let mut folders = cache.folder.ancestors().take_while(|folder| *folder != root);
        (!folders.any(Utf8Path::is_symlink)).then_some(cache)
    }

    fn new(home: &Utf8Path) -> Self {
        Self { home: home.to_owned(), folder: home.join("cache/check") }
    }

    /// What was found for the same job, else what `look` finds now.
    pub(crate) fn get(&self, job: Job<'_>, look: impl FnOnce(Job<'_>) -> CheckOutcome) -> CheckOutcome {
        let Some(key) = key(&job) else { return look(job) };
        let path = self.folder.join(format!("{key}.json"));
        let kept = read_plain(&path, LONGEST).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        kept.unwrap_or_else(|| {
            let outcome = look(job);
            self.keep(&path, &outcome);
            outcome
        })
    }

    /// A cache is a help: one that cannot be written is none.
    fn keep(&self, path: &Utf8Path, outcome: &CheckOutcome) {
        // Recordings go there, too: a new home folder is kept out of repositories as a whole.
        if caulk_record::make_home(&self.home).is_err() || fs::create_dir_all(&self.folder).is_err() {
            return;
        }
        if let Some(above) = self.folder.parent() {
            let _ = ignore(above);
        }
        if let Ok(text) = serde_json::to_vec(outcome) {
            let _ = files::write(path, text);
        }
        self.prune();
    }

    fn prune(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut entries: Vec<_> = entries
            .filter(|entry| is_entry(&entry.file_name().to_string_lossy()))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        entries.sort();
        let old = entries.len().saturating_sub(MOST);
        for (_, path) in entries.into_iter().take(old) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Keeps the cache out of repositories.
fn ignore(folder: &Utf8Path) -> std::io::Result<()> {
    // Where there is one, or a link to somewhere, it stays as it is.
    let file = fs::OpenOptions::new().write(true).create_new(true).open(folder.join(".gitignore"));
    file?.write_all(b"*\n")
}

/// Whether a file is one of these, by its name: nothing else is removed.
fn is_entry(name: &str) -> bool {
    let digits = |key: &str| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_suffix(".json").is_some_and(digits)
}

/// 128 bits that stand for a job, this build and the format of entries; `None` where this build is not known.
fn key(job: &Job<'_>) -> Option<String> {
    let build = build()?;
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, &build).hash(&mut hasher);
        for source in &job.sources {
            (&source.path, &source.text).hash(&mut hasher);
        }
        job.reported.hash(&mut hasher);
        job.selection.hash(&mut hasher);
        job.off.hash(&mut hasher);
        hasher.finish()
    };
    Some(format!("{:016x}{:016x}", half(0), half(1)))
}

/// What tells this build from others of the same version.
fn build() -> Option<(&'static str, u64, SystemTime)> {
    let found = fs::metadata(std::env::current_exe().ok()?).ok()?;
    Some((env!("CARGO_PKG_VERSION"), found.len(), found.modified().ok()?))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use caulk_check::Selection;

    use super::*;

    /// How often the project is looked at for these texts, one after the other.
    fn check(texts: &[&str], looks: usize) {
        let guard = tempfile::tempdir().unwrap();
        let cache = Cache::new(Utf8Path::from_path(guard.path()).unwrap());
        let selection = Selection::standard();
        let mut looked = 0;
        for text in texts {
            let job = Job::of_text("a.py", text, &selection);
            let outcome = cache.get(job.clone(), |job| {
                looked += 1;
                caulk_check::check(job)
            });
            assert_eq!(outcome, caulk_check::check(job));
        }
        assert_eq!(looked, looks, "{texts:?}");
        assert!(fs::read_dir(cache.folder).unwrap().count() <= MOST);
    }

    #[test]
    fn what_has_not_changed_is_not_looked_at_again() {
        let leaky = "from functools import cache\nclass A:\n    @cache\n    def f(self): pass\n";
        check(&[leaky, leaky, "x = (", "x = (", leaky], 2);
        let many: Vec<String> = (0..MOST + 3).map(|n| format!("x = {n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check(&many, MOST + 3);
    }

    #[test]
    fn a_new_home_folder_is_kept_out_of_repositories() {
        let guard = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(guard.path()).unwrap().join(".caulk");
        let selection = Selection::standard();
        Cache::new(&home).get(Job::of_text("a.py", "x = 1", &selection), caulk_check::check);
        assert_eq!(fs::read_to_string(home.join(".gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let selection = Selection::standard();
        let job = Job::of_text("a.py", "x = 1", &selection);
        let outcome = Cache::new("/proc/none".into()).get(job, caulk_check::check);
        assert_eq!(outcome, CheckOutcome::default());
    }
}
