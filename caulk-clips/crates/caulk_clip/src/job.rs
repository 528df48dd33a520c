//! What a worker is asked, and what it answers: one line of JSON each way.

use serde::{Deserialize, Serialize};

use crate::Selection;
use crate::augment::Recipe;
use crate::picture::{Fit, Size};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Frames of one video, as bytes behind the answer.
    Decode(Decode),
    /// All clips of one video, as files.
    Prepare(Prepare),
}

/// Frames of one video.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decode {
    /// The file.
    pub path: String,
    /// What the video is called, where the file is but a copy. Random numbers depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which frames.
    pub selection: Selection,
    /// How many, where the selection does not say.
    pub frames: u32,
    /// How far a frame may be from the one that is asked for, where it is cheaper to decode.
    #[serde(default)]
    pub snap: u32,
    /// Size of the pictures; the video's own where there is none.
    pub size: Option<Size>,
    /// How to get there.
    #[serde(default)]
    pub fit: Fit,
    /// Seed of what is drawn.
    #[serde(default)]
    pub seed: u64,
    /// Decode everything in order.
    #[serde(default)]
    pub sequential: bool,
    /// Folder for what packets of videos have told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
}

/// All clips of one video.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// The file.
    pub path: String,
    /// The name of the video in the manifest, which random numbers depend on.
    pub name: String,
    /// How clips are made.
    pub recipe: Recipe,
    /// Where each clip goes, by augmentation; 0 is the original. One that goes nowhere is hashed and not written.
    pub clips: Vec<(u32, Option<String>)>,
    /// Folder for what packets of videos have told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
}

/// Pictures behind an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pictures {
    /// Numbers of the frames, in the order asked.
    pub frames: Vec<u32>,
    /// Frames that the video has.
    pub total: u32,
    /// Their size.
    pub size: Size,
    /// Bytes that follow.
    pub bytes: u64,
}

/// A clip that has been made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// 0 is the original.
    pub augmentation: u32,
    /// Numbers of its frames.
    pub frames: Vec<u32>,
    /// Numbers of those that were meant, where cheaper ones nearby were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meant: Vec<u32>,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What has been made, or why nothing.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Why everything was decoded in order, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<String>,
    /// What the decoder said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Of [`Request::Decode`].
    Pictures(Pictures),
    /// Of [`Request::Prepare`].
    Clips {
        /// The clips.
        clips: Vec<Written>,
        /// Frames that the video has.
        total: u32,
    },
    /// Why there is nothing.
    Failed(String),
    /// Why clips that were made are not where they were to go: no other will be.
    Unwritten(String),
}
