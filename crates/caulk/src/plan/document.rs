//! A plan as a file: what a training, its loaders and its validation are set to.

use caulk_plan::Settings;
use serde::{Deserialize, Serialize};

/// The settings of a plan, named as Lightning and `DataLoader` name them. What is not there is left alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    /// Version of this form.
    pub(crate) schema: u32,
    #[serde(default)]
    pub(crate) training: Training,
    #[serde(default)]
    pub(crate) loader: Loader,
    #[serde(default)]
    pub(crate) validation: Validation,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Training {
    pub(crate) batch_size: Option<u64>,
    pub(crate) accumulate_grad_batches: Option<u64>,
    pub(crate) precision: Option<String>,
    pub(crate) gradient_checkpointing: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Loader {
    pub(crate) num_workers: Option<u64>,
    pub(crate) prefetch_factor: Option<u64>,
    pub(crate) pin_memory: Option<bool>,
    pub(crate) persistent_workers: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Validation {
    pub(crate) batch_size: Option<u64>,
    pub(crate) check_val_every_n_epoch: Option<u64>,
}

/// What is only a loader's, by the names that changes have.
pub(crate) const OF_LOADERS: [&str; 6] = [
    "num_workers",
    "prefetch_factor",
    "pin_memory",
    "persistent_workers",
    "validation_batch_size",
    "validation_every",
];

impl Document {
    /// The plan for a program that has no loader: what is only a loader's is left out.
    pub(crate) fn without_loaders(self) -> Self {
        Self { loader: Loader::default(), validation: Validation::default(), ..self }
    }

    /// Does it say nothing of loaders, as one for a program without any?
    pub(crate) fn has_no_loader(&self) -> bool {
        self.loader == Loader::default()
    }

    /// A plan for loaders alone.
    pub(crate) fn for_workers(workers: u64) -> Self {
        let loader = Loader { num_workers: Some(workers), ..Loader::default() };
        Self { schema: SCHEMA, loader, ..Self::default() }
    }
}

/// Version of the form that is written.
pub(crate) const SCHEMA: u32 = 1;

impl From<&Settings> for Document {
    fn from(settings: &Settings) -> Self {
        Self {
            schema: SCHEMA,
            training: Training {
                batch_size: Some(settings.batch),
                accumulate_grad_batches: Some(settings.accumulation),
                precision: Some(settings.precision.name().into()),
                gradient_checkpointing: Some(settings.checkpointing),
                frames: settings.frames,
                size: settings.size,
            },
            loader: Loader {
                num_workers: Some(settings.workers),
                // A loader without workers must not be given one.
                prefetch_factor: Some(settings.prefetch).filter(|_| settings.workers > 0),
                pin_memory: Some(settings.pin_memory),
                persistent_workers: Some(settings.persistent_workers),
            },
            validation: Validation {
                batch_size: Some(settings.validation_batch),
                check_val_every_n_epoch: Some(settings.validation_every),
            },
        }
    }
}
