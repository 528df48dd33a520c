//! Which project a path belongs to, without configuration.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::shown_name;

use crate::excluded;
use crate::names::absolute;

/// What marks the top of a project.
const MARKERS: [&str; 5] = ["pyproject.toml", "setup.cfg", "setup.py", ".git", ".hg"];

/// Where a project begins, and how much of that folder is the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProjectRoot {
    /// Absolute path of the folder from which imports of the project start.
    pub folder: Utf8PathBuf,
    /// What of it belongs to the project.
    pub extent: Extent,
}

/// How much of a folder is the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// All of it.
    Folder,
    /// One package in it: nothing marks the folder around it as a project.
    Package(Utf8PathBuf),
    /// The scripts in it and the packages beside them: nothing marks it as a project, and it may be anybody's `/tmp`.
    Scripts,
    /// None of it: a text without a place.
    Nothing,
}

/// Paths that the user named, with the project around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectPaths {
    /// The project.
    pub root: ProjectRoot,
    /// Absolute paths of the files and folders that were named in it.
    pub named: Vec<Utf8PathBuf>,
}

/// A path that the user named and that is not there.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no file or folder `{}`", shown_name(.0.as_str()))]
pub struct MissingPath(pub Utf8PathBuf);

/// Sorts named paths by the projects that they belong to.
///
/// # Errors
/// [`MissingPath`] for the first path that is not there.
pub fn group(directory: &Utf8Path, paths: &[Utf8PathBuf]) -> Result<Vec<ProjectPaths>, MissingPath> {
    let mut groups: BTreeMap<ProjectRoot, Vec<Utf8PathBuf>> = BTreeMap::new();
    for path in paths {
        let named = absolute(directory, path);
        if !named.exists() {
            return Err(MissingPath(path.clone()));
        }
        groups.entry(ProjectRoot::of(directory, &named)).or_default().push(named);
    }
    Ok(groups.into_iter().map(|(root, named)| ProjectPaths { root, named }).collect())
}

impl ProjectRoot {
    /// The project of a file or folder. Inside the working directory's project it is that project, so that naming one
    /// file of it and naming all of it mean the same.
    pub fn of(directory: &Utf8Path, named: &Utf8Path) -> Self {
        let folder = if named.is_dir() { named } else { named.parent().unwrap_or(named) };
        if let Some(project) = marked(directory).filter(|project| folder.starts_with(project))
            && !left_out(project, folder)
        {
            return Self::whole(project);
        }
        match marked(folder).filter(|project| !left_out(project, folder)) {
            Some(project) => Self::whole(project),
            None => Self::unmarked(named, folder),
        }
    }

    fn whole(folder: &Utf8Path) -> Self {
        Self { folder: folder.to_owned(), extent: Extent::Folder }
    }

    fn unmarked(named: &Utf8Path, folder: &Utf8Path) -> Self {
        let package = |folder: &&Utf8Path| folder.join("__init__.py").is_file();
        let top = folder.ancestors().take_while(package).last();
        match top.and_then(|top| Some((top, top.parent()?))) {
            Some((top, around)) => {
                Self { folder: around.to_owned(), extent: Extent::Package(top.to_owned()) }
            }
            None if named.is_dir() => Self::whole(folder),
            None => Self { folder: folder.to_owned(), extent: Extent::Scripts },
        }
    }
}

/// The nearest folder at or above this one that is marked as a project.
fn marked(folder: &Utf8Path) -> Option<&Utf8Path> {
    folder.ancestors().find(|folder| MARKERS.iter().any(|marker| folder.join(marker).exists()))
}

/// Whether a folder of a project holds something that is not of the project.
fn left_out(project: &Utf8Path, folder: &Utf8Path) -> bool {
    let below = folder.strip_prefix(project).unwrap_or(folder);
    below.iter().any(excluded::by_name) || excluded::by_git(folder) && !excluded::by_git(project)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if file.ends_with(".gitignore") { "/out\n" } else { "" }).unwrap();
        }
        (folder, root)
    }

    fn check(files: &[&str], directory: &str, named: &str, folder: &str, extent: &Extent) {
        let (_guard, top) = tree(files);
        let root = ProjectRoot::of(&absolute(&top, directory.into()), &top.join(named));
        assert_eq!(root.folder.strip_prefix(&top).unwrap(), folder, "{named}");
        let extent = match extent {
            Extent::Package(name) => Extent::Package(top.join(name)),
            other => other.clone(),
        };
        assert_eq!(root.extent, extent, "{named}");
    }

    #[test]
    fn a_marker_makes_a_project() {
        let files = ["job/pyproject.toml", "job/pkg/a.py"];
        check(&files, ".", "job/pkg/a.py", "job", &Extent::Folder);
        check(&files, "job", "job/pkg/a.py", "job", &Extent::Folder);
    }

    #[test]
    fn inside_the_working_directory_s_project_it_is_that_project() {
        let files = ["pyproject.toml", "sub/setup.py", "sub/a.py"];
        check(&files, ".", "sub/a.py", "", &Extent::Folder);
        check(&files, "sub", "sub/a.py", "sub", &Extent::Folder);
    }

    #[test]
    fn what_a_project_leaves_out_stands_for_itself() {
        let files = ["pyproject.toml", ".gitignore", "out/lib/a.py", ".venv/lib/timm/__init__.py"];
        check(&files, ".", "out/lib", "out/lib", &Extent::Folder);
        check(&files, ".", ".venv/lib/timm", ".venv/lib", &Extent::Package(".venv/lib/timm".into()));
    }

    #[test]
    fn a_lone_script_has_its_folder_and_no_more() {
        check(&["x/a.py"], ".", "x/a.py", "x", &Extent::Scripts);
        check(&["x/a.py"], ".", "x", "x", &Extent::Folder);
        check(
            &["x/p/__init__.py", "x/p/q/__init__.py", "x/p/q/a.py"],
            ".",
            "x/p/q/a.py",
            "x",
            &Extent::Package("x/p".into()),
        );
    }

    #[test]
    fn a_missing_path_is_named_as_it_was_typed() {
        let (_guard, top) = tree(&["a.py"]);
        let missing = group(&top, &["a.py".into(), "no.py".into()]);
        assert_eq!(missing, Err(MissingPath("no.py".into())));
    }
}
