//! Memory on a GPU is judged by what its allocator counts: bytes in use say nothing of it.

use caulk_core::wire::{Boundary, ContainerKind, Contents, Message};
use caulk_core::{LeakClass, Series, Severity, State};

use crate::run::{MB, Run, elements, global, rising};

const PROGRAM: &str =
    "KEPT = []\n\n\ndef train():\n    for epoch in range(8):\n        KEPT.append(step())\n";

/// Eight epochs in which bytes in use stay as they are; on the GPU, as `change` says of each epoch.
fn run(change: impl Fn(u64, &mut Boundary)) -> Run {
    Run::of(PROGRAM).epochs([400 * MB; 8]).edit(|recording| {
        let mut epoch = 0;
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                change(epoch, boundary);
                epoch += 1;
            }
        }
    })
}

fn kept(run: Run) -> Run {
    let contents =
        Contents { cuda_bytes_per_element: 10 * MB, ..elements(10 * MB, &["tensor", "device:cuda"]) };
    run.grown(ContainerKind::List, global(0, "KEPT"), contents, rising(1, 1, 8)).traced(
        0,
        "KEPT.append",
        "train",
    )
}

#[test]
fn tensors_that_are_kept_on_a_gpu_are_a_leak_although_the_host_is_level() {
    let run = kept(run(|epoch, boundary| boundary.cuda_allocated_bytes = (1000 + 10 * epoch) * MB));
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::GlobalAccumulation, Severity::Error));
    let growth = finding.growth.expect("it grows");
    assert_eq!(growth.series, Series::CudaAllocated);
    assert!((growth.bytes_per_unit / (10 * MB) as f64 - 1.0).abs() < 0.01, "{growth:?}");
    let states: Vec<(Series, State)> =
        run.diagnose().verdicts.iter().map(|verdict| (verdict.series, verdict.state)).collect();
    assert!(states.contains(&(Series::InUse, State::Flat)), "{states:?}");
    assert!(states.contains(&(Series::CudaAllocated, State::Grows)), "{states:?}");
}

#[test]
fn a_list_of_tensors_whose_memory_is_level_on_the_gpu_is_advice_at_most() {
    let run = kept(run(|_, boundary| boundary.cuda_allocated_bytes = 1000 * MB));
    assert!(run.diagnose().findings.iter().all(|finding| finding.severity == Severity::Info));
}

#[test]
fn what_the_allocator_suffers_from_is_told() {
    let notes = |change: fn(&mut Boundary)| {
        run(|_, boundary| {
            boundary.cuda_allocated_bytes = 1000 * MB;
            boundary.cuda_reserved_bytes = 3000 * MB;
            change(boundary);
        })
        .diagnose()
        .notes
    };
    assert_eq!(notes(|_| ()), Vec::<String>::new());
    let gaps = notes(|boundary| boundary.cuda_inactive_bytes = 1200 * MB);
    assert!(gaps.len() == 1 && gaps[0].contains("1.17 GB of 2.93 GB"), "{gaps:?}");
    let retries = notes(|boundary| boundary.cuda_retries = 3);
    assert!(retries.len() == 1 && retries[0].contains("3 times"), "{retries:?}");
}
