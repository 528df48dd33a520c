//! Links that lead out of where one works.
//!
//! A link is a part of its tree, and a tree may be somebody else's: what it leads to is no business of who named the tree.

use camino::{Utf8Path, Utf8PathBuf};

/// Where an absolute path really leads, if a link on the way makes that another place than its text says. The file itself
/// need not be there.
///
/// Links above the working directory, and in the root folder (`/home`, `/tmp`), are the system's own.
pub(super) fn target(directory: &Utf8Path, path: &Utf8Path) -> Option<Utf8PathBuf> {
    let base = base(directory, path);
    let below = path.strip_prefix(&base).ok()?;
    let expected = base.canonicalize_utf8().unwrap_or(base).join(below);
    let real = match path.canonicalize_utf8() {
        Ok(real) => real,
        // A link to nothing: what is written to it is made there.
        Err(_) if path.is_symlink() => path.read_link_utf8().unwrap_or_else(|_| path.to_owned()),
        Err(_) => path.parent()?.canonicalize_utf8().ok()?.join(path.file_name()?),
    };
    (real != expected).then_some(real)
}

/// How far the way to a path is not looked at: to the folder that it shares with the working directory, or one step.
fn base(directory: &Utf8Path, path: &Utf8Path) -> Utf8PathBuf {
    let shared = path.components().zip(directory.components()).take_while(|(a, b)| a == b).count();
    path.components().take(shared.max(2)).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_seen_wherever_they_stand() {
        let guard = tempfile::tempdir().unwrap();
        let top = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
        for folder in ["job/pkg", "other"] {
            fs::create_dir_all(top.join(folder)).unwrap();
            fs::write(top.join(folder).join("a.py"), "").unwrap();
        }
        symlink(top.join("other"), top.join("job/folder")).unwrap();
        symlink("../other/a.py", top.join("job/a.py")).unwrap();
        symlink("../other/new.py", top.join("job/new.py")).unwrap();
        symlink(top.join("job"), top.join("jobs")).unwrap();
        let check = |directory: &str, path: &str, leads: bool| {
            let real = target(&top.join(directory), &top.join(path));
            assert_eq!(real.is_some(), leads, "{directory} {path} {real:?}");
        };
        check("job", "job/pkg/a.py", false);
        check("job", "job/pkg/none.py", false);
        check("job", "job/folder/a.py", true);
        check("job", "job/a.py", true);
        check("job", "job/new.py", true);
        check("job/pkg", "job/a.py", true);
        check("other", "job/folder/a.py", true);
        check("other", "jobs/pkg/a.py", true);
        assert!(target("/proc".into(), &top.join("jobs/pkg/a.py")).is_some());
        assert!(target("/proc".into(), &top.join("job/pkg/a.py")).is_none());
    }
}
