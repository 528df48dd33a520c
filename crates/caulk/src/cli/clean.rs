//! `caulk clean`: its arguments.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args, ValueHint};

use super::format::Format;

const HELP: &str = "\
Nothing is removed without --apply.

Examples:
  caulk clean                        what may go from runs/ and logs/, each with the bytes that frees
  caulk clean --apply                remove it
  caulk clean --models --older-than 30d --apply
  caulk clean outputs wandb          other folders of the project

What stays: files that git tracks, archives, videos and tables (csv, parquet, npy, h5, ...), repositories inside, what \
was written within the last hour, and what the settings keep. Links are not followed.

  [tool.caulk.clean] in pyproject.toml:
    folders = [\"runs\", \"logs\", \"outputs\"]
    models = [\"models\", \"checkpoints\"]
    keep = [\"runs/best/**\"]

Exit code: 0, also where there is nothing to remove; 1 where something could not be removed; 125 failed.";

/// Remove old output of runs; shows what would go unless told to
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CleanArgs {
    /// Folders of the project to clean [default: those of the settings, else runs and logs]
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folders: Vec<Utf8PathBuf>,

    /// The project's root [default: the nearest folder with pyproject.toml or .git]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<Utf8PathBuf>,

    /// Clean the folders with models too
    #[arg(long)]
    pub(crate) models: bool,

    /// Only what was written longer ago than this: 30m, 12h, 7d
    #[arg(long, value_name = "AGE", default_value = "1h", value_parser = age)]
    pub(crate) older_than: Duration,

    /// Remove it
    #[arg(long)]
    pub(crate) apply: bool,

    /// Format of the answer
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// `90s`, `30m`, `12h`, `7d`.
fn age(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400), ('w', 7 * 86_400)];
    let wrong = || format!("`{text}` is no age; write for example 30m, 12h or 7d");
    let unit = text.chars().next_back().and_then(|last| units.iter().find(|(name, _)| *name == last));
    let (name, seconds) = unit.ok_or_else(wrong)?;
    let number: u32 = text.trim_end_matches(*name).parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("30m", Some(1800)),
            ("7d", Some(604_800)),
            ("0h", Some(0)),
            ("7", None),
            ("d", None),
            ("-1d", None),
        ] {
            assert_eq!(age(text).ok(), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
