//! What logs say: how clips were made, and which are there.

use std::fs::{self, OpenOptions};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_clip::record::{Head, Record};

use crate::error::{StoreError, io_error};
use crate::set::merged;

/// What logs say.
#[derive(Debug, Default)]
pub struct Logged {
    /// How the clips were made.
    pub head: Option<Head>,
    /// Clips that are there.
    pub records: Vec<Record>,
}

impl Logged {
    /// Adds what one log says.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(&mut self, path: &Utf8Path) -> Result<(), StoreError> {
        let text = fs::read_to_string(path).map_err(io_error("read", path))?;
        // A last line without its end is being written, by another shard.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (at, line) in whole.lines().enumerate() {
            let broken = |error: serde_json::Error| StoreError::Broken {
                path: path.to_owned(),
                line: at + 1,
                reason: error.to_string(),
            };
            if at == 0 {
                self.head = Some(serde_json::from_str(line).map_err(broken)?);
            } else {
                self.records.push(serde_json::from_str(line).map_err(broken)?);
            }
        }
        Ok(())
    }
}

/// Reads the logs of all shards in a folder: one record for each video.
///
/// # Errors
/// If one cannot be read.
pub fn read_logs(folder: &Utf8Path) -> Result<Logged, StoreError> {
    let entries = folder.read_dir_utf8().map_err(io_error("list", folder))?;
    let is_log = |path: &Utf8PathBuf| {
        let stem = path.file_stem().unwrap_or_default();
        path.extension() == Some("jsonl") && (stem == "clips" || stem.starts_with("clips-"))
    };
    let mut paths: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.into_path())).filter(is_log).collect();
    paths.sort_unstable();
    let mut all = Logged::default();
    paths.iter().try_for_each(|path| all.read(path))?;
    all.records = merged(all.records);
    Ok(all)
}

/// Takes off what a program that was killed has left of a line.
pub(crate) fn mend(path: &Utf8Path) -> Result<(), StoreError> {
    let Ok(bytes) = fs::read(path) else { return Ok(()) };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole == bytes.len() {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(path).map_err(io_error("open", path))?;
    file.set_len(whole as u64).map_err(io_error("mend", path))
}

/// What differs between two ways of making clips.
pub(crate) fn difference(old: &Head, new: &Head) -> Option<String> {
    let changed = |name: &str, old: &dyn std::fmt::Debug, new: &dyn std::fmt::Debug| {
        let (old, new) = (format!("{old:?}"), format!("{new:?}"));
        (old != new).then(|| format!("{name} {old}, now {new}"))
    };
    let (was, is) = (&old.recipe, &new.recipe);
    let all = [
        changed("pipeline", &old.pipeline, &new.pipeline),
        changed("FFmpeg", &old.ffmpeg, &new.ffmpeg),
        changed("frames", &(&was.selection, was.frames), &(&is.selection, is.frames)),
        changed("snap", &was.snap, &is.snap),
        changed("size", &was.size, &is.size),
        changed("fit", &was.fit, &is.fit),
        changed("seed", &was.seed, &is.seed),
        changed("operations", &was.operations, &is.operations),
        changed("format", &was.format, &is.format),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}
