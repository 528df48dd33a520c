//! Variables that change how memory is handled.

use crate::HostFacts;
use crate::check::{Check, CheckState};

/// A variable, the values that do harm (none: any), how bad that is, and what it does.
struct Known {
    name: &'static str,
    values: &'static [&'static str],
    state: CheckState,
    harm: &'static str,
}

/// Sources: docs.pytorch.org/docs/stable/notes/cuda.html (allocator settings, blocking launches), CPython's
/// "Python Development Mode" and `PYTHONMALLOC`, mallopt(3).
const KNOWN: [Known; 7] = [
    Known {
        name: "PYTORCH_NO_CUDA_MEMORY_CACHING",
        values: &["1"],
        state: CheckState::Problem,
        harm: "every GPU tensor asks the driver for its memory: very slow, for debugging alone",
    },
    Known {
        name: "CUDA_LAUNCH_BLOCKING",
        values: &["1"],
        state: CheckState::Advice,
        harm: "every GPU operation waits for its end: slow, for debugging alone",
    },
    Known {
        name: "PYTHONMALLOC",
        values: &["debug", "malloc_debug", "pymalloc_debug"],
        state: CheckState::Advice,
        harm: "every small object takes tens of bytes more",
    },
    Known {
        name: "PYTHONDEVMODE",
        values: &["1"],
        state: CheckState::Advice,
        harm: "debug hooks around every allocation",
    },
    Known {
        name: "PYTHONTRACEMALLOC",
        values: &[],
        state: CheckState::Advice,
        harm: "every allocation is traced: twice the time, and memory of its own",
    },
    Known {
        name: "MALLOC_CHECK_",
        values: &["1", "2", "3"],
        state: CheckState::Advice,
        harm: "malloc checks itself: slow",
    },
    Known {
        name: "MALLOC_PERTURB_",
        values: &[],
        state: CheckState::Advice,
        harm: "malloc fills every block: memory that would only be reserved becomes resident",
    },
];

/// Names of the variables that are looked at.
pub fn variables() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

pub(crate) fn checks(machine: &HostFacts) -> Vec<Check> {
    let harmful = KNOWN.iter().filter_map(|known| {
        let value = machine.variables.get(known.name)?;
        let bad = known.values.is_empty() || known.values.contains(&value.as_str());
        let text = format!("{}={value}: {}", known.name, known.harm);
        bad.then(|| {
            Check::new("environment", known.state, text, format!("`unset {}` unless you need it", known.name))
        })
    });
    let mut checks: Vec<Check> = harmful.collect();
    if checks.is_empty() {
        checks.push(Check::good("environment", "no variable that harms memory or speed is set"));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_were_left_from_debugging() {
        let variables = [
            ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"),
            ("CUDA_LAUNCH_BLOCKING", "0"),
            ("PYTHONMALLOC", "debug"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let found: Vec<_> =
            checks(&HostFacts { variables, ..HostFacts::default() }).iter().map(|c| c.state).collect();
        assert_eq!(found, [CheckState::Problem, CheckState::Advice]);
        assert_eq!(checks(&HostFacts::default())[0].state, CheckState::Good);
    }
}
