//! What `caulk clips` works out before and shows while it prepares clips.

mod bar;
mod estimate;
mod same;

use caulk_clip::augment::Recipe;
use caulk_clip::record::{Head, PIPELINE};

pub(crate) use self::bar::Bar;
pub(crate) use self::estimate::estimate;
pub(crate) use self::same::first_of_each;
use crate::cli::SetArgs;

/// What the clips of a data set depend on.
pub(crate) fn head(set: &SetArgs, ffmpeg: String) -> Head {
    let shape = &set.shape;
    let mut operations = set.operations.clone();
    operations.sort_unstable();
    operations.dedup();
    let recipe = Recipe {
        selection: shape.select.clone(),
        frames: shape.select.count(shape.frames),
        snap: shape.snap,
        size: shape.size,
        fit: shape.fit,
        seed: shape.seed,
        operations,
        format: set.format,
    };
    Head { pipeline: PIPELINE, ffmpeg, recipe }
}

/// Numbers of the clips of each video; 0 is the original.
pub(crate) fn augmentations(set: &SetArgs) -> Vec<u32> {
    (u32::from(set.no_original)..=set.augment).collect()
}

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
