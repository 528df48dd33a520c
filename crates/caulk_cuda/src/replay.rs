//! Which setting of the allocator would help: the recorded history, replayed through a model of the allocator.
//!
//! The model runs the same allocations under the settings of the snapshot and under each other setting. Both figures are the
//! model's, so that its errors cancel out. Without a recorded history nothing is predicted.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::allocator::{Allocator, AllocatorOptions, Handle};
use crate::parts::{Event, HeldState, SnapshotSettings, TraceAction};
use crate::snapshot::Snapshot;

const MB: u64 = 1 << 20;
/// Events without which a history is too short to predict from.
const FEWEST: usize = 100;
/// Sizes that `max_split_size_mb` is tried with, in bytes.
const SPLITS: [u64; 4] = [32 * MB, 128 * MB, 256 * MB, 512 * MB];
/// Share of the peak below which a saving is not worth a setting.
const WORTH: f64 = 0.02;

/// A setting that helps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HelpfulSetting {
    /// As `PYTORCH_CUDA_ALLOC_CONF` takes it.
    pub setting: String,
    /// Reserved at the peak with it, in bytes.
    pub peak_reserved: u64,
    /// Less reserved at the peak than without it, in bytes.
    pub saving: u64,
    /// Would an allocation that failed succeed? `None` if none failed.
    pub avoids_failure: Option<bool>,
}

/// What a replay shows for one device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayAdvice {
    /// Number of the device.
    pub device: u32,
    /// Allocations and frees that were replayed; 0 if no history was recorded.
    pub events: usize,
    /// Reserved at the peak with the settings of the snapshot, in bytes, by the model.
    pub peak_reserved: u64,
    /// Allocated at the peak, in bytes: no setting can reserve less.
    pub peak_allocated: u64,
    /// Size of the first allocation that failed, in bytes.
    pub failed: Option<u64>,
    /// Settings that would save memory, most first.
    pub remedies: Vec<HelpfulSetting>,
}

/// Replays the history of each device that has segments.
pub fn advise(snapshot: &Snapshot) -> Vec<ReplayAdvice> {
    let mut devices: Vec<u32> = snapshot.segments.iter().map(|segment| segment.device).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.into_iter().map(|device| of_device(snapshot, device)).collect()
}

fn of_device(snapshot: &Snapshot, device: u32) -> ReplayAdvice {
    let events = snapshot.traces.get(device as usize).map_or(&[][..], Vec::as_slice);
    let none = ReplayAdvice {
        device,
        events: 0,
        peak_reserved: 0,
        peak_allocated: 0,
        failed: None,
        remedies: Vec::new(),
    };
    let steps = steps(snapshot, device, events);
    if events.len() < FEWEST {
        return none;
    }
    let own = options(&snapshot.settings);
    let first = run(&steps, &own, None);
    // The limit of a device that ran full: what the model had reserved by then, and what was left.
    let limit = first.failure.map(|(_, room)| room);
    let failed = first.failure.map(|(size, _)| size);
    let mut remedies: Vec<HelpfulSetting> = others(&own, &snapshot.settings, limit)
        .into_iter()
        .filter_map(|(setting, options)| {
            let other = run(&steps, &options, limit);
            let avoids = failed.map(|_| other.fits);
            let saving = first.peak_reserved.saturating_sub(other.peak_reserved);
            let worth = saving as f64 >= WORTH * first.peak_reserved as f64 && saving >= MB;
            (worth || avoids == Some(true)).then_some(HelpfulSetting {
                setting,
                peak_reserved: other.peak_reserved,
                saving,
                avoids_failure: avoids,
            })
        })
        .collect();
    remedies.sort_by_key(|remedy| (std::cmp::Reverse(remedy.avoids_failure), remedy.peak_reserved));
    keep_best_split(&mut remedies);
    ReplayAdvice {
        events: steps.len(),
        peak_reserved: first.peak_reserved,
        peak_allocated: first.peak_allocated,
        failed,
        remedies,
        ..none
    }
}

/// Of several sizes for one setting the best is enough.
fn keep_best_split(remedies: &mut Vec<HelpfulSetting>) {
    let name = |remedy: &HelpfulSetting| remedy.setting.split(':').next().unwrap_or_default().to_owned();
    let mut seen = Vec::new();
    remedies.retain(|remedy| {
        let new = !seen.contains(&name(remedy));
        seen.push(name(remedy));
        new
    });
}

fn options(settings: &SnapshotSettings) -> AllocatorOptions {
    AllocatorOptions {
        expandable: settings.expandable_segments,
        max_split: settings.max_split_size.unwrap_or(u64::MAX),
        gc_threshold: settings.garbage_collection_threshold,
        divisions: settings.roundup_power2_divisions,
        limit: None,
    }
}

