//! A training as it is now: what the model's file says, and what the arguments say instead.

use caulk_plan::{Decoding, Input, Settings, Source, Training};

use super::trace::FoundLoader;
use crate::cli::{PlanArgs, PlanBefore};

/// Batches that a worker prepares ahead, as `DataLoader` does unless it is told otherwise.
const PREFETCH: u64 = 2;

/// The settings before anything is changed.
pub(crate) fn before(args: &PlanArgs, source: &Source) -> Settings {
    let PlanBefore { batch, accumulation, precision, optimizer, frames, size, workers, video, .. } =
        &args.before;
    let (training, input, has_video) = match source {
        Source::Layers(model) => (model.training.clone(), model.input.clone(), model.video.is_some()),
        Source::Trace(_) => (Training::default(), Input::default(), false),
    };
    let batch = batch.unwrap_or(training.batch);
    let workers = workers.unwrap_or(training.workers);
    let is_clip = input.channels.is_some() && input.frames.is_some();
    Settings {
        batch,
        accumulation: accumulation.unwrap_or(training.accumulation),
        precision: (*precision).into(),
        checkpointing: false,
        frames: frames.or(input.frames).filter(|_| is_clip),
        size: size.or(input.size).filter(|_| input.channels.is_some()),
        thirds: 3,
        optimizer: (*optimizer).into(),
        workers,
        prefetch: PREFETCH,
        pin_memory: true,
        persistent_workers: workers > 0,
        decoding: (has_video || video.is_some()).then_some(Decoding::Whole),
        validation_batch: batch,
        validation_every: 1,
    }
}

/// Takes over the loader that a training was seen to have, or none: then there is nothing of one to change.
pub(crate) fn set_loader(settings: &mut Settings, loader: Option<FoundLoader>, workers: u64) {
    settings.workers = workers;
    settings.prefetch = loader.and_then(|loader| loader.prefetch_factor).unwrap_or(PREFETCH);
    settings.pin_memory = loader.is_some_and(|loader| loader.pin_memory);
    settings.persistent_workers = loader.is_some_and(|loader| loader.persistent_workers);
}
