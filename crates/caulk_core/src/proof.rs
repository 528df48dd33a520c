//! What a diagnostic of source rests on.

use serde::{Deserialize, Serialize};

use crate::Severity;

/// How certain one part of a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Nothing resolved shows it.
    Assumed,
    /// It holds on every resolved path, and at least one path is resolved.
    Likely,
    /// Source shows it.
    Proven,
}

impl Certainty {
    /// `proven`, `likely`, `assumed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Assumed => "assumed",
            Self::Likely => "likely",
            Self::Proven => "proven",
        }
    }

    /// Proven if something holds, else another certainty.
    #[must_use]
    pub const fn proven_if(holds: bool, otherwise: Self) -> Self {
        if holds { Self::Proven } else { otherwise }
    }
}

/// The four parts of a leak in source, each with its certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// The place runs again and again, many times.
    pub repeats: Certainty,
    /// What is stored is a tensor, carries a graph or is large.
    pub kind: Certainty,
    /// What stores it outlives the repetition.
    pub outlives: Certainty,
    /// No path releases it.
    pub unreleased: Certainty,
}

impl Proof {
    /// All four parts proven.
    pub const FULL: Self = Self {
        repeats: Certainty::Proven,
        kind: Certainty::Proven,
        outlives: Certainty::Proven,
        unreleased: Certainty::Proven,
    };

    /// The parts in order.
    pub const fn parts(self) -> [Certainty; 4] {
        [self.repeats, self.kind, self.outlives, self.unreleased]
    }

    /// The highest severity that it supports: an error needs all four parts proven, a warning three of them and the
    /// fourth likely.
    pub fn severity(self) -> Severity {
        let parts = self.parts();
        let proven = parts.iter().filter(|part| **part == Certainty::Proven).count();
        match proven {
            4 => Severity::Error,
            3 if !parts.contains(&Certainty::Assumed) => Severity::Warning,
            _ => Severity::Info,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_from_the_weakest_parts() {
        let likely = Proof { repeats: Certainty::Likely, ..Proof::FULL };
        let severities = [
            (Proof::FULL, Severity::Error),
            (likely, Severity::Warning),
            (Proof { kind: Certainty::Likely, ..likely }, Severity::Info),
            (Proof { unreleased: Certainty::Assumed, ..Proof::FULL }, Severity::Info),
        ];
        for (proof, severity) in severities {
            assert_eq!(proof.severity(), severity, "{proof:?}");
        }
    }
}
