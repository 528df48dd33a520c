//! The result of one check.

use crate::Criterion;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Within its limit.
    Pass,
    /// Beyond it.
    Fail,
    /// The program has nothing that this is about.
    NotApplicable,
    /// What was measured allows both.
    Undecided,
}

impl Grade {
    /// A word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotApplicable => "n/a",
            Self::Undecided => "undecided",
        }
    }
}

/// One check with its figure.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Checked {
    /// What was checked.
    pub name: Criterion,
    /// How it came out.
    pub grade: Grade,
    /// Whether the verification depends on it.
    pub required: bool,
    /// What was measured, for people.
    pub figure: String,
    /// The limit, for people; empty where there is none.
    pub limit: String,
    /// Of a check that is undecided: what would decide it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub decided_by: String,
    /// Of a check that fails: the places, as `file:line  container`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

impl Checked {
    pub(crate) fn of(name: Criterion, grade: Grade, figure: impl Into<String>) -> Self {
        Self {
            name,
            grade,
            required: true,
            figure: figure.into(),
            limit: String::new(),
            decided_by: String::new(),
            places: Vec::new(),
        }
    }

    pub(crate) fn pass(name: Criterion, figure: impl Into<String>) -> Self {
        Self::of(name, Grade::Pass, figure)
    }

    pub(crate) fn fail(name: Criterion, figure: impl Into<String>) -> Self {
        Self::of(name, Grade::Fail, figure)
    }

    pub(crate) fn not_applicable(name: Criterion, reason: impl Into<String>) -> Self {
        Self::of(name, Grade::NotApplicable, reason)
    }

    pub(crate) fn undecided(
        name: Criterion,
        figure: impl Into<String>,
        decided_by: impl Into<String>,
    ) -> Self {
        Self { decided_by: decided_by.into(), ..Self::of(name, Grade::Undecided, figure) }
    }

    pub(crate) fn within(self, limit: impl Into<String>) -> Self {
        Self { limit: limit.into(), ..self }
    }

    pub(crate) fn at(self, places: Vec<String>) -> Self {
        Self { places, ..self }
    }
}
