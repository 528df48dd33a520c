//! What of a training can be set.

use serde::{Deserialize, Serialize};

/// Width of the numbers that a forward pass computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Precision {
    /// 32 bit.
    #[default]
    #[serde(rename = "32-true")]
    Full,
    /// float16 under autocast, with a gradient scaler.
    #[serde(rename = "16-mixed")]
    Half,
    /// bfloat16 under autocast.
    #[serde(rename = "bf16-mixed")]
    Brain,
}

impl Precision {
    /// As Lightning's `Trainer(precision=...)` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "32-true",
            Self::Half => "16-mixed",
            Self::Brain => "bf16-mixed",
        }
    }

    /// Computes in 16 bit?
    pub const fn is_mixed(self) -> bool {
        !matches!(self, Self::Full)
    }
}

/// What an optimizer keeps for each parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// Adam and `AdamW`: two moments.
    #[default]
    Adam,
    /// Stochastic gradient descent with momentum.
    Momentum,
    /// Plain stochastic gradient descent.
    Sgd,
    /// Adam with moments of 8 bit (bitsandbytes).
    Adam8bit,
}

impl Optimizer {
    /// Bytes kept per parameter.
    pub const fn bytes(self) -> f64 {
        match self {
            Self::Adam => 8.0,
            Self::Momentum => 4.0,
            Self::Sgd => 0.0,
            Self::Adam8bit => 2.0,
        }
    }

    /// Tensors that it keeps for a parameter of so many bytes, in bytes.
    pub(crate) fn states(self, parameter: u64) -> Vec<u64> {
        match self {
            Self::Adam => vec![parameter; 2],
            Self::Momentum => vec![parameter],
            Self::Sgd => Vec::new(),
            Self::Adam8bit => vec![parameter / 4; 2],
        }
    }

    /// What it makes of a parameter for the time of a step, in bytes: Adam the root of the second moment, of all parameters
    /// before the first is updated (`_multi_tensor_adam` in `torch/optim/adam.py`).
    pub(crate) const fn temporary(self, parameter: u64) -> u64 {
        if matches!(self, Self::Adam) { parameter } else { 0 }
    }
}

/// How much of a video is decoded for a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoding {
    /// All of it.
    Whole,
    /// The frames that are used.
    Selected,
}

/// Settings of a training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Samples of one forward pass.
    pub batch: u64,
    /// Forward passes of one optimizer step.
    pub accumulation: u64,
    /// Numbers of the forward pass.
    pub precision: Precision,
    /// Are blocks computed again in the backward pass instead of being kept?
    pub checkpointing: bool,
    /// Frames of a clip.
    pub frames: Option<u64>,
    /// Height and width of images.
    pub size: Option<u64>,
    /// Share of the model's width and depth, in thirds.
    pub thirds: u64,
    /// What the optimizer keeps.
    pub optimizer: Optimizer,
    /// Workers of the data loader.
    pub workers: u64,
    /// Batches that each worker prepares ahead.
    pub prefetch: u64,
    /// Are batches copied into pinned memory?
    pub pin_memory: bool,
    /// Do workers live on between epochs?
    pub persistent_workers: bool,
    /// What is decoded of a video.
    pub decoding: Option<Decoding>,
    /// Samples of one batch of the validation.
    pub validation_batch: u64,
    /// Epochs from one validation to the next.
    pub validation_every: u64,
}

impl Settings {
    /// Samples of one optimizer step.
    pub const fn effective(&self) -> u64 {
        self.batch.saturating_mul(self.accumulation)
    }
}
