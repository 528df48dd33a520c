//! Why a line is not reported, or that it is.

use anyhow::Context;
use camino::Utf8Path;
use caulk_core::Diagnostic;
use caulk_python::Analysis;
use caulk_source::absolute;

use super::Project;
use super::spot::Spot;

/// Is the file of a line a part of the project?
pub(crate) fn knows(project: &Project, directory: &Utf8Path, spot: &Spot) -> bool {
    project.documents.contains_key(&project.names.internal(&absolute(directory, &spot.file)))
}

/// What is known of a line, for people.
///
/// # Errors
/// If there is no such line.
pub(crate) fn explain(project: &Project, directory: &Utf8Path, spot: &Spot) -> anyhow::Result<Vec<String>> {
    let file = project.names.internal(&absolute(directory, &spot.file));
    let document = project
        .documents
        .get(&file)
        .with_context(|| format!("`{}` is no Python file that can be read", spot.file))?;
    let line = match (document.cells(), spot.cell) {
        (Some(cells), Some(cell)) => {
            let start = cells.iter().find(|(_, number)| *number == cell).map(|(start, _)| *start);
            start.with_context(|| format!("`{}` has no code cell {cell}", spot.file))? + spot.line - 1
        }
        _ => spot.line,
    };
    let text = document.text.lines().nth(line as usize - 1);
    let text = text.with_context(|| format!("`{}` has no line {}", spot.file, spot.line))?;
    let job = project.job();
    let analysis = Analysis::new(caulk_python::Project::new(job.sources.clone()));
    let reported = caulk_check::outcome(&job, &analysis).diagnostics;
    let here = |diagnostic: &&Diagnostic| {
        let site = &diagnostic.sites[0];
        site.file == file && (site.line..=site.end_line.max(site.line)).contains(&line)
    };
    let every = caulk_rules::check(&analysis, caulk_rules::RULES);
    let mut said = vec![text.trim().to_owned()];
    for diagnostic in every.iter().filter(|diagnostic| !diagnostic.sites.is_empty()).filter(here) {
        let (class, message) = (diagnostic.class, &diagnostic.message);
        said.push(if reported.iter().filter(here).any(|found| found.class == class) {
            format!("is reported as `{class}`: {message}")
        } else if !project.settings.selection.has(class) {
            format!("would be `{class}`, but that rule is off; `--select {class}` turns it on")
        } else if job.off.get(&file).is_some_and(|classes| classes.contains(&class)) {
            format!("would be `{class}`, but per-file-ignores turn that rule off in this file")
        } else {
            format!("would be `{class}`, but a comment silences it")
        });
    }
    said.extend(caulk_rules::silence(&analysis, file.as_str(), line));
    if said.len() == 1 {
        let nothing =
            "nothing that is followed grows here: no container of the project, no tensor with its graph";
        said.push(nothing.to_owned());
    }
    Ok(said)
}
