//! A model and how it is fed, as a file or a preset says it.

mod error;
mod flow;
mod keep;
mod layer;
mod narrow;
mod stages;
mod walk;

use serde::Deserialize;

pub use error::ModelError;
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
