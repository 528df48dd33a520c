//! What a plan changes and why, and what could be changed beyond it; each with what it saves.

use serde::Serialize;

use crate::{Decoding, Machine, ModelError, Optimizer, Precision, Settings, Source, memory};

/// A setting that is, or could be, another than before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Its name.
    pub setting: &'static str,
    /// As it is without the change.
    pub before: String,
    /// As it is with it.
    pub after: String,
    /// Why, and what it costs.
    pub why: String,
    /// GPU memory that it alone saves, in bytes, as far as can be expected.
    pub gpu_saved: f64,
    /// Host memory that it alone saves.
    pub host_saved: f64,
}

type Set = fn(&mut Settings, &Settings);
type Say = fn(&Settings) -> String;

/// One setting: its name, how it is said, how it is taken over from other settings, and why it is changed.
struct Knob {
    name: &'static str,
    say: Say,
    take: Set,
    why: &'static str,
}

const KNOBS: [Knob; 12] = [
    Knob {
        name: "batch_size",
        say: |s| format!("{} x {}", s.batch, s.accumulation),
        take: |s, from| (s.batch, s.accumulation) = (from.batch, from.accumulation),
        why: "fewer samples at a time, gradients summed over more of them: the effective batch stays",
    },
    Knob {
        name: "precision",
        say: |s| s.precision.name().into(),
        take: |s, from| s.precision = from.precision,
        why: "what is kept for the backward pass takes half; weights stay at 32 bit",
    },
    Knob {
        name: "gradient_checkpointing",
        say: |s| s.checkpointing.to_string(),
        take: |s, from| s.checkpointing = from.checkpointing,
        why: "blocks are computed again in the backward pass instead of being kept: a third more time",
    },
    Knob {
        name: "frames",
        say: |s| s.frames.map_or_else(|| "-".into(), |n| n.to_string()),
        take: |s, from| s.frames = from.frames,
        why: "nothing else fits; the model sees less of each clip",
    },
    Knob {
        name: "size",
        say: |s| s.size.map_or_else(|| "-".into(), |n| n.to_string()),
        take: |s, from| s.size = from.size,
        why: "nothing else fits; the model sees less detail",
    },
    Knob {
        name: "decoding",
        say: |s| if s.decoding == Some(Decoding::Whole) { "whole video" } else { "wanted frames" }.into(),
        take: |s, from| s.decoding = from.decoding,
        why: "only the frames that are used are decoded, one after the other: the same clips",
    },
    Knob {
        name: "num_workers",
        say: |s| s.workers.to_string(),
        take: |s, from| s.workers = from.workers,
        why: "each worker holds batches, decoders and its own part of the heap; more than there are processors wait for each other",
    },
    Knob {
        name: "prefetch_factor",
        say: |s| s.prefetch.to_string(),
        take: |s, from| s.prefetch = from.prefetch,
        why: "fewer batches wait in shared memory",
    },
    Knob {
        name: "pin_memory",
        say: |s| s.pin_memory.to_string(),
        take: |s, from| s.pin_memory = from.pin_memory,
        why: "page-locked copies cannot be swapped or reclaimed",
    },
    Knob {
        name: "persistent_workers",
        say: |s| s.persistent_workers.to_string(),
        take: |s, from| s.persistent_workers = from.persistent_workers,
        why: "workers of training and validation do not live at once",
    },
    Knob {
        name: "validation_batch_size",
        say: |s| s.validation_batch.to_string(),
        take: |s, from| s.validation_batch = from.validation_batch,
        why: "a validation batch fits where a training batch fits",
    },
    Knob {
        name: "validation_every",
        say: |s| s.validation_every.to_string(),
        take: |s, from| s.validation_every = from.validation_every,
        why: "a validation starts workers of its own and leaves blocks of other sizes with the allocator",
    },
];

/// GPU and host memory that is expected with some settings.
fn expected(
    source: &Source,
    settings: &Settings,
    machine: &Machine,
) -> Result<Option<(f64, f64)>, ModelError> {
    let memory = memory(source, settings, machine)?;
    Ok(memory.map(|memory| (memory.on_gpu().likely, memory.on_host().likely)))
}

