//! Memory by part: what a training holds on the GPU and on the host.

use caulk_core::Bytes;
use serde::Serialize;

use crate::replay::Replayed;
use crate::source::Demand;
use crate::{Card, Decoding, Estimate, Machine, ModelError, Settings, Source};

const MB: f64 = Bytes::MB as f64;
/// Parts with separate figures of a replay.
const PASSING: &str = "passing tensors";
const GAPS: &str = "gaps of the allocator";

/// One part of a training's memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// What it is.
    pub name: &'static str,
    /// How much, in bytes.
    pub bytes: Estimate,
    /// Where the figure comes from.
    pub source: &'static str,
}

/// A training's memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Memory {
    /// On the GPU; empty where it trains on the CPU.
    pub gpu: Vec<Part>,
    /// On the host.
    pub host: Vec<Part>,
}

impl Memory {
    /// All of the GPU's.
    pub fn on_gpu(&self) -> Estimate {
        self.gpu.iter().map(|part| part.bytes).sum()
    }

    /// All of the host's.
    pub fn on_host(&self) -> Estimate {
        self.host.iter().map(|part| part.bytes).sum()
    }
}

/// What a training with these settings holds; `None` where the model was not traced with them.
///
/// # Errors
/// [`ModelError`] where the model cannot be computed.
pub fn memory(source: &Source, settings: &Settings, machine: &Machine) -> Result<Option<Memory>, ModelError> {
    let Some(demand) = source.demand(settings)? else { return Ok(None) };
    let on_gpu = machine.gpu.is_some();
    let mut host = on_host(source, &demand, settings, machine);
    let model = of_model(&demand);
    if !on_gpu {
        host.extend(model);
        return Ok(Some(Memory { gpu: Vec::new(), host }));
    }
    let mut gpu = match demand.replayed {
        Some(replayed) => with_replay(model, replayed),
        None => with_share(model),
    };
    gpu.extend(machine.gpu.as_ref().map(context));
    Ok(Some(Memory { gpu, host }))
}

/// A model that is known by its layers alone: replays of the steps of five networks needed 7 to 19 % more than was allocated.
fn with_share(mut parts: Vec<Part>) -> Vec<Part> {
    let moving: Estimate = parts.iter().map(|part| part.bytes).sum();
    parts.push(Part {
        name: GAPS,
        bytes: moving.times(0.07, 0.12, 0.19),
        source: "replays of five networks' steps: 7 to 19 % of what is allocated",
    });
    parts
}

/// The allocations themselves were replayed: what passes is what they take beside the rest at the peak.
fn with_replay(mut parts: Vec<Part>, replayed: Replayed) -> Vec<Part> {
    parts.retain(|part| part.name != PASSING);
    if replayed.cublas > 0.0 {
        parts.push(Part {
            name: "workspaces of cuBLAS",
            bytes: Estimate::exact(replayed.cublas),
            source: "32 MB for each of two threads: CUDABlas.cpp of PyTorch",
        });
    }
    let rest: Estimate = parts.iter().map(|part| part.bytes).sum();
    parts.push(Part {
        name: PASSING,
        bytes: replayed.requested.less(rest),
        source: "the peak of the step's allocations in order, workspaces of cuDNN and temporaries of the optimizer included",
    });
    let requested: Estimate = parts.iter().map(|part| part.bytes).sum();
    parts.push(Part {
        name: "rounding of blocks",
        bytes: replayed.allocated.less(requested),
        source: "blocks of 512 bytes, and rests below 1 MB that are not split off: CUDACachingAllocator.cpp of PyTorch",
    });
    let allocated: Estimate = parts.iter().map(|part| part.bytes).sum();
    parts.push(Part {
        name: GAPS,
        bytes: replayed.reserved.less(allocated),
        source: "the same allocations in a model of CUDACachingAllocator",
    });
    parts
}

