//! Ten trainings as they were predicted and as they were measured on a card.
//!
//! `data/card.json` has the traces of their models by `caulk plan` (`python/caulk/_plan.py`, torch 2.11), and what six steps of
//! each took on an NVIDIA H100 80GB (driver 580.159, CUDA 13.0, torch 2.11, 26 November 2026): `max_memory_allocated`,
//! `max_memory_reserved`, and what the driver counted.
#![expect(clippy::unwrap_used, reason = "tests")]

use caulk_plan::{
    Card, Estimate, Machine, Memory, Optimizer, Precision, Settings, Source, Trace, TraceRun, gpu, memory,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Measured {
    model: String,
    precision: String,
    optimizer: String,
    allocated: f64,
    reserved: f64,
    used: f64,
    /// Width of the interval of the total before the allocations were replayed.
    width: f64,
    trace: Trace,
}

fn cases() -> Vec<Measured> {
    serde_json::from_str(include_str!("data/card.json")).unwrap()
}

fn predicted(case: &Measured) -> Memory {
    let TraceRun { batch, .. } = case.trace.runs[0];
    let settings = Settings {
        batch,
        accumulation: 1,
        precision: if case.precision == "32" { Precision::Full } else { Precision::Brain },
        checkpointing: false,
        frames: None,
        size: None,
        thirds: 3,
        optimizer: match case.optimizer.as_str() {
            "adam" => Optimizer::Adam,
            "momentum" => Optimizer::Momentum,
            _ => Optimizer::Sgd,
        },
        workers: 0,
        prefetch: 2,
        pin_memory: false,
        persistent_workers: false,
        decoding: None,
        validation_batch: batch,
        validation_every: 1,
    };
    let machine = Machine { gpu: Some(Card::from(&gpu("H100").unwrap())), ..Machine::default() };
    memory(&Source::Trace(case.trace.clone()), &settings, &machine).unwrap().unwrap()
}

/// Reserved, and of that allocated.
fn of_torch(memory: &Memory) -> [Estimate; 2] {
    let sum = |without: &[&str]| -> Estimate {
        memory.gpu.iter().filter(|part| !without.contains(&part.name)).map(|part| part.bytes).sum()
    };
    let context = "CUDA context and libraries";
    [sum(&[context]), sum(&[context, "gaps of the allocator"])]
}

#[test]
fn ten_trainings_took_what_was_predicted() {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for case in cases() {
        let memory = predicted(&case);
        let [reserved, allocated] = of_torch(&memory);
        let total = memory.on_gpu();
        let off = |likely: f64, measured: f64| 100.0 * (likely / measured - 1.0);
        let (allocated, reserved) =
            (off(allocated.likely, case.allocated), off(reserved.likely, case.reserved));
        let row = format!(
            "{:<9} {:<4} allocated {allocated:+.1} %, reserved {reserved:+.1} %, total {:.0} to {:.0} MB, likely {:+.1} %, \
             used {:.0} MB, width {:.0} of {:.0} MB",
            case.model,
            case.precision,
            total.low / 1e6,
            total.high / 1e6,
            off(total.likely, case.used),
            case.used / 1e6,
            (total.high - total.low) / 1e6,
            case.width / 1e6,
        );
        rows.push(row.clone());
        let within = (total.low..=total.high).contains(&case.used);
        let narrow = total.high - total.low <= case.width;
        let most = if case.trace.conv3d { RESERVED_OF_CLIPS } else { RESERVED };
        if !within || !narrow || allocated.abs() > ALLOCATED || reserved.abs() > most {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} of {rows:#?}");
}

/// Percent that a prediction may be off. The model of cuDNN's workspaces is too small for convolutions over clips.
const ALLOCATED: f64 = 4.0;
const RESERVED: f64 = 8.0;
const RESERVED_OF_CLIPS: f64 = 17.0;
