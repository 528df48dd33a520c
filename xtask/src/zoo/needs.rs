//! How many epochs caulk needs to name a leak: shorter and shorter runs, until one reports too little.

use serde::Serialize;

/// Fewer epochs show no growth.
const LEAST: u32 = 2;

/// What came of the shorter runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Needs {
    /// So many were enough, and fewer were not.
    Epochs(u32),
    /// So many were not.
    MoreThan(u32),
    /// A run failed.
    Failed(String),
}

impl Needs {
    /// Asks of runs of `most` epochs, one less, and so on, whether the leak was `named`.
    pub(crate) fn of(most: u32, named: impl Fn(u32) -> anyhow::Result<bool>) -> Self {
        let mut enough = Self::MoreThan(most);
        for epochs in (LEAST..=most).rev() {
            match named(epochs) {
                Ok(true) => enough = Self::Epochs(epochs),
                Ok(false) => break,
                Err(error) => return Self::Failed(format!("{epochs} epochs: {error:#}")),
            }
        }
        enough
    }

    /// Whether the most that were allowed were enough.
    pub(crate) fn are_met(&self) -> bool {
        matches!(self, Self::Epochs(_))
    }

    /// As the table shows it.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Epochs(epochs) => epochs.to_string(),
            Self::MoreThan(most) => format!("over {most}"),
            Self::Failed(_) => "failed".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(named: &[u32], told: &str) {
        assert_eq!(Needs::of(6, |epochs| Ok(named.contains(&epochs))).told(), told, "{named:?}");
    }

    #[test]
    fn the_shortest_run_before_one_that_says_too_little_counts() {
        check(&[2, 3, 4, 5, 6], "2");
        check(&[4, 5, 6], "4");
        check(&[3, 5, 6], "5");
        check(&[2, 3, 4, 5], "over 6");
    }

    #[test]
    fn a_run_that_fails_is_told() {
        let needs = Needs::of(6, |epochs| if epochs > 4 { Ok(true) } else { anyhow::bail!("no report") });
        assert_eq!(needs, Needs::Failed("4 epochs: no report".into()));
    }
}
