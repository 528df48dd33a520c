//! `[tool.caulk]` in `pyproject.toml`.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::nearest;
use caulk_core::{shown_name, written_out};
use caulk_source::{PlainError, read_plain};
use toml::{Table, Value};

/// Name of the file.
const FILE: &str = "pyproject.toml";

/// Longest file that is read, in bytes.
const LONGEST: u64 = 256 << 10;

/// Everything that can be set.
const KEYS: [&str; 9] = [
    "allow-unread",
    "baseline",
    "exclude",
    "extend-select",
    "force-exclude",
    "ignore",
    "per-file-ignores",
    "select",
    "severity",
];

/// What a project says; nothing is resolved yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// The file; `None` where there is none.
    pub(super) path: Option<Utf8PathBuf>,
    pub(super) select: Option<Vec<String>>,
    pub(super) extend_select: Vec<String>,
    pub(super) ignore: Vec<String>,
    pub(super) exclude: Vec<String>,
    pub(super) force_exclude: bool,
    pub(super) per_file_ignores: BTreeMap<String, Vec<String>>,
    pub(super) severity: BTreeMap<String, String>,
    pub(super) baseline: Option<String>,
    pub(super) allow_unread: bool,
}

/// Why a `pyproject.toml` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {problem}", shown_name(path.as_str()))]
pub(crate) struct ConfigError {
    pub(super) path: Utf8PathBuf,
    pub(super) problem: String,
}

impl Config {
    /// The settings of the nearest `pyproject.toml` with a `[tool.caulk]` at or above a folder.
    pub(super) fn find(folder: &Utf8Path) -> Result<Self, ConfigError> {
        for folder in folder.ancestors() {
            let path = folder.join(FILE);
            let failed = |problem: String| ConfigError { path: path.clone(), problem };
            let bytes = match read_plain(&path, LONGEST) {
                Ok(bytes) => bytes,
                // It is not there, or not for this user.
                Err(PlainError::Io(_)) => continue,
                Err(error) if error.is_absent() => continue,
                Err(error) => return Err(failed(format!("{error}\nhint: `--isolated` does without it"))),
            };
            // Whether it is text is for others to say, where caulk has no settings in it.
            let found = Self::read(&String::from_utf8_lossy(&bytes)).map_err(failed)?;
            if let Some(config) = found {
                return Ok(Self { path: Some(path), ..config });
            }
        }
        Ok(Self::default())
    }

    /// `None` where the file says nothing to caulk.
    fn read(text: &str) -> Result<Option<Self>, String> {
        let document: Table = match text.parse() {
            Ok(document) => document,
            // Broken parts that are not ours are for others to report.
            Err(_) if !text.contains("tool.caulk") => return Ok(None),
            // It quotes the line, which may hold anything.
            Err(error) => {
                let text = error.to_string();
                return Err(text.trim_end().lines().map(written_out).collect::<Vec<_>>().join("\n"));
            }
        };
        let own = document.get("tool").and_then(|tool| tool.get("caulk"));
        own.map(|own| Self::from_table(own.as_table().ok_or("`tool.caulk` is not a table")?)).transpose()
    }

    fn from_table(table: &Table) -> Result<Self, String> {
        let mut config = Self::default();
        for (key, value) in table {
            match key.as_str() {
                "select" => config.select = Some(strings(key, value)?),
                "extend-select" => config.extend_select = strings(key, value)?,
                "ignore" => config.ignore = strings(key, value)?,
                "exclude" => config.exclude = strings(key, value)?,
                "force-exclude" => config.force_exclude = boolean(key, value)?,
                "allow-unread" => config.allow_unread = boolean(key, value)?,
                "per-file-ignores" => {
                    let table = value.as_table().ok_or_else(|| wrong(key, "a table of patterns"))?;
                    for (pattern, rules) in table {
                        config.per_file_ignores.insert(pattern.clone(), strings(pattern, rules)?);
                    }
                }
                "severity" => {
                    let table = value.as_table().ok_or_else(|| wrong(key, "a table of rules"))?;
                    for (rule, severity) in table {
                        config.severity.insert(rule.clone(), string(rule, severity)?);
                    }
                }
                "baseline" => config.baseline = Some(string(key, value)?),
                // Another command's.
                "clean" => {}
                unknown => return Err(unknown_key(unknown)),
            }
        }
        Ok(config)
    }
}

fn unknown_key(key: &str) -> String {
    let meant = match nearest(key, KEYS) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => format!("\nhint: there are {}", KEYS.map(|key| format!("`{key}`")).join(", ")),
    };
    format!("`[tool.caulk]` has no setting `{key}`{meant}")
}

fn wrong(key: &str, expected: &str) -> String {
    format!("`{key}` in `[tool.caulk]` must be {expected}")
}

fn boolean(key: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| wrong(key, "true or false"))
}

fn string(key: &str, value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(key, "a string"))
}

fn strings(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or_else(|| wrong(key, "a list of strings"))?;
    list.iter()
        .map(|entry| entry.as_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or_else(|| wrong(key, "a list of strings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Result<Option<Config>, &str>) {
        let found = Config::read(text);
        match expected {
            Ok(config) => assert_eq!(found.as_ref(), Ok(config), "{text}"),
            Err(part) => {
                assert!(found.as_ref().is_err_and(|error| error.contains(part)), "{text}: {found:?}");
            }
        }
    }

    #[test]
    fn every_setting_is_read() {
        let text = r#"
            [tool.caulk]
            select = ["graph"]
            extend-select = ["peak"]
            ignore = ["cached-method"]
            exclude = ["vendor"]
            force-exclude = true
            allow-unread = true
            baseline = "known.json"
            severity = { reference-cycle = "info" }
            [tool.caulk.per-file-ignores]
            "tests/*" = ["all"]
        "#;
        let one = |name: &str| vec![name.to_owned()];
        let config = Config {
            path: None,
            select: Some(one("graph")),
            extend_select: one("peak"),
            ignore: one("cached-method"),
            exclude: one("vendor"),
            force_exclude: true,
            per_file_ignores: [("tests/*".to_owned(), one("all"))].into(),
            severity: [("reference-cycle".to_owned(), "info".to_owned())].into(),
            baseline: Some("known.json".to_owned()),
            allow_unread: true,
        };
        check(text, &Ok(Some(config)));
    }

    #[test]
    fn other_files_say_nothing() {
        check("[project]\nname = 'x'\n", &Ok(None));
        check("[broken", &Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        check("[tool.caulk]\nselct = []\n", &Err("did you mean `select`?"));
        check("[tool.caulk]\nfoo = 1\n", &Err("there are `allow-unread`"));
        check("[tool.caulk]\nselect = 'graph'\n", &Err("must be a list of strings"));
        check("[tool.caulk\n", &Err("TOML parse error"));
    }
}