/// What lies on a GPU before the first tensor.
///
/// The driver keeps stacks for all threads that the processors can have at once, so that larger cards have larger contexts;
/// each library loads its kernels when it is first used.
pub(crate) fn context(card: &Card) -> Part {
    let is_large = card.capability.is_some_and(|(major, minor)| major >= 9 && (major, minor) < (12, 0));
    let (bytes, source) = if is_large {
        (
            Estimate::between(610.0 * MB, 770.0 * MB, 850.0 * MB),
            "ten trainings on an H100 (driver 580, CUDA 13): 641 MB with cuDNN alone, 767 to 771 MB with cuBLAS",
        )
    } else {
        (
            Estimate::between(250.0 * MB, 450.0 * MB, 750.0 * MB),
            "CUDA context and kernels loaded lazily: CUDA C++ Programming Guide",
        )
    };
    Part { name: "CUDA context and libraries", bytes, source }
}

fn of_model(demand: &Demand) -> Vec<Part> {
    // `foreach` optimizers make a temporary as large as the parameters, when the forward pass's tensors are gone; fused ones
    // make none.
    let stepping = Estimate::between(0.0, 1.0, 1.0) * demand.gradients;
    let less = |a: f64, b: f64| (a - b).max(0.0);
    let beside = Estimate::between(
        less(stepping.low, demand.saved.low),
        less(stepping.likely, demand.saved.likely),
        less(stepping.high, demand.saved.high),
    );
    vec![
        Part {
            name: "parameters",
            bytes: Estimate::exact(demand.model),
            source: "4 bytes each, and buffers",
        },
        Part { name: "gradients", bytes: Estimate::exact(demand.gradients), source: "4 bytes per parameter" },
        Part {
            name: "optimizer states",
            bytes: Estimate::exact(demand.states),
            source: "per parameter: Adam 8 bytes, with momentum 4",
        },
        Part {
            name: "kept for backward",
            bytes: demand.saved,
            source: "what each layer's backward pass asks for: derivatives.yaml of PyTorch",
        },
        Part {
            name: PASSING,
            bytes: demand.passing.max(beside),
            source: "gradients on their way back, blocks computed again, workspaces, or the optimizer's temporaries",
        },
    ]
}

fn on_host(source: &Source, demand: &Demand, settings: &Settings, machine: &Machine) -> Vec<Part> {
    let workers = settings.workers as f64;
    let batch = demand.sample * settings.batch as f64;
    let base = if machine.gpu.is_some() {
        Estimate::between(600.0 * MB, 1500.0 * MB, 3000.0 * MB)
    } else {
        Estimate::between(300.0 * MB, 500.0 * MB, 1000.0 * MB)
    };
    let living = if settings.persistent_workers { 2.0 * workers } else { workers };
    let mut parts = vec![
        Part {
            name: "Python and torch",
            bytes: base,
            source: "480 MB after `import torch` 2.11; libraries of CUDA come on top",
        },
        Part {
            name: "workers",
            bytes: Estimate::between(15.0 * MB, 100.0 * MB, 480.0 * MB) * living,
            source: "each 15 MB of its own when forked, 480 MB when spawned; those of the validation live on with \
                     persistent_workers",
        },
        Part {
            name: "batches ahead",
            bytes: Estimate::exact(batch * (workers * settings.prefetch as f64).max(1.0)),
            source: "workers x prefetch_factor x batch: torch.utils.data.DataLoader",
        },
    ];
    if settings.pin_memory {
        // Pinned blocks are rounded up to powers of two, and kept for the next batch.
        parts.push(Part {
            name: "pinned batches",
            bytes: Estimate::between(1.0, 3.0, 2.0 * (workers * settings.prefetch as f64).max(2.0)) * batch,
            source: "copies in page-locked blocks, rounded up to powers of two: CachingHostAllocator",
        });
    }
    if let (Some(video), Some(decoding)) = (source.video().or(machine.video), settings.decoding) {
        let frames = match decoding {
            Decoding::Whole => video.frames,
            Decoding::Selected => settings.frames.unwrap_or(1).min(video.frames),
        };
        parts.push(Part {
            name: "decoded video",
            // As a list of frames once, stacked into one array twice.
            bytes: Estimate::between(1.0, 1.0, 2.0) * (video.decoded(frames) * workers.max(1.0)),
            source: "width x height x 3 per frame and worker, twice where frames are stacked",
        });
    }
    if machine.dataset > 0.0 {
        parts.push(Part {
            name: "data set in memory",
            bytes: Estimate::between(1.0, 1.0 + workers / 2.0, 1.0 + workers) * machine.dataset,
            source: "once, and in every forked worker that touches its reference counts",
        });
    }
    parts
}
