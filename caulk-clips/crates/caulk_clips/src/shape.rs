//! Clips of a data set: what they depend on, how many workers make them, in how much memory.

use anyhow::bail;
use caulk_clip::augment::Recipe;
use caulk_clip::record::{Head, PIPELINE};
use caulk_core::Bytes;

use crate::cli::SetArgs;

/// What the clips of a data set depend on.
pub(crate) fn head(set: &SetArgs, ffmpeg: String) -> anyhow::Result<Head> {
    let shape = &set.shape;
    let mut operations = set.operations.clone();
    operations.sort_unstable();
    operations.dedup();
    let recipe = Recipe {
        selection: shape.select.clone(),
        frames: shape.count()?,
        snap: shape.snap,
        size: shape.size,
        fit: shape.fit,
        seed: shape.seed,
        operations,
        format: set.format,
    };
    Ok(Head { pipeline: PIPELINE, ffmpeg, recipe })
}

/// Numbers of the clips of each video; 0 is the original.
pub(crate) fn augmentations(set: &SetArgs) -> anyhow::Result<Vec<u32>> {
    if set.no_original && set.augment == 0 {
        bail!("--no-original and no augmented clips leave none\nhint: add --augment 1, or more");
    }
    Ok((u32::from(set.no_original)..=set.augment).collect())
}

/// What each of the workers may take.
pub(crate) fn each(memory: u64, jobs: u64) -> anyhow::Result<u64> {
    let each = memory / jobs;
    if each < LEAST {
        let (whole, least) = (Bytes(memory), Bytes(LEAST));
        if jobs > 1 {
            bail!(
                "{whole} for {jobs} decoders is too little\nhint: each needs {least}; lower --jobs or raise --memory"
            );
        }
        bail!("{whole} is too little for a decoder\nhint: it needs {least}; raise --memory");
    }
    Ok(each)
}

/// Least memory for one worker: itself, and a small video.
const LEAST: u64 = 96 << 20;
/// What a worker is given where nobody says how many there are to be: enough for 4K.
const USUAL: u64 = 400_000_000;

/// Videos decoded at once within so many bytes.
pub(crate) fn jobs(asked: Option<u32>, memory: u64) -> usize {
    let usual = || {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.min((memory / USUAL) as usize).max(1)
    };
    asked.map_or_else(usual, |jobs| jobs as usize)
}

/// Folder for what packets of videos have told, in the user's cache; none where it is not wanted or there is no such folder.
pub(crate) fn cache(unwanted: bool) -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|path| path.starts_with('/'));
    let home = || set("HOME").map(|home| format!("{home}/.cache"));
    let cache = set("XDG_CACHE_HOME").or_else(home).filter(|_| !unwanted)?;
    Some(format!("{cache}/caulk/clips"))
}
