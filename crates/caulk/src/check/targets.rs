//! What is to be checked: paths, standard input, unsaved buffers of an editor.

use camino::{Utf8Path, Utf8PathBuf};
use caulk_source::{Extent, ProjectPaths, ProjectRoot, absolute};

use super::{Buffers, Project, Settings};
use crate::cli::{FileArgs, RuleArgs};

/// Name of standard input where it has none.
pub(crate) const STDIN: &str = "<stdin>";

/// The projects that are to be looked at, each with the files that are to be reported on.
///
/// # Errors
/// If a path is not there, or settings cannot be used.
pub(crate) fn targets(
    directory: &Utf8Path,
    paths: &[Utf8PathBuf],
    rules: &RuleArgs,
    files: &FileArgs,
    buffers: &Buffers,
) -> anyhow::Result<Vec<Project>> {
    let mut groups = caulk_source::group(directory, paths)?;
    for path in buffers.keys().filter(|path| !path.exists()) {
        groups.push(of_buffer(directory, path));
    }
    let mut projects = Vec::new();
    for group in groups {
        let settings = Settings::resolve(&group.root.folder, rules, files)?;
        projects.push(Project::load(directory, &group, settings, buffers));
    }
    Ok(projects)
}

/// The project of a file that is not on disk: its folder decides.
fn of_buffer(directory: &Utf8Path, path: &Utf8Path) -> ProjectPaths {
    let folder = absolute(directory, path.parent().unwrap_or(directory));
    let root = if path.file_name() == Some(STDIN) {
        // Nothing is known of it, so nothing around it is looked at.
        ProjectRoot { folder, extent: Extent::Nothing }
    } else {
        match ProjectRoot::of(directory, &folder) {
            ProjectRoot { folder: top, extent: Extent::Folder } if top == folder => {
                ProjectRoot { folder, extent: Extent::Scripts }
            }
            root => root,
        }
    };
    ProjectPaths { root, named: vec![path.to_owned()] }
}
