//! Looks for settings that fit, and changes no more than it must.
//!
//! What keeps the result comes first: accumulation at the same effective batch, 16 bit, checkpointing. Only where nothing of
//! that fits, clips and images become smaller.

use crate::{Decoding, Machine, Memory, ModelError, Precision, Settings, Source, memory};

/// Below so many samples at a time, 16 bit and checkpointing are worth more than a larger batch.
const COMFORTABLE: u64 = 4;
/// Frames and sizes of clips and images that are tried, where nothing else fits.
const FRAMES: [u64; 4] = [16, 8, 6, 4];
const SIZES: [u64; 4] = [192, 160, 128, 112];
/// Share of the room from which on the validation is made lighter.
const TIGHT: f64 = 0.6;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Settings that fit, or the smallest that were tried.
    pub settings: Settings,
    /// What they need.
    pub memory: Memory,
    /// Do they fit on the GPU (or, where there is none, on the host)?
    pub fits_gpu: bool,
    /// Do they fit on the host?
    pub fits_host: bool,
}

/// Settings that fit the machine, from those that the user has.
///
/// # Errors
/// [`ModelError`] where the model cannot be computed.
pub fn plan(source: &Source, before: &Settings, machine: &Machine) -> Result<Plan, ModelError> {
    let (mut settings, fits_gpu) = device(source, before, machine)?;
    host(source, &mut settings, machine)?;
    lighten_validation(source, before, &mut settings, machine)?;
    let memory = memory(source, &settings, machine)?.unwrap_or_default();
    let fits_host = machine.host_takes(memory.on_host());
    let fits_gpu = fits_gpu && (machine.gpu.is_some() || fits_host);
    Ok(Plan { settings, memory, fits_gpu, fits_host })
}

/// What computes the model: the GPU, or the host where there is none.
fn device(source: &Source, before: &Settings, machine: &Machine) -> Result<(Settings, bool), ModelError> {
    let mut smallest = None;
    for (frames, size) in reductions(before) {
        let mut best: Option<Settings> = None;
        for (precision, checkpointing) in stages(before, machine) {
            let stage = Settings { precision, checkpointing, frames, size, ..before.clone() };
            for settings in batches(&stage) {
                let Some(memory) = memory(source, &settings, machine)? else { continue };
                smallest = Some(settings.clone());
                if !machine.gpu_takes(memory.on_gpu()) || !fits_without_gpu(&memory, machine) {
                    continue;
                }
                if best.as_ref().is_none_or(|best| settings.batch > best.batch) {
                    best = Some(settings);
                }
                break;
            }
            if best.as_ref().is_some_and(|best| best.batch >= COMFORTABLE.min(before.batch)) {
                break;
            }
        }
        if let Some(best) = best {
            return Ok((best, true));
        }
    }
    Ok((smallest.unwrap_or_else(|| before.clone()), false))
}

/// On the CPU the model shares the host with everything else; loaders are made smaller later.
fn fits_without_gpu(memory: &Memory, machine: &Machine) -> bool {
    const LOADER: [&str; 4] = ["workers", "batches ahead", "pinned batches", "decoded video"];
    machine.gpu.is_some() || {
        let rest = memory.host.iter().filter(|part| !LOADER.contains(&part.name));
        machine.host_takes(rest.map(|part| part.bytes).sum())
    }
}

/// Numbers and checkpointing, from what the user has to what takes least.
fn stages(before: &Settings, machine: &Machine) -> Vec<(Precision, bool)> {
    let mixed = match (before.precision, machine.gpu.as_ref()) {
        (Precision::Full, Some(gpu)) if gpu.bfloat16 == Some(true) => Precision::Brain,
        (Precision::Full, Some(_)) => Precision::Half,
        // On the CPU only newer processors compute faster with it, and none with float16.
        (own, _) => own,
    };
    let mut stages = vec![
        (before.precision, before.checkpointing),
        (mixed, before.checkpointing),
        (mixed, true),
        (before.precision, true),
    ];
    stages.dedup();
    stages
}

/// Batches that divide the effective one, largest first.
fn batches(stage: &Settings) -> impl Iterator<Item = Settings> {
    let effective = stage.effective();
    let divisors = (1..=stage.batch).rev().filter(move |batch| effective.is_multiple_of(*batch));
    divisors.map(move |batch| Settings { batch, accumulation: effective / batch, ..stage.clone() })
}

/// Frames and sizes: as they are, then fewer frames, then smaller images.
fn reductions(before: &Settings) -> Vec<(Option<u64>, Option<u64>)> {
    let mut all = vec![(before.frames, before.size)];
    let fewer = FRAMES.iter().filter(|frames| before.frames.is_some_and(|own| **frames < own));
    all.extend(fewer.map(|frames| (Some(*frames), before.size)));
    let fewest = all.last().map_or(before.frames, |(frames, _)| *frames);
    let smaller = SIZES.iter().filter(|size| before.size.is_some_and(|own| **size < own));
    all.extend(smaller.map(|size| (fewest, Some(*size))));
    all
}

