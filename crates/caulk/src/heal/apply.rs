//! Patches, and writing the edits that were proven into the project's files.

use anyhow::{Context, bail};
use camino::Utf8PathBuf;
use caulk_check::Texts;

use super::shadow::{Shadow, Source};
use crate::check::{patch, rewrite};

/// A file with edits.
struct Change<'a> {
    source: &'a Source,
    path: Utf8PathBuf,
    new: Vec<u8>,
}

/// The edits as a patch, from the project's folder.
pub(crate) fn diff(shadow: &Shadow, texts: &Texts) -> String {
    let changed = shadow.sources.iter().filter_map(|(name, source)| {
        let text = texts.get(name).filter(|text| **text != source.document.text)?;
        let (before, after) = (source.document.with(&source.document.text)?, source.document.with(text)?);
        Some(patch::new(source.path.as_str(), &before, &after).text)
    });
    changed.collect()
}

/// Writes the edits into the project, all or none.
///
/// # Errors
/// If a file was changed meanwhile, lies behind a link, or cannot be written.
pub(crate) fn apply(shadow: &Shadow, texts: &Texts) -> anyhow::Result<()> {
    let changes = changes(shadow, texts)?;
    for change in &changes {
        let now = std::fs::read(&change.path).with_context(|| format!("failed to read `{}`", change.path))?;
        if now != change.source.bytes {
            bail!(
                "`{}` was changed during the runs; nothing is applied\nhint: apply the patch yourself, or heal again",
                change.path
            );
        }
    }
    for (at, change) in changes.iter().enumerate() {
        if let Err(error) = rewrite::rewrite(&change.path, &change.source.bytes, &change.new) {
            for earlier in &changes[..at] {
                // What cannot be put back is in the patch, which undoes it.
                let _ = rewrite::rewrite(&earlier.path, &earlier.new, &earlier.source.bytes);
            }
            return Err(error)
                .with_context(|| format!("failed to change `{}`; nothing is applied", change.path));
        }
    }
    Ok(())
}

fn changes<'a>(shadow: &'a Shadow, texts: &Texts) -> anyhow::Result<Vec<Change<'a>>> {
    let mut changes = Vec::new();
    for (name, source) in &shadow.sources {
        let Some(text) = texts.get(name).filter(|text| **text != source.document.text) else { continue };
        let new = source.document.with(text).and_then(|whole| source.document.encode(&whole));
        let Some(new) = new else {
            bail!("the edits cannot be written in the encoding of `{}`", source.path)
        };
        changes.push(Change { source, path: shadow.root.join(&source.path), new });
    }
    Ok(changes)
}
