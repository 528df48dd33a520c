//! Settings of one project: what its `pyproject.toml` says, and what the command line says against it.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::{Selection, UnknownRule};
use caulk_core::{LeakClass, Severity};
use caulk_source::Excludes;

use super::config::{Config, ConfigError};
use crate::cli::{FileArgs, RuleArgs};

/// What is looked for, and where not.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Rules that are on.
    pub(crate) selection: Selection,
    /// Files that are left out.
    pub(crate) excludes: Excludes,
    /// Whether these are left out even where they are named.
    pub(crate) force_exclude: bool,
    /// Findings that are known already.
    pub(crate) baseline: Option<Utf8PathBuf>,
    /// Whether it is all right if a file is not looked at.
    pub(crate) allow_unread: bool,
    per_file: Vec<(Excludes, BTreeSet<LeakClass>)>,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Rule(#[from] UnknownRule),
    #[error("{0}")]
    Pattern(String),
}

impl Settings {
    /// Settings of the project in a folder. A `--select` on the command line stands for itself: the lists of rules in
    /// `pyproject.toml` do not change it.
    pub(crate) fn resolve(
        folder: &Utf8Path,
        rules: &RuleArgs,
        files: &FileArgs,
    ) -> Result<Self, SettingsError> {
        let config = if rules.isolated { Config::default() } else { Config::find(folder)? };
        let at = config.path.as_deref().and_then(Utf8Path::parent).unwrap_or(folder).to_owned();
        let mut settings = Self::of_config(&config, &at)?;
        if !rules.select.is_empty() {
            let mut selection = Selection::none();
            selection.add(&rules.select)?;
            settings.selection = selection.rated_as(&settings.selection);
        }
        settings.selection.add(&rules.extend_select)?;
        settings.selection.remove(&rules.ignore)?;
        if !files.exclude.is_empty() {
            let patterns = [config.exclude, files.exclude.clone()].concat();
            settings.excludes = Excludes::new(&at, &patterns).map_err(SettingsError::Pattern)?;
        }
        settings.force_exclude |= files.force_exclude;
        settings.allow_unread |= files.allow_unread;
        Ok(settings)
    }

    fn of_config(config: &Config, at: &Utf8Path) -> Result<Self, ConfigError> {
        let wrong = |problem: String| ConfigError { path: config.path.clone().unwrap_or_default(), problem };
        let unknown = |error: UnknownRule| wrong(error.to_string());
        let mut selection = match &config.select {
            Some(names) => {
                let mut selection = Selection::none();
                selection.add(names).map_err(unknown)?;
                selection
            }
            None => Selection::standard(),
        };
        selection.add(&config.extend_select).map_err(unknown)?;
        selection.remove(&config.ignore).map_err(unknown)?;
        for (name, severity) in &config.severity {
            selection.rate(name, severity_of(name, severity).map_err(wrong)?).map_err(unknown)?;
        }
        let mut per_file = Vec::new();
        for (pattern, rules) in &config.per_file_ignores {
            let pattern = Excludes::new(at, std::slice::from_ref(pattern)).map_err(wrong)?;
            per_file.push((pattern, Selection::classes(rules).map_err(unknown)?));
        }
        Ok(Self {
            selection,
            excludes: Excludes::new(at, &config.exclude).map_err(wrong)?,
            force_exclude: config.force_exclude,
            baseline: config.baseline.as_ref().map(|file| at.join(file)),
            allow_unread: config.allow_unread,
            per_file,
        })
    }

    /// Rules that are off in one file.
    pub(crate) fn off(&self, file: &Utf8Path) -> BTreeSet<LeakClass> {
        let fits = self.per_file.iter().filter(|(pattern, _)| pattern.matches(file, false));
        fits.flat_map(|(_, classes)| classes.iter().copied()).collect()
    }
}

fn severity_of(rule: &str, name: &str) -> Result<Severity, String> {
    match name {
        "error" => Ok(Severity::Error),
        "warning" => Ok(Severity::Warning),
        "info" => Ok(Severity::Info),
        other => Err(format!("the severity of `{rule}` is `{other}`; write `error`, `warning` or `info`")),
    }
}