/// What differs between two settings, and what each difference saves as long as all others stay as they were planned.
///
/// # Errors
/// [`ModelError`] where the model cannot be computed.
pub fn changes(
    source: &Source,
    before: &Settings,
    after: &Settings,
    machine: &Machine,
) -> Result<Vec<Change>, ModelError> {
    let with = expected(source, after, machine)?;
    let mut changes = Vec::new();
    for knob in KNOBS.iter().filter(|knob| (knob.say)(before) != (knob.say)(after)) {
        let mut undone = after.clone();
        (knob.take)(&mut undone, before);
        let saved = match (expected(source, &undone, machine)?, with) {
            (Some(without), Some(with)) => (without.0 - with.0, without.1 - with.1),
            _ => (0.0, 0.0),
        };
        let mut why = knob.why.to_owned();
        if knob.name == "batch_size" && source.batch_norm() {
            why += "; batch normalisation sees the smaller one, so results may differ";
        }
        changes.push(Change {
            setting: knob.name,
            before: (knob.say)(before),
            after: (knob.say)(after),
            why,
            gpu_saved: saved.0.max(0.0),
            host_saved: saved.1.max(0.0),
        });
    }
    Ok(changes)
}

/// What could be done beyond a plan, with what it would save.
///
/// # Errors
/// [`ModelError`] where the model cannot be computed.
pub fn advice(source: &Source, plan: &Settings, machine: &Machine) -> Result<Vec<Change>, ModelError> {
    let Some(now) = expected(source, plan, machine)? else { return Ok(Vec::new()) };
    let mut advice = Vec::new();
    for (setting, why, then) in further(plan, machine) {
        // A model that cannot be made narrower by rule, or that was not traced so, gives no advice.
        let Ok(Some(with)) = expected(source, &then, machine) else { continue };
        let (before, after) = said(setting, plan, &then);
        let (gpu_saved, host_saved) = ((now.0 - with.0).max(0.0), (now.1 - with.1).max(0.0));
        if gpu_saved >= 1.0 || host_saved >= 1.0 {
            advice.push(Change { setting, before, after, why: why.into(), gpu_saved, host_saved });
        }
    }
    let Some(demand) = source.demand(plan)? else { return Ok(advice) };
    if plan.size.is_some() {
        let ahead = demand.sample * plan.batch as f64 * (plan.workers * plan.prefetch).max(1) as f64;
        advice.push(Change {
            setting: "augmentations",
            before: "three views of each sample".into(),
            after: "one".into(),
            why: "views wait in batches, and lie on disk, as samples of their own; made once, they serve every fold".into(),
            gpu_saved: 0.0,
            host_saved: 2.0 * ahead,
        });
    }
    advice.push(Change {
        setting: "validation outputs",
        before: "kept with their graphs".into(),
        after: "metrics at the end".into(),
        why: "what a step returns is kept to the end of the epoch: keep numbers, or `.detach().cpu()`; saved per batch kept"
            .into(),
        gpu_saved: if machine.gpu.is_some() { demand.saved.likely } else { 0.0 },
        host_saved: if machine.gpu.is_some() { 0.0 } else { demand.saved.likely },
    });
    Ok(advice)
}

fn said(setting: &str, plan: &Settings, then: &Settings) -> (String, String) {
    match KNOBS.iter().find(|knob| knob.name == setting) {
        Some(knob) => ((knob.say)(plan), (knob.say)(then)),
        None if setting == "optimizer" => ("adam".into(), "adam of 8 bit".into()),
        None => ("as it is".into(), "two thirds".into()),
    }
}

