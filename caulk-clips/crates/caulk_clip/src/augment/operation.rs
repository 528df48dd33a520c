//! The ways to vary a clip, by name and in their order.

use serde::{Deserialize, Serialize};

/// One way to vary a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Every frame up to a quarter of the distance to its neighbours earlier or later.
    TemporalJitter,
    /// One frame in eight, drawn, replaced by the one before.
    FrameDrop,
    /// Left and right exchanged, every other time.
    Flip,
    /// A part of 70 % to 100 % of the sides, brought back to size.
    Crop,
    /// Up to 15 degrees.
    Rotation,
    /// Brightness, contrast and saturation, each by up to a fifth.
    Color,
    /// Softened, every other time.
    Blur,
    /// Sensor noise with a standard deviation of up to 8 of 255.
    Noise,
}

impl Operation {
    /// All, in the order in which they are applied.
    pub const ALL: [Self; 8] = [
        Self::TemporalJitter,
        Self::FrameDrop,
        Self::Flip,
        Self::Crop,
        Self::Rotation,
        Self::Color,
        Self::Blur,
        Self::Noise,
    ];

    /// As it is written, and what its numbers are drawn for.
    pub fn name(self) -> &'static str {
        match self {
            Self::TemporalJitter => "temporal-jitter",
            Self::FrameDrop => "frame-drop",
            Self::Flip => "flip",
            Self::Crop => "crop",
            Self::Rotation => "rotation",
            Self::Color => "color",
            Self::Blur => "blur",
            Self::Noise => "noise",
        }
    }
}
