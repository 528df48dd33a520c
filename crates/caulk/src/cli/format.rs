//! Formats of data, and of reports.

use clap::ValueEnum;

/// How to print data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// How to print findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// With source lines, reasons and changes
    #[default]
    Text,
    /// One line each
    Concise,
    /// For programs
    Json,
    /// Code scanning services
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// Code quality of GitLab
    Gitlab,
    /// A comment on a change
    Markdown,
}

impl ReportFormat {
    /// The format for figures that are no findings: lines, moments.
    ///
    /// # Errors
    /// If there is no such format of them.
    pub(crate) fn of_figures(self) -> anyhow::Result<Format> {
        match self {
            Self::Text => Ok(Format::Text),
            Self::Json => Ok(Format::Json),
            _ => {
                anyhow::bail!("these figures are no findings\nhint: give `--format text` or `--format json`")
            }
        }
    }
}

impl From<ReportFormat> for caulk_report::Format {
    fn from(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Text => Self::Text,
            ReportFormat::Concise => Self::Concise,
            ReportFormat::Json => Self::Json,
            ReportFormat::Sarif => Self::Sarif,
            ReportFormat::Github => Self::Github,
            ReportFormat::Gitlab => Self::Gitlab,
            ReportFormat::Markdown => Self::Markdown,
        }
    }
}