/// Settings beyond these, and what they cost.
fn further(plan: &Settings, machine: &Machine) -> Vec<(&'static str, &'static str, Settings)> {
    let mut list = Vec::new();
    let mut add = |setting, why, set: &dyn Fn(&mut Settings)| {
        let mut then = plan.clone();
        set(&mut then);
        if then != *plan {
            list.push((setting, why, then));
        }
    };
    add("precision", "what is kept for the backward pass takes half", &|s| {
        // On the CPU hardly any processor computes faster so.
        if let (Precision::Full, Some(gpu)) = (s.precision, &machine.gpu) {
            s.precision = if gpu.bfloat16 == Some(true) { Precision::Brain } else { Precision::Half };
        }
    });
    add(
        "gradient_checkpointing",
        "blocks are computed again in the backward pass: a third more time",
        &|s| s.checkpointing = true,
    );
    add("batch_size", "half as many samples at a time, twice the accumulation", &|s| {
        if s.batch % 2 == 0 {
            (s.batch, s.accumulation) = (s.batch / 2, s.accumulation * 2);
        }
    });
    add("frames", "the model sees less of each clip; augmented clips on disk shrink alike", &|s| {
        s.frames = s.frames.map(|frames| frames.min(6));
    });
    add("size", "the model sees less detail; augmented clips on disk shrink alike", &|s| {
        s.size = s.size.map(|size| size.min(112));
    });
    add(
        "model width and depth",
        "another model, to be trained again; pruning saves as much only where whole channels or heads go",
        &|s| s.thirds = 2,
    );
    add("optimizer", "moments of 8 bit (bitsandbytes)", &|s| {
        if s.optimizer == Optimizer::Adam {
            s.optimizer = Optimizer::Adam8bit;
        }
    });
    add("decoding", "stream: decode only the wanted frames, one after the other", &|s| {
        s.decoding = s.decoding.map(|_| Decoding::Selected);
    });
    add("num_workers", "batches are prepared between steps: slower, unless the data set is light", &|s| {
        s.workers = 0;
    });
    list
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::{Card, gpu, plan, preset};

    fn planned(name: &str, ram: f64) -> (Vec<Change>, Vec<Change>) {
        let source = Source::Layers(Box::new(preset(name).unwrap()));
        let before = Settings {
            batch: 16,
            accumulation: 1,
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
        };
        let gpu = Some(Card::from(&gpu("GTX 1650").unwrap()));
        let machine = Machine { gpu, ram: Some(ram * 1e9), ..Machine::default() };
        let after = plan(&source, &before, &machine).unwrap().settings;
        (changes(&source, &before, &after, &machine).unwrap(), advice(&source, &after, &machine).unwrap())
    }

    fn names(changes: &[Change]) -> Vec<&'static str> {
        changes.iter().map(|change| change.setting).collect()
    }

    #[test]
    fn what_was_changed_says_what_it_saves() {
        let (changes, _) = planned("vit_gru", 16.0);
        let found = names(&changes);
        for name in ["batch_size", "precision", "gradient_checkpointing", "decoding", "validation_every"] {
            assert!(found.contains(&name), "{name} is missing: {found:?}");
        }
        let saved = |name: &str| changes.iter().find(|change| change.setting == name).unwrap();
        assert!(saved("gradient_checkpointing").gpu_saved > 1e9);
        assert!(saved("decoding").host_saved > 1e9);
        assert_eq!(saved("batch_size").before, "16 x 1");
    }

    #[test]
    fn what_could_be_done_beyond_has_a_saving_each() {
        for name in ["vit_transformer", "slowfast", "x3d"] {
            let (_, advice) = planned(name, 16.0);
            let found = names(&advice);
            for wanted in [
                "frames",
                "size",
                "num_workers",
                "augmentations",
                "model width and depth",
                "validation outputs",
            ] {
                assert!(found.contains(&wanted), "{name}: {wanted} is missing: {found:?}");
            }
            assert!(advice.iter().all(|each| each.gpu_saved + each.host_saved >= 1.0), "{advice:?}");
        }
    }

    #[test]
    fn batch_normalisation_is_warned_of() {
        let why = |name: &str| {
            let (changes, _) = planned(name, 16.0);
            changes.into_iter().find(|change| change.setting == "batch_size").unwrap().why
        };
        assert!(why("x3d").contains("batch normalisation"));
        assert!(!why("vit_gru").contains("batch normalisation"));
    }
}
