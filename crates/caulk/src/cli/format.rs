//! Formats of data, and of reports.

use clap::ValueEnum;
use clap::builder::PossibleValue;

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

/// How to print what is known of a run: its findings, or its heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunFormat {
    /// The report in a format of findings.
    Report(ReportFormat),
    /// The heap by stack, as a profile.
    Pprof,
}

impl Default for RunFormat {
    fn default() -> Self {
        Self::Report(ReportFormat::default())
    }
}

impl ValueEnum for RunFormat {
    fn value_variants<'a>() -> &'a [Self] {
        use ReportFormat::{Concise, Github, Gitlab, Json, Markdown, Sarif, Text};
        &[
            Self::Report(Text),
            Self::Report(Concise),
            Self::Report(Json),
            Self::Report(Sarif),
            Self::Report(Github),
            Self::Report(Gitlab),
            Self::Report(Markdown),
            Self::Pprof,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Report(format) => format.to_possible_value(),
            Self::Pprof => Some(
                PossibleValue::new("pprof")
                    .help("Heap profile for `go tool pprof` and other viewers: binary"),
            ),
        }
    }
}

impl RunFormat {
    /// The format for figures that are no findings: lines, moments.
    ///
    /// # Errors
    /// If there is no such format of them.
    pub(crate) fn of_figures(self) -> anyhow::Result<Format> {
        match self {
            Self::Report(ReportFormat::Text) => Ok(Format::Text),
            Self::Report(ReportFormat::Json) => Ok(Format::Json),
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