/// What feeds the model, step by step, until it fits.
fn host(source: &Source, settings: &mut Settings, machine: &Machine) -> Result<(), ModelError> {
    if settings.decoding.is_some() {
        // The same clips for less memory and time.
        settings.decoding = Some(Decoding::Selected);
    }
    if let Some(processors) = machine.processors {
        settings.workers = settings.workers.min(processors);
    }
    if machine.gpu.is_none() || settings.workers == 0 {
        settings.pin_memory &= machine.gpu.is_some();
        settings.persistent_workers &= settings.workers > 0;
    }
    let steps: [fn(&mut Settings); 7] = [
        |settings| settings.persistent_workers = false,
        |settings| settings.pin_memory = false,
        |settings| settings.prefetch = settings.prefetch.min(1),
        |settings| settings.workers = settings.workers.min(4),
        |settings| settings.workers = settings.workers.min(2),
        |settings| settings.workers = settings.workers.min(1),
        |settings| settings.workers = 0,
    ];
    for step in steps {
        let Some(memory) = memory(source, settings, machine)? else { break };
        if machine.host_takes(memory.on_host()) {
            break;
        }
        step(settings);
    }
    if settings.workers == 0 {
        settings.persistent_workers = false;
    }
    Ok(())
}

/// Validation starts workers of its own and wants blocks of other sizes: less often, and in batches that fit.
fn lighten_validation(
    source: &Source,
    before: &Settings,
    settings: &mut Settings,
    machine: &Machine,
) -> Result<(), ModelError> {
    settings.validation_batch = before.validation_batch.min(settings.batch);
    let Some(memory) = memory(source, settings, machine)? else { return Ok(()) };
    let full = |used: f64, room: Option<f64>| room.is_some_and(|room| used > TIGHT * room);
    if full(memory.on_gpu().high, machine.gpu_room()) || full(memory.on_host().high, machine.host_room()) {
        settings.validation_every = before.validation_every.max(2);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::{Card, Optimizer, gpu, preset, presets};

    fn source(name: &str) -> Source {
        Source::Layers(Box::new(preset(name).unwrap()))
    }

    fn before() -> Settings {
        Settings {
            batch: 16,
            accumulation: 2,
            precision: Precision::Full,
            checkpointing: false,
            frames: Some(16),
            size: Some(224),
            thirds: 3,
            optimizer: Optimizer::Adam,
            workers: 4,
            prefetch: 2,
            pin_memory: true,
            persistent_workers: true,
            decoding: Some(Decoding::Whole),
            validation_batch: 16,
            validation_every: 1,
        }
    }

    fn small() -> Machine {
        let gpu = Card::from(&gpu("GTX 1650").unwrap());
        Machine { gpu: Some(gpu), ram: Some(16.0 * 1024.0 * 1024.0 * 1024.0), ..Machine::default() }
    }

    #[test]
    fn every_preset_fits_a_small_card_at_the_same_effective_batch() {
        for name in presets() {
            let plan = plan(&source(name), &before(), &small()).unwrap();
            assert!(plan.fits_gpu && plan.fits_host, "{name}: {:?}", plan.settings);
            assert!(plan.memory.on_gpu().high <= small().gpu_room().unwrap(), "{name}");
            assert_eq!(plan.settings.effective(), 32, "{name}");
            assert_eq!((plan.settings.frames, plan.settings.size), (Some(16), Some(224)), "{name}");
            assert_ne!(plan.settings.precision, Precision::Brain, "the card cannot compute with it");
        }
    }

    #[test]
    fn nothing_is_changed_where_it_fits() {
        let large = Machine {
            gpu: Some(Card { name: "large".into(), memory: 1e12, bfloat16: Some(true), capability: None }),
            ram: Some(1e12),
            ..Machine::default()
        };
        let plan = plan(&source("x3d"), &before(), &large).unwrap();
        assert_eq!(plan.settings, Settings { decoding: Some(Decoding::Selected), ..before() });
    }

    #[test]
    fn less_memory_never_means_a_larger_batch() {
        let room = |gigabytes: f64| {
            let card =
                Card { name: String::new(), memory: gigabytes * 1e9, bfloat16: None, capability: None };
            let machine = Machine { gpu: Some(card), ..Machine::default() };
            let plan = plan(&source("vit_gru"), &before(), &machine).unwrap();
            (plan.fits_gpu, plan.memory.on_gpu().high <= gigabytes * 1e9)
        };
        assert_eq!(room(0.5), (false, false));
        for gigabytes in [4.0, 8.0, 16.0, 40.0] {
            assert_eq!(room(gigabytes), (true, true), "{gigabytes}");
        }
    }

    #[test]
    fn a_host_with_little_memory_gives_up_workers_last() {
        let host = |gigabytes: f64| {
            let machine = Machine { ram: Some(gigabytes * 1e9), ..small() };
            plan(&source("vit_gru"), &before(), &machine).unwrap()
        };
        let (wide, narrow) = (host(64.0), host(5.0));
        assert_eq!((wide.settings.workers, wide.settings.pin_memory), (4, true));
        assert!(narrow.fits_host && narrow.settings.workers < 4 && !narrow.settings.pin_memory, "{narrow:?}");
        assert!(!host(1.0).fits_host);
    }

    #[test]
    fn without_a_gpu_the_model_lies_on_the_host() {
        let machine = Machine { ram: Some(32e9), ..Machine::default() };
        let plan = plan(&source("naive_cnn"), &before(), &machine).unwrap();
        assert!(plan.fits_host && plan.memory.gpu.is_empty(), "{plan:?}");
        assert!(plan.memory.host.iter().any(|part| part.name == "kept for backward"));
        assert_eq!((plan.settings.precision, plan.settings.pin_memory), (Precision::Full, false));
    }
}
