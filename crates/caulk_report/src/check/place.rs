//! Places as people and programs write them.

use caulk_core::{Diagnostic, Problem, Site, shown_name};

use crate::Cells;

/// `train.py:84:9`, `notes.ipynb:cell 3:4:1`.
pub(super) fn short(file: &str, line: Option<u32>, column: Option<u32>, cells: &Cells) -> String {
    let shown = shown_name(file);
    let Some(line) = line else { return shown.into_owned() };
    let place = cells.place(file, line);
    let cell = place.cell.map_or(String::new(), |cell| format!("cell {cell}:"));
    let column = column.map_or(String::new(), |column| format!(":{column}"));
    format!("{shown}:{cell}{}{column}", place.line)
}

/// The place of a finding.
pub(super) fn of(finding: &Diagnostic, cells: &Cells) -> String {
    finding.sites.first().map_or_else(String::new, |site| of_site(site, cells))
}

pub(super) fn of_site(site: &Site, cells: &Cells) -> String {
    short(&site.file, Some(site.line), Some(site.column), cells)
}

/// `broken.py:3:5: expected ...`
pub(super) fn problem(problem: &Problem, cells: &Cells) -> String {
    let place = short(&problem.file, problem.line, problem.column, cells);
    if place.is_empty() { problem.message.clone() } else { format!("{place}: {}", problem.message) }
}
