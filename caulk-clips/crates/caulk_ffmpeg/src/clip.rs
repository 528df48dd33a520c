//! All clips of one video: decoded once, varied, written to files that appear whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use caulk_clip::SelectionError;
use caulk_clip::augment::{Format, Recipe};
use caulk_clip::job::{Prepare, Written};
use caulk_clip::npy;
use caulk_clip::picture::Picture;
use caulk_clip::pt;
use caulk_clip::random::Key;
use caulk_clip::record::hex;
use sha2::{Digest, Sha256};

use crate::error::DecodeError;
use crate::scale::Target;
use crate::video::{self, Options};

/// Why a video's clips were not made.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    /// It gives no frames.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The format cannot hold a clip.
    #[error("a clip has more bytes than a file of this format holds")]
    Large,
    /// A clip cannot be written.
    #[error("failed to write `{path}`: {source}")]
    Write {
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
}

/// The clips of one video.
#[derive(Debug)]
pub struct Clips {
    /// As they were asked for.
    pub written: Vec<Written>,
    /// Frames that the video has.
    pub total: u32,
    /// Why everything was decoded, if it was.
    pub sequential: Option<String>,
}

/// Decodes a video once, makes its clips, and writes those that go somewhere.
///
/// # Errors
/// If it gives no frames, or a file cannot be written.
pub fn prepare(job: &Prepare, memory: u64) -> Result<Clips, ClipError> {
    let recipe = &job.recipe;
    let target = Target { size: Some(recipe.size), fit: recipe.fit };
    let of = |augmentation: u32, total: u32| {
        let key = Key::of(&job.name, augmentation, recipe.seed);
        recipe.frames(key, augmentation, total).map(|frames| (key, frames))
    };
    let wanted = |total: u32| -> Result<Vec<u32>, SelectionError> {
        let each = job.clips.iter().map(|(augmentation, _)| of(*augmentation, total));
        Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flat_map(|(_, frames)| frames).collect())
    };
    let cache = job.cache.as_deref();
    let options = Options { target, memory, sequential: false, snap: recipe.snap, cache };
    let decoded = video::decode(&job.path, &options, &wanted)?;
    let mut written = Vec::new();
    for (augmentation, path) in &job.clips {
        let (key, frames) = of(*augmentation, decoded.total).map_err(DecodeError::from)?;
        let mut pictures: Vec<Picture> = frames.iter().map(|frame| decoded.pictures[frame].clone()).collect();
        if *augmentation > 0 {
            recipe.vary(key, &mut pictures);
        }
        let file = File::of(recipe, &pictures).ok_or(ClipError::Large)?;
        if let Some(path) = path {
            file.write(path).map_err(|source| ClipError::Write { path: path.clone(), source })?;
        }
        let (sha256, bytes) = (file.sha256(), file.bytes());
        let taken: Vec<u32> = frames.iter().map(|frame| decoded.taken[frame]).collect();
        let meant = if taken == frames { Vec::new() } else { frames };
        written.push(Written { augmentation: *augmentation, frames: taken, meant, sha256, bytes });
    }
    Ok(Clips { written, total: decoded.total, sequential: decoded.sequential })
}

/// A clip's file in parts, so that its pictures need no copy.
struct File<'a> {
    head: Vec<u8>,
    pictures: &'a [Picture],
    tail: Vec<u8>,
}

impl<'a> File<'a> {
    /// `None` where there are more bytes than the format holds.
    fn of(recipe: &Recipe, pictures: &'a [Picture]) -> Option<Self> {
        let (frames, size) = (pictures.len(), recipe.size);
        let (head, tail) = match recipe.format {
            Format::Npy => (npy::npy_head(frames, size), Vec::new()),
            Format::Safetensors => (npy::safetensors_head(frames, size), Vec::new()),
            Format::Pt => {
                let pixels = pictures.iter().map(|picture| picture.rgb.as_slice());
                pt::wrap(frames, size, pixels).map(|wrapping| (wrapping.head, wrapping.tail))?
            }
        };
        Some(Self { head, pictures, tail })
    }

    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let pictures = self.pictures.iter().map(|picture| picture.rgb.as_slice());
        std::iter::once(self.head.as_slice()).chain(pictures).chain([self.tail.as_slice()])
    }

    fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        self.parts().for_each(|part| hash.update(part));
        hex(&hash.finalize())
    }

    fn bytes(&self) -> u64 {
        self.parts().map(|part| part.len() as u64).sum()
    }

    /// Writes beside the place, has it on the disk, then moves it there.
    fn write(&self, path: &str) -> io::Result<()> {
        let target = Path::new(path);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        // No other process uses the name; `caulk_prepare` removes what is left of those that are killed.
        let partial = format!("{path}.{}.partial", std::process::id());
        self.write_to(&partial).and_then(|()| fs::rename(&partial, target)).inspect_err(|_| {
            // Where the disk is full, the next clip may have the room.
            let _ = fs::remove_file(&partial);
        })
    }

    fn write_to(&self, path: &str) -> io::Result<()> {
        let mut file = fs::File::create(path)?;
        for part in self.parts() {
            file.write_all(part)?;
        }
        file.sync_data()
    }
}
