//! A model and how it is fed, as a file or a preset says it.

mod flow;
mod keep;
mod layer;
mod narrow;
mod stages;
mod walk;

use serde::Deserialize;

pub(crate) use keep::{Cost, Mode};
pub(crate) use layer::Layer;

/// A model with the settings that people start from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    #[serde(default)]
    pub summary: String,
    /// Where the architecture is described.
    #[serde(default)]
    pub source: String,
    /// One sample.
    pub input: Input,
    /// How it is trained before anything is changed.
    #[serde(default)]
    pub training: Training,
    /// The video that each sample is cut from, where there is one.
    pub video: Option<Video>,
    /// The layers, from the input to the loss.
    pub(crate) layers: Vec<Layer>,
}

/// One sample: an image or a clip by channels, size and frames, or anything else by its shape.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Input {
    /// Channels of an image or a clip.
    pub channels: Option<u64>,
    /// Frames of a clip.
    pub frames: Option<u64>,
    /// Height and width, in pixels.
    pub size: Option<u64>,
    /// A shape where the three above do not say it: `[features]`, `[tokens]`, `[tokens, features]`.
    pub shape: Option<Vec<u64>>,
}

/// How a model is trained.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Training {
    /// Samples of one forward pass.
    #[serde(default = "Training::batch")]
    pub batch: u64,
    /// Forward passes of one optimizer step.
    #[serde(default = "Training::accumulation")]
    pub accumulation: u64,
    /// Workers of the data loader.
    #[serde(default = "Training::workers")]
    pub workers: u64,
}

impl Training {
    fn batch() -> u64 {
        16
    }

    fn accumulation() -> u64 {
        1
    }

    fn workers() -> u64 {
        4
    }
}

impl Default for Training {
    fn default() -> Self {
        Self { batch: Self::batch(), accumulation: Self::accumulation(), workers: Self::workers() }
    }
}

/// A video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// In pixels.
    pub width: u64,
    /// In pixels.
    pub height: u64,
    /// Number of its frames.
    pub frames: u64,
}

impl Video {
    /// Bytes of so many decoded frames, three to a pixel.
    pub(crate) fn decoded(self, frames: u64) -> f64 {
        3.0 * self.width as f64 * self.height as f64 * frames as f64
    }
}

/// Why a model cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The file is not of this form.
    #[error("{0}")]
    Syntax(String),
    /// Input without a shape.
    #[error("[input] needs `shape`, or `channels` and `size`")]
    Input,
    /// A size of nothing, or one beyond anything.
    #[error("[input] has a size of {0}; sizes are from 1 to 1000000")]
    Size(u64),
    /// A layer cannot take what comes to it.
    #[error("`{layer}` needs {wanted}, and gets {shape:?}")]
    Shape {
        /// Its kind.
        layer: &'static str,
        /// What it takes.
        wanted: &'static str,
        /// What it gets.
        shape: Vec<u64>,
    },
    /// Sizes for another number of dimensions.
    #[error("`{layer}` names {given} sizes for {rank} dimensions")]
    Dimensions {
        /// Its kind.
        layer: &'static str,
        /// Sizes named.
        given: usize,
        /// Dimensions that there are.
        rank: usize,
    },
    /// A window that does not fit.
    #[error("`{layer}` has windows of {kernel} every {stride}, over {size} positions")]
    Window {
        /// Its kind.
        layer: &'static str,
        /// Size of the window.
        kernel: u64,
        /// Distance between windows.
        stride: u64,
        /// Positions with their padding.
        size: u64,
    },
    /// Channels that cannot be divided.
    #[error("`conv` cannot divide {channels} channels and {out} of its own into {groups} groups")]
    Groups {
        /// Channels that come in.
        channels: u64,
        /// Channels that come out.
        out: u64,
        /// Groups.
        groups: u64,
    },
    /// Features that cannot be divided.
    #[error("`attention` cannot divide {features} features into {heads} heads")]
    Heads {
        /// Features that come in.
        features: u64,
        /// Heads.
        heads: u64,
    },
    /// Two things that cannot be added.
    #[error("`residual` adds {branch:?} to {shortcut:?}: a `shortcut` must give the same shape")]
    Sum {
        /// Shape of the branch.
        branch: Vec<u64>,
        /// Shape of the other.
        shortcut: Vec<u64>,
    },
    /// Nothing is left.
    #[error("nothing is left after layer {number}")]
    Nothing {
        /// Which one, counted from 1 with those in groups.
        number: u64,
    },
    /// Beyond anything that is trained.
    #[error("layer {number} is larger than anything that can be trained")]
    Huge {
        /// As above.
        number: u64,
    },
    /// Too many layers.
    #[error("more than {most} layers")]
    Endless {
        /// Allowed.
        most: u64,
    },
}

impl Model {
    /// Reads a model from the text of a TOML file.
    ///
    /// # Errors
    /// [`ModelError`] where it is not of that form.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        toml::from_str(text).map_err(|error| ModelError::Syntax(error.to_string().trim_end().to_owned()))
    }

    /// The shape of one sample, with other frames and another size where they are given.
    ///
    /// # Errors
    /// [`ModelError`] where there is none.
    pub(crate) fn shape(&self, frames: Option<u64>, size: Option<u64>) -> Result<Vec<u64>, ModelError> {
        let input = &self.input;
        let shape = match (&input.shape, input.channels, size.or(input.size)) {
            (Some(shape), None, None) => shape.clone(),
            (None, Some(channels), Some(size)) => {
                let frames = input.frames.map(|own| frames.unwrap_or(own));
                [channels].into_iter().chain(frames).chain([size, size]).collect()
            }
            _ => return Err(ModelError::Input),
        };
        if let Some(wrong) = shape.iter().find(|size| !(1..=1_000_000).contains(*size)) {
            return Err(ModelError::Size(*wrong));
        }
        if shape.is_empty() { Err(ModelError::Input) } else { Ok(shape) }
    }

    /// What it needs.
    ///
    /// # Errors
    /// [`ModelError`] where a layer cannot take what comes to it.
    pub(crate) fn cost(
        &self,
        frames: Option<u64>,
        size: Option<u64>,
        mode: Mode,
    ) -> Result<Cost, ModelError> {
        Ok(walk::walk(&self.layers, &self.shape(frames, size)?, mode)?.0)
    }
}