/// Settings that are not set already. `garbage_collection_threshold` acts only on a device with a limit.
fn others(
    own: &AllocatorOptions,
    settings: &SnapshotSettings,
    limit: Option<u64>,
) -> Vec<(String, AllocatorOptions)> {
    let mut others = Vec::new();
    if !settings.expandable_segments {
        others
            .push(("expandable_segments:True".into(), AllocatorOptions { expandable: true, ..own.clone() }));
    }
    if settings.max_split_size.is_none() && !settings.expandable_segments {
        others.extend(SPLITS.map(|size| {
            let options = AllocatorOptions { max_split: size, ..own.clone() };
            (format!("max_split_size_mb:{}", size / MB), options)
        }));
    }
    if settings.garbage_collection_threshold.is_none() && limit.is_some() {
        let options = AllocatorOptions { gc_threshold: Some(0.8), ..own.clone() };
        others.push(("garbage_collection_threshold:0.8".into(), options));
    }
    others
}

/// One step of the replay; blocks by the number of their allocation.
#[derive(Debug, Clone, Copy)]
enum Step {
    Allocate {
        number: u32,
        size: u64,
        stream: u64,
    },
    Free {
        number: u32,
    },
    /// An allocation failed, with so many bytes left on the device.
    Fail {
        size: u64,
        stream: u64,
        left: u64,
    },
}

/// The history, after allocations of the blocks that were alive before it: blocks that were freed in it or are alive at its end, and were not allocated in it.
fn steps(snapshot: &Snapshot, device: u32, events: &[Event]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut live: FxHashMap<u64, u32> = FxHashMap::default();
    let mut count = 0;
    let mut earlier = Vec::new();
    let mut allocate = |live: &mut FxHashMap<u64, u32>, address: u64, size: u64, stream: u64| {
        let number = count;
        count += 1;
        live.insert(address, number);
        Step::Allocate { number, size, stream }
    };
    for event in events {
        match event.action {
            TraceAction::Allocate => steps.push(allocate(&mut live, event.address, event.size, event.stream)),
            TraceAction::Free => {
                if !live.contains_key(&event.address) {
                    earlier.push(allocate(&mut live, event.address, event.size, event.stream));
                }
                if let Some(number) = live.remove(&event.address) {
                    steps.push(Step::Free { number });
                }
            }
            TraceAction::OutOfMemory => {
                steps.push(Step::Fail { size: event.size, stream: event.stream, left: event.address });
            }
            TraceAction::Other => {}
        }
    }
    for segment in snapshot.segments.iter().filter(|segment| segment.device == device && !segment.private) {
        for block in segment.blocks.iter().filter(|block| block.state == HeldState::Live) {
            if !live.contains_key(&block.address) {
                earlier.push(allocate(&mut live, block.address, block.size, segment.stream));
            }
        }
    }
    earlier.extend(steps);
    earlier
}

/// What came of a replay.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    peak_reserved: u64,
    peak_allocated: u64,
    /// The first allocation that failed in the history: its size, and the most that the device gave.
    failure: Option<(u64, u64)>,
    /// Did every allocation fit, also those that failed in the history?
    fits: bool,
}

fn run(steps: &[Step], options: &AllocatorOptions, limit: Option<u64>) -> Outcome {
    let mut allocator = Allocator::new(AllocatorOptions { limit, ..options.clone() });
    let mut live: FxHashMap<u32, Handle> = FxHashMap::default();
    let (mut failure, mut fits) = (None, true);
    for step in steps {
        match *step {
            Step::Allocate { number, size, stream } => match allocator.allocate(size, stream) {
                Ok(handle) => {
                    live.insert(number, handle);
                }
                Err(_) => fits = false,
            },
            Step::Free { number } => {
                if let Some(handle) = live.remove(&number) {
                    allocator.free(handle);
                }
            }
            Step::Fail { size, stream, left } => {
                if limit.is_some() {
                    match allocator.allocate(size, stream) {
                        Ok(handle) => allocator.free(handle),
                        Err(_) => fits = false,
                    }
                } else {
                    // torch gives back what is free before it fails. If more was left than was asked for, the limit was another:
                    // `set_per_process_memory_fraction`.
                    allocator.empty_cache();
                    let room = allocator.reserved() + left.min(size.saturating_sub(1));
                    failure = failure.or(Some((size, room)));
                }
            }
        }
    }
    let (peak_reserved, peak_allocated) = (allocator.peak_reserved(), allocator.peak_allocated());
    Outcome { peak_reserved, peak_allocated, failure, fits }
}
