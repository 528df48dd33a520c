//! Augmentations of a clip, in integers alone: equal input gives equal bytes on every machine.
//!
//! Each operation draws from numbers of its own ([`Key::draws`] with its name), so that switching one off leaves the others as
//! they are. All frames of a clip are treated alike, but for noise.

mod color;
mod geometry;
mod operation;
mod texture;
mod time;

use serde::{Deserialize, Serialize};

pub use self::operation::Operation;
pub use self::time::shift_frames;
use crate::picture::{Fit, Picture, Size};
use crate::random::Key;
use crate::{Selection, SelectionError};

/// How all clips of a data set are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Which frames.
    pub selection: Selection,
    /// How many.
    pub frames: u32,
    /// How far a frame may be from the one that is meant, where it is cheaper to decode.
    #[serde(default, skip_serializing_if = "is_exact")]
    pub snap: u32,
    /// Size of the pictures.
    pub size: Size,
    /// How to get there.
    pub fit: Fit,
    /// Seed of all that is drawn.
    pub seed: u64,
    /// What augmented clips go through.
    pub operations: Vec<Operation>,
    /// The files' format.
    pub format: Format,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_exact(snap: &u32) -> bool {
    *snap == 0
}

/// Formats of clip files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// numpy's own.
    #[default]
    Npy,
    /// One tensor, `clip`.
    Safetensors,
    /// torch's own: one tensor.
    Pt,
}

impl Format {
    /// Ending of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::Pt => "pt",
        }
    }
}

impl Recipe {
    /// Frames of a clip of a video with `total` frames.
    ///
    /// # Errors
    /// As [`Selection::choose`].
    pub fn frames(&self, key: Key, augmentation: u32, total: u32) -> Result<Vec<u32>, SelectionError> {
        let mut frames = self.selection.choose(self.frames, total, &mut key.draws("frames"))?;
        if augmentation > 0 {
            for operation in [Operation::TemporalJitter, Operation::FrameDrop] {
                if self.operations.contains(&operation) {
                    shift_frames(operation, &mut frames, total, &mut key.draws(operation.name()));
                }
            }
        }
        Ok(frames)
    }

    /// Varies the pictures of a clip.
    pub fn vary(&self, key: Key, pictures: &mut [Picture]) {
        for operation in Operation::ALL.iter().filter(|operation| self.operations.contains(operation)) {
            let mut draws = key.draws(operation.name());
            match operation {
                Operation::TemporalJitter | Operation::FrameDrop => {}
                Operation::Flip => geometry::flip(pictures, &mut draws),
                Operation::Crop => geometry::crop(pictures, &mut draws),
                Operation::Rotation => geometry::rotate(pictures, &mut draws),
                Operation::Color => color::jitter(pictures, &mut draws),
                Operation::Blur => texture::blur(pictures, &mut draws),
                Operation::Noise => texture::noise(pictures, &mut draws),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::record::hex;

    fn recipe(operations: &[Operation]) -> Recipe {
        Recipe {
            selection: Selection::Uniform,
            frames: 4,
            snap: 0,
            size: Size { width: 16, height: 12 },
            fit: Fit::Stretch,
            seed: 0,
            operations: operations.to_vec(),
            format: Format::Npy,
        }
    }

    fn pictures() -> Vec<Picture> {
        let size = Size { width: 16, height: 12 };
        let of = |shift: u32| {
            Picture::of(size, |x, y| [(x * 16) as u8, (y * 20) as u8, ((x * y + shift * 9) % 256) as u8])
        };
        (0..4).map(of).collect()
    }

    fn hash(operations: &[Operation], path: &str) -> String {
        let mut pictures = pictures();
        recipe(operations).vary(Key::of(path, 1, 0), &mut pictures);
        let hash = pictures.iter().fold(Sha256::new(), |hash, picture| hash.chain_update(&picture.rgb));
        hex(&hash.finalize()[..4])
    }

    /// Golden: another value means other clips, which asks for another version of the random numbers or of the pipeline.
    #[test]
    fn each_operation_gives_the_same_bytes_for_ever() {
        let seen: Vec<String> = Operation::ALL
            .iter()
            .map(|operation| format!("{} {}", operation.name(), hash(&[*operation], "a.mp4")))
            .collect();
        assert_eq!(
            seen,
            [
                "temporal-jitter 131f27dc",
                "frame-drop 131f27dc",
                "flip 0a30add9",
                "crop c875cd8b",
                "rotation b9dea370",
                "color f971bf00",
                "blur 66d9d4cd",
                "noise 52dcc2b1",
            ]
        );
    }

    #[test]
    fn all_together_differ_by_video() {
        assert_eq!(hash(&Operation::ALL, "a.mp4"), hash(&Operation::ALL, "a.mp4"));
        assert_ne!(hash(&Operation::ALL, "a.mp4"), hash(&Operation::ALL, "b.mp4"));
    }

    #[test]
    fn switching_one_off_leaves_the_others() {
        let key = Key::of("a.mp4", 1, 0);
        let frames = |operations: &[Operation]| recipe(operations).frames(key, 1, 100);
        let jitter = Operation::TemporalJitter;
        assert_eq!(frames(&[jitter]), frames(&[jitter, Operation::Flip]));
        assert_eq!(frames(&[Operation::Flip]), Ok(vec![0, 33, 66, 99]));
    }

    #[test]
    fn originals_keep_their_frames() {
        assert_eq!(recipe(&Operation::ALL).frames(Key::of("a.mp4", 0, 0), 0, 100), Ok(vec![0, 33, 66, 99]));
    }
}
