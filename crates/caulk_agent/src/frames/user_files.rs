//! Which files are the user's own: not the standard library, not an installed package, not caulk.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was configured, and what was answered before.
struct UserFiles {
    /// Folder of caulk with a final separator; empty where it is not known.
    own: String,
    /// Folders with a final separator whose files are not the user's.
    foreign: Vec<String>,
    answers: Option<HashMap<String, bool>>,
}

static USER_FILES: Mutex<UserFiles> =
    Mutex::new(UserFiles { own: String::new(), foreign: Vec::new(), answers: None });

/// Bound on remembered answers: notebooks make a file name for every cell.
const MOST_ANSWERS: usize = 10_000;

/// Names in angle brackets of code that a person typed.
const TYPED: [&str; 5] = ["<stdin>", "<string>", "<console>", "<input>", "<ipython-input"];

/// Sets the folder of caulk itself.
pub(super) fn configure_own(folder: String) {
    lock().own = with_separator(folder);
}

/// Sets the folders whose files are not the user's.
pub(super) fn configure(prefixes: Vec<String>) {
    let mut files = lock();
    files.foreign = prefixes.into_iter().filter(|prefix| !prefix.is_empty()).map(with_separator).collect();
    files.answers = None;
}

/// Is this file name of a code object one of the user's own?
pub(crate) fn is_user_file(filename: &str) -> bool {
    let mut files = lock();
    if let Some(answer) = files.answers.as_ref().and_then(|answers| answers.get(filename)) {
        return *answer;
    }
    let answer = decide(filename, &files.foreign);
    let answers = files.answers.get_or_insert_default();
    if answers.len() < MOST_ANSWERS {
        answers.insert(filename.to_owned(), answer);
    }
    answer
}

/// Is this file an installed package's?
pub(crate) fn is_installed_file(filename: &str) -> bool {
    filename.contains("/site-packages/") || filename.contains("/dist-packages/")
}

/// Is this file a part of caulk?
pub(crate) fn is_caulk_file(filename: &str) -> bool {
    let own = &lock().own;
    filename.starts_with("<caulk") || (!own.is_empty() && filename.starts_with(own.as_str()))
}

fn decide(filename: &str, foreign: &[String]) -> bool {
    if filename.starts_with('<') {
        return TYPED.iter().any(|typed| filename.starts_with(typed));
    }
    !filename.is_empty()
        && !is_installed_file(filename)
        && !foreign.iter().any(|folder| filename.starts_with(folder.as_str()))
}

fn with_separator(mut folder: String) -> String {
    if !folder.ends_with('/') {
        folder.push('/');
    }
    folder
}

/// Nothing that runs under the lock can panic, so a poisoned one is as good as any.
fn lock() -> MutexGuard<'static, UserFiles> {
    USER_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_files_are_told_apart() {
        let foreign =
            vec![with_separator("/usr/lib/python3.11".into()), with_separator("/opt/caulk/".into())];
        for (filename, expected) in [
            ("/home/me/train.py", true),
            ("train.py", true),
            ("/home/me/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py", false),
            ("/usr/lib/python3/dist-packages/numpy/__init__.py", false),
            ("/usr/lib/python3.11/queue.py", false),
            ("/usr/lib/python3.11-project/train.py", true),
            ("/opt/caulk/_bootstrap.py", false),
            ("<frozen importlib._bootstrap>", false),
            ("<eval_with_key>.3", false),
            ("<string>", true),
            ("<stdin>", true),
            ("<ipython-input-3-abc>", true),
            ("/tmp/ipykernel_4711/123.py", true),
            ("", false),
        ] {
            assert_eq!(decide(filename, &foreign), expected, "{filename}");
        }
    }
}
