//! The checklist: which criteria count, and their limits. TOML.

use std::fmt::Write as _;

use caulk_core::Bytes;
use serde::Deserialize;

use crate::Criterion;

/// Share of a device that may be taken unless the checklist has another.
const GPU_SHARE: f64 = 0.95;

/// One line of a checklist.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChecklistItem {
    /// What is checked.
    pub name: Criterion,
    /// Bytes, or of [`Criterion::GpuNotFilling`] a share of the device.
    pub limit: Option<f64>,
    /// The verification fails with it, and is undecided with it.
    pub required: bool,
}

/// What is checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Checklist {
    /// In the order in which results are shown.
    pub items: Vec<ChecklistItem>,
}

/// Why a text is no checklist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChecklistError {
    /// No TOML, an unknown key or an unknown name.
    #[error("{0}\nhint: `caulk verify --print-checklist` prints a valid one")]
    Text(String),
    /// A limit for a criterion that has none.
    #[error("check `{0}` has no limit\nhint: leave out `limit`")]
    NoLimit(Criterion),
    /// A limit that cannot be read.
    #[error("limit `{limit}` of check `{name}` cannot be read\nhint: write {unit}")]
    Limit {
        /// The check.
        name: Criterion,
        /// As it is written.
        limit: String,
        /// How it should be.
        unit: &'static str,
    },
    /// Two lines for one criterion.
    #[error("check `{0}` is listed twice")]
    Twice(Criterion),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    check: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: Criterion,
    limit: Option<String>,
    #[serde(default = "yes")]
    required: bool,
}

const fn yes() -> bool {
    true
}

impl Default for Checklist {
    fn default() -> Self {
        let item = |name| ChecklistItem { name, limit: None, required: true };
        Self { items: Criterion::ALL.map(item).to_vec() }
    }
}

impl Checklist {
    /// Reads `[[check]]` tables with `name`, `limit` and `required`. The way a command ended always counts.
    ///
    /// # Errors
    /// [`ChecklistError`] with the name that is wrong.
    pub fn read(text: &str) -> Result<Self, ChecklistError> {
        let document: Document = toml::from_str(text)
            .map_err(|error| ChecklistError::Text(error.to_string().trim().to_owned()))?;
        let mut items: Vec<ChecklistItem> = Vec::new();
        for line in document.check {
            if items.iter().any(|item| item.name == line.name) {
                return Err(ChecklistError::Twice(line.name));
            }
            let limit = line.limit.map(|limit| read_limit(line.name, limit)).transpose()?;
            items.push(ChecklistItem { name: line.name, limit, required: line.required });
        }
        if !items.iter().any(|item| item.name == Criterion::Ended) {
            items.insert(0, ChecklistItem { name: Criterion::Ended, limit: None, required: true });
        }
        Ok(Self { items })
    }

    /// The usual checklist as TOML, with what each line means.
    pub fn usual() -> String {
        let mut text = String::from(
            "# Checklist for `caulk verify --checklist FILE`. Remove a table to leave out a check. A check that is not\n\
             # required is shown and does not change the exit code.\n",
        );
        for name in Criterion::ALL {
            let limit = name.limit_unit().map_or_else(String::new, |unit| format!("# limit: {unit}\n"));
            // Writing to a `String` does not fail.
            let _ = write!(
                text,
                "\n# {}.\n[[check]]\nname = \"{name}\"\nrequired = true\n{limit}",
                name.summary()
            );
        }
        text
    }

    /// The limit in bytes of a criterion.
    pub(crate) fn bytes(&self, name: Criterion) -> Option<u64> {
        self.limit(name).map(|bytes| bytes as u64)
    }

    /// The share of a device.
    pub(crate) fn gpu_share(&self) -> f64 {
        self.limit(Criterion::GpuNotFilling).unwrap_or(GPU_SHARE)
    }

    fn limit(&self, name: Criterion) -> Option<f64> {
        self.items.iter().find(|item| item.name == name)?.limit
    }
}

fn read_limit(name: Criterion, limit: String) -> Result<f64, ChecklistError> {
    let unit = name.limit_unit().ok_or(ChecklistError::NoLimit(name))?;
    let read = if name == Criterion::GpuNotFilling {
        let percent = limit.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0)
    } else {
        let size = limit.split('/').next().unwrap_or_default();
        size.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64)
    };
    read.ok_or(ChecklistError::Limit { name, limit, unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, limit, required.
    type Item = (Criterion, Option<f64>, bool);

    fn check(text: &str, expected: &Result<&[Item], &str>) {
        let read = Checklist::read(text);
        match (read, expected) {
            (Ok(list), Ok(expected)) => {
                let items: Vec<_> =
                    list.items.iter().map(|item| (item.name, item.limit, item.required)).collect();
                assert_eq!(&items, expected, "{text}");
            }
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (read, _) => panic!("{text}: {read:?}"),
        }
    }

    #[test]
    fn the_printed_checklist_is_the_usual_one() {
        assert_eq!(Checklist::read(&Checklist::usual()), Ok(Checklist::default()));
    }

    #[test]
    fn limits_have_units() {
        let text = "[[check]]\nname = 'stable'\nlimit = '1MB/epoch'\n[[check]]\nname = 'gpu-not-filling'\nlimit = '90%'\nrequired = false";
        let ended = (Criterion::Ended, None, true);
        let stable = (Criterion::Stable, Some(1_048_576.0), true);
        check(text, &Ok(&[ended, stable, (Criterion::GpuNotFilling, Some(0.9), false)]));
        check("", &Ok(&[ended]));
    }

    #[test]
    fn mistakes_are_named() {
        check("[[check]]\nname = 'stabel'", &Err("stabel"));
        check("[[check]]\nname = 'stable'\nlimits = '1MB'", &Err("limits"));
        check("[[check]]\nname = 'stable'\nlimit = 'much'", &Err("limit `much` of check `stable`"));
        check("[[check]]\nname = 'no-oom'\nlimit = '1MB'", &Err("has no limit"));
        check("[[check]]\nname = 'no-oom'\n[[check]]\nname = 'no-oom'", &Err("twice"));
        check("not toml", &Err("--print-checklist"));
    }
}
