//! The formats of a report, the same for `run`, `report` and `check`.

use caulk_core::no_command;

use crate::check::{self, CheckReport};
use crate::json::json_without_source;
use crate::listing::listing_without_source;
use crate::page::harmless;
use crate::{Report, TextOptions, json, listing, text};

/// How a report is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One line for each finding.
    Concise,
    /// For programs.
    Json,
    /// For code scanning services.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
    /// Code quality of GitLab.
    Gitlab,
    /// A comment on a change.
    Markdown,
}

/// The report on a run in one of the formats.
pub fn run_in(report: &Report, format: Format, options: &TextOptions) -> String {
    match format {
        Format::Text => text(report, options),
        Format::Json => json(report),
        Format::Concise => {
            let mut places = listing(report);
            // A report applies no fix.
            places.findings.iter_mut().for_each(|finding| finding.fix = None);
            let sentence = harmless(&report.sentence());
            format!("{}{}\n", check::concise(&places, options, true), no_command(&sentence))
        }
        Format::Sarif => check::sarif(&listing(report)),
        Format::Github => check::github(&listing(report)),
        Format::Gitlab => check::gitlab(&listing(report)),
        Format::Markdown => check::markdown(&listing(report), &[report.sentence()]),
    }
}

/// The report on a run without a line of the program's; `None` in a format that shows source.
pub fn run_without_source(report: &Report, format: Format) -> Option<String> {
    match format {
        Format::Json => Some(json_without_source(report)),
        Format::Markdown => Some(check::markdown(&listing_without_source(report), &[report.sentence()])),
        _ => None,
    }
}

/// The report on a check in one of the formats. `quiet`: the findings alone.
pub fn check_in(report: &CheckReport, format: Format, options: &TextOptions, quiet: bool) -> String {
    match format {
        Format::Text => check::text(report, options, quiet),
        Format::Concise => check::concise(report, options, quiet),
        Format::Json => check::json(report),
        Format::Sarif => check::sarif(report),
        Format::Github => check::github(report),
        Format::Gitlab => check::gitlab(report),
        Format::Markdown => check::markdown(report, &check::summary_lines(report)),
    }
}
