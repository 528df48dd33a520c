//! Whether runs can be compared at all.

use caulk_core::VerdictUnit;

use crate::RunFacts;

/// Why they cannot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// One side is empty.
    #[error("there is no run on one side")]
    Empty,
    /// Not the same program.
    #[error("`{a}` runs `{a_program}`, and `{b}` runs `{b_program}`")]
    Program {
        /// A run,
        a: String,
        /// ... what it runs,
        a_program: String,
        /// ... another run,
        b: String,
        /// ... and what that runs.
        b_program: String,
    },
    /// Recorded by other versions, which may measure otherwise.
    #[error(
        "`{a}` was recorded by caulk {a_version}, and `{b}` by caulk {b_version}\nhint: record both with one version"
    )]
    Version {
        /// A run,
        a: String,
        /// ... its version,
        a_version: String,
        /// ... another run,
        b: String,
        /// ... and its version.
        b_version: String,
    },
    /// Growth per other units.
    #[error(
        "`{a}` is judged per {a_unit}, and `{b}` per {b_unit}\nhint: give both runs the same `--boundary`"
    )]
    Unit {
        /// A run,
        a: String,
        /// ... its unit,
        a_unit: &'static str,
        /// ... another run,
        b: String,
        /// ... and its unit.
        b_unit: &'static str,
    },
}

/// The unit that all runs share, if any of them has one.
pub(crate) fn check(a: &[RunFacts], b: &[RunFacts]) -> Result<Option<VerdictUnit>, Incomparable> {
    let (Some(first), false) = (a.first(), b.is_empty()) else { return Err(Incomparable::Empty) };
    let mut unit: Option<(VerdictUnit, &RunFacts)> = None;
    for run in a.iter().chain(b) {
        let (a, b) = (first.name.clone(), run.name.clone());
        if run.program != first.program {
            let (a_program, b_program) = (first.program.clone(), run.program.clone());
            return Err(Incomparable::Program { a, a_program, b, b_program });
        }
        if run.version != first.version {
            let (a_version, b_version) = (first.version.clone(), run.version.clone());
            return Err(Incomparable::Version { a, a_version, b, b_version });
        }
        let Some((_, _, own, _)) = run.memory else { continue };
        match unit {
            Some((known, other)) if known != own => {
                let (a_unit, b_unit) = (unit_name(known), unit_name(own));
                return Err(Incomparable::Unit { a: other.name.clone(), a_unit, b, b_unit });
            }
            Some(_) => {}
            None => unit = Some((own, run)),
        }
    }
    Ok(unit.map(|(unit, _)| unit))
}

pub(crate) fn unit_name(unit: VerdictUnit) -> &'static str {
    match unit {
        VerdictUnit::Epoch => "epoch",
        VerdictUnit::Steps => "step",
        VerdictUnit::Seconds => "second",
    }
}
