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
        let after = source.edited(name, texts)?.whole?;
        let before = source.document.with(&source.document.text)?;
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
    if let Some(path) = changed(shadow, texts) {
        bail!(
            "`{path}` was changed during the runs; nothing is applied\nhint: apply the patch yourself, or heal again"
        );
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

/// A file with edits that is not what it was before the runs.
pub(crate) fn changed(shadow: &Shadow, texts: &Texts) -> Option<Utf8PathBuf> {
    let edited = shadow.sources.iter().filter(|(name, source)| source.edited(name, texts).is_some());
    let mut paths = edited.map(|(_, source)| (shadow.root.join(&source.path), &source.bytes));
    paths.find(|(path, bytes)| std::fs::read(path).ok().as_ref() != Some(*bytes)).map(|(path, _)| path)
}

fn changes<'a>(shadow: &'a Shadow, texts: &Texts) -> anyhow::Result<Vec<Change<'a>>> {
    let mut changes = Vec::new();
    for (name, source) in &shadow.sources {
        let Some(edited) = source.edited(name, texts) else { continue };
        let Some(new) = edited.bytes else {
            bail!("the edits cannot be written in the encoding of `{}`", source.path)
        };
        changes.push(Change { source, path: shadow.root.join(&source.path), new });
    }
    Ok(changes)
}
