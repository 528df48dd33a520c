//! Memory on a GPU is judged by what its allocator counts: bytes in use say nothing of it.

use caulk_core::wire::{
    Boundary, CodePlace, ContainerKind, Contents, GpuLedger, GpuLine, GpuMade, GpuRefusal, Message, NoteCode,
    Trait,
};
use caulk_core::{GpuSample, LeakClass, Limit, LimitKind, Series, Severity, Slowed, State};

use crate::run::{FILE, MB, Run, elements, facts, global, rising};

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
        Contents { cuda_bytes_per_element: 10 * MB, ..elements(10 * MB, &[Trait::Tensor, Trait::OnCuda]) };
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
    let growth = finding.growth.clone().expect("it grows");
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

/// Eight epochs with 1000 MB in tensors and 3000 MB reserved, as `change` has them.
fn pieces(change: impl Fn(u64, &mut Boundary)) -> Run {
    run(move |epoch, boundary| {
        boundary.cuda_allocated_bytes = 1000 * MB;
        boundary.cuda_reserved_bytes = 3000 * MB;
        change(epoch, boundary);
    })
}

#[test]
fn memory_in_gaps_is_fragmentation() {
    let level = pieces(|_, _| ()).diagnose();
    assert!(level.findings.is_empty() && level.notes.is_empty(), "{level:?}");
    let gaps = pieces(|_, boundary| boundary.cuda_inactive_bytes = 1200 * MB).finding();
    assert_eq!((gaps.class, gaps.severity), (LeakClass::AllocatorFragmentation, Severity::Info));
    let message = caulk_report::message(&gaps);
    assert!(message.contains("2.93 GB") && message.contains("1.17 GB (40 %)"), "{message}");
    let retries = pieces(|_, boundary| boundary.cuda_retries = 3).notes();
    assert!(retries.len() == 1 && retries[0].contains("3 times"), "{retries:?}");
}

#[test]
fn what_is_reserved_may_rise_without_a_leak() {
    let run = pieces(|epoch, boundary| boundary.cuda_reserved_bytes += 100 * MB * epoch);
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::AllocatorFragmentation, Severity::Info));
    let growth = finding.growth.clone().expect("it grows");
    assert_eq!(growth.series, Series::CudaReserved);
    let grows = pieces(|epoch, boundary| {
        boundary.cuda_allocated_bytes += 100 * MB * epoch;
        boundary.cuda_reserved_bytes += 100 * MB * epoch;
    });
    let found = grows.diagnose().findings;
    assert!(found.iter().all(|finding| finding.class != LeakClass::AllocatorFragmentation), "{found:?}");
}

#[test]
fn an_allocation_that_failed_by_pieces_is_a_warning_and_names_no_setting_that_is_set() {
    let refused = |settings: &[&str]| {
        let refusal = GpuRefusal {
            asked_bytes: 500 * MB,
            allocated_bytes: 1000 * MB,
            reserved_bytes: 3000 * MB,
            largest_free_bytes: 300 * MB,
            settings: settings.iter().map(|&name| name.to_owned()).collect(),
            times: 1,
            ..GpuRefusal::default()
        };
        let finding = pieces(|_, _| ()).say(refusal).finding();
        assert_eq!((finding.class, finding.severity), (LeakClass::AllocatorFragmentation, Severity::Warning));
        assert!(caulk_report::message(&finding).contains("the largest of 300 MB"));
        caulk_report::fix(&finding).expect("there is advice").description
    };
    assert!(refused(&[]).contains("expandable_segments:True"));
    let set = refused(&["expandable_segments"]);
    assert!(!set.contains("expandable_segments") && set.contains("max_split_size_mb"), "{set}");
    let both = refused(&["expandable_segments", "max_split_size_mb"]);
    assert!(!both.contains("expandable_segments") && !both.contains("max_split_size_mb"), "{both}");
}

#[test]
fn a_pool_of_pinned_memory_that_grows_while_little_is_in_use_is_retention() {
    let pool = |used: u64| {
        run(move |epoch, boundary| {
            boundary.pinned_pool_bytes = (100 + 50 * epoch) * MB;
            boundary.pinned_used_bytes = (40 + used * epoch) * MB;
        })
        .diagnose()
        .findings
    };
    let found = pool(0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].class, found[0].severity), (LeakClass::AllocatorFragmentation, Severity::Info));
    assert_eq!(found[0].growth.as_ref().map(|growth| growth.series), Some(Series::PinnedPool));
    assert_eq!(pool(50), [], "what is in use grows: it is kept by somebody");
}

/// The ledger of a device of 8000 MB in which others than torch have so much.
fn ledger(boundary: u32, reserved_bytes: u64, outside: u64) -> GpuLedger {
    let total_bytes = 8000 * MB;
    GpuLedger {
        boundary,
        allocated_bytes: 1000 * MB,
        reserved_bytes,
        gaps_bytes: 50 * MB,
        pools_bytes: 200 * MB,
        pools_used_bytes: 150 * MB,
        free_bytes: total_bytes - reserved_bytes - outside,
        total_bytes,
        ..GpuLedger::default()
    }
}

/// Eight epochs with such ledgers, torch level.
fn with_ledgers(outside: impl Fn(u64) -> u64) -> Run {
    let run = run(|_, boundary| {
        boundary.cuda_allocated_bytes = 1000 * MB;
        boundary.cuda_reserved_bytes = 1500 * MB;
    });
    (0..8).fold(run, |run, boundary| run.say(ledger(boundary, 1500 * MB, outside(u64::from(boundary)))))
}

#[test]
fn the_ledger_of_a_device_adds_up_to_what_is_used() {
    let diagnosis = with_ledgers(|epoch| (500 + 10 * epoch) * MB).diagnose();
    let ledger = diagnosis.gpus[0].ledger.expect("torch and the driver were asked");
    assert_eq!((ledger.context, ledger.rest, ledger.graph_pools), (510 * MB, 60 * MB, 200 * MB));
    assert_eq!((ledger.torch_live, ledger.torch_gaps, ledger.torch_free), (850 * MB, 50 * MB, 400 * MB));
    let caulk_core::GpuLedger { used, context, torch_live, torch_free, torch_gaps, graph_pools, rest } =
        ledger;
    assert_eq!(used, context + torch_live + torch_free + torch_gaps + graph_pools + rest);
    assert_eq!(used, 2070 * MB);
}

#[test]
fn growth_outside_torchs_allocator_is_a_verdict_of_its_own() {
    let verdict = |run: Run| {
        let verdicts = run.diagnose().verdicts;
        verdicts.into_iter().find(|verdict| verdict.series == Series::CudaRest)
    };
    let grows = verdict(with_ledgers(|epoch| (500 + 40 * epoch) * MB)).expect("it was measured");
    assert_eq!((grows.state, grows.bytes_per_unit.round()), (State::Grows, (40 * MB) as f64));
    assert_eq!(grows.limit, Some(Limit { kind: LimitKind::Gpu, bytes: 8000 * MB }));
    assert!(grows.oom_in_s.is_some());
    let level = verdict(with_ledgers(|_| 500 * MB)).expect("it was measured");
    assert_eq!(level.state, State::Flat);
    let shared = verdict(with_ledgers(|epoch| (4000 + 40 * epoch) * MB));
    assert!(shared.is_none(), "somebody else uses the device: {shared:?}");
}

#[test]
fn arrays_of_other_libraries_belong_to_the_growth_outside_torch() {
    let contents = Contents {
        cuda_bytes_per_element: 40 * MB,
        device_bytes_per_element: 40 * MB,
        ..elements(40 * MB, &[Trait::Array, Trait::OnCuda])
    };
    let run = with_ledgers(|epoch| (500 + 40 * epoch) * MB);
    let run = run.grown(ContainerKind::List, global(0, "KEPT"), contents, rising(1, 1, 8));
    let finding = run.traced(0, "KEPT.append", "train").finding();
    let growth = finding.growth.clone().expect("it grows");
    assert_eq!((growth.series, finding.severity), (Series::CudaRest, Severity::Error));
    assert!((growth.bytes_per_unit / (40 * MB) as f64 - 1.0).abs() < 0.05, "{growth:?}");
}

#[test]
fn a_process_runs_into_the_share_of_a_device_that_it_has_set_itself() {
    let run = run(|epoch, boundary| boundary.cuda_allocated_bytes = (1000 + 10 * epoch) * MB);
    let look = |epoch: u32| GpuLedger {
        allocated_bytes: (1000 + 10 * u64::from(epoch)) * MB,
        allowed_bytes: 1500 * MB,
        ..ledger(epoch, 1200 * MB, 500 * MB)
    };
    let run = (0..8).fold(run, |run, epoch| run.say(look(epoch)));
    let verdicts = run.diagnose().verdicts;
    let verdict =
        verdicts.iter().find(|verdict| verdict.series == Series::CudaAllocated).expect("there is one");
    assert_eq!(verdict.limit, Some(Limit { kind: LimitKind::CudaFraction, bytes: 1500 * MB }));
    // 430 MB are left, at 10 MB in ten seconds.
    let [early, late] = verdict.oom_in_s.expect("it grows");
    assert!(early < 431.0 && late > 429.0, "{early} {late}");
}

const GB: u64 = 1 << 30;

/// A look at a device of 40 GB.
fn device(time_ns: u64, device: u32, used_bytes: u64) -> GpuSample {
    let name = "NVIDIA A100".to_owned();
    GpuSample { time_ns, device, used_bytes, total_bytes: Some(40 * GB), name, ..GpuSample::default() }
}

fn part(time_ns: u64, device: u32, pid: u32, used_bytes: u64) -> GpuSample {
    GpuSample { time_ns, device, pid: Some(pid), used_bytes, ..GpuSample::default() }
}

/// Epochs in which torch reserves 3 GB and tensors grow by a tenth of a GB each, with looks at devices beside.
fn with_looks(looks: impl Fn(u32) -> Vec<GpuSample>) -> Run {
    run(|epoch, boundary| {
        boundary.cuda_allocated_bytes = 2 * GB + epoch * GB / 10;
        boundary.cuda_reserved_bytes = 3 * GB;
    })
    .edit(|recording| recording.gpus = looks(recording.events[0].pid))
}

#[test]
fn a_device_that_the_run_uses_is_told_with_its_part() {
    let run = with_looks(|pid| {
        let hot = GpuSample {
            celsius: Some(88),
            busy_percent: Some(90),
            slowed: Some(Slowed::Heat),
            ..device(1, 1, 30 * GB)
        };
        let cool = GpuSample { celsius: Some(60), busy_percent: Some(70), ..device(2, 1, 20 * GB) };
        vec![part(1, 1, pid, 4 * GB), device(1, 0, 39 * GB), hot, part(2, 1, pid, 3 * GB), cool]
    });
    let told = run.diagnose();
    assert_eq!(told.gpus.len(), 1, "device 0 is used by others alone");
    let gpu = &told.gpus[0];
    assert_eq!((gpu.device, gpu.peak_bytes, gpu.last_bytes), (1, 30 * GB, 20 * GB));
    assert_eq!((gpu.hottest_celsius, gpu.busy_percent), (Some(88), Some(80)));
    assert_eq!(gpu.slowed, [(Slowed::Heat, 50)]);
    assert_eq!((gpu.processes[0].peak_bytes, gpu.processes[0].torch_reserved_bytes), (4 * GB, 3 * GB));
    assert_eq!(
        run.note(&NoteCode::GpuDevice).as_deref(),
        Some(
            "GPU 1 (NVIDIA A100): at most 30.0 GB of 40.0 GB taken, 4.00 GB of it by this run, where torch had reserved \
             3.00 GB; at most 88 °C; busy 80 % of the time; slowed down by heat 50 % of the time"
        )
    );
}

#[test]
fn growth_on_a_gpu_runs_into_the_gpu() {
    let limit = |run: &Run| {
        let verdicts = run.diagnose().verdicts;
        let verdict = verdicts.into_iter().find(|verdict| verdict.series == Series::CudaAllocated);
        let verdict = verdict.expect("there is a GPU");
        (verdict.limit, verdict.oom_in_s)
    };
    let (found, seconds) = limit(&with_looks(|pid| vec![part(1, 0, pid, 4 * GB), device(1, 0, 39 * GB)]));
    assert_eq!(found, Some(Limit { kind: LimitKind::Gpu, bytes: 40 * GB }));
    assert!(seconds.is_some());
    assert_eq!(limit(&with_looks(|_| Vec::new())), (None, None), "the host's limit is not the GPU's");
}

#[test]
fn numbers_of_a_container_are_not_taken_for_those_outside() {
    // Somebody else outside has the number that the training has inside, and little memory.
    let run = with_looks(|pid| vec![part(1, 0, pid, GB / 10), device(1, 0, 30 * GB), device(1, 1, 9 * GB)]);
    let told = run.diagnose();
    assert_eq!(told.gpus.len(), 2, "nothing says which of them are used");
    assert!(told.gpus.iter().all(|gpu| gpu.processes.is_empty()));
    let notes = run.notes();
    assert!(notes.iter().any(|note| note.contains("does not show which process uses it")), "{notes:?}");
}

/// What torch recorded: most of it made by one line.
fn recorded(run: &Run) -> GpuMade {
    let line = |text: &str, bytes| GpuLine {
        place: CodePlace { file: FILE.into(), line: run.line(text), function: "train".into() },
        bytes,
        blocks: 1,
    };
    let lines = vec![line("KEPT.append", 10 * MB), line("for epoch", MB)];
    GpuMade { from: 4, to: 5, bytes: 11 * MB, lines }
}

#[test]
fn where_it_was_made_is_told_beside_what_keeps_it() {
    let run = kept(run(|epoch, boundary| boundary.cuda_allocated_bytes = (1000 + 10 * epoch) * MB));
    let made = recorded(&run);
    let finding = run.say(made).finding();
    assert_eq!(finding.class, LeakClass::GlobalAccumulation);
    let told = facts(&finding).into_iter().find(|fact| fact.0 == "gpu-record").expect("it was recorded");
    assert!(told.1.contains("10.0 MB at train.py:6 in `train`"), "{}", told.1);
}

#[test]
fn growth_on_a_gpu_that_nothing_is_known_to_hold_has_its_line() {
    let grows = |per_epoch: u64| {
        let run = run(|epoch, boundary| boundary.cuda_allocated_bytes = (1000 + per_epoch * epoch) * MB);
        let made = recorded(&run);
        run.say(made)
    };
    let finding = grows(11).finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::NativeGrowth, Severity::Error));
    assert_eq!(finding.sites[0].line, 6);
    let growth = finding.growth.clone().expect("it grows");
    assert_eq!(growth.series, Series::CudaAllocated);
    assert!((growth.bytes_per_unit / (10 * MB) as f64 - 1.0).abs() < 0.01, "{growth:?}");
    assert!(grows(0).diagnose().findings.is_empty(), "what is level is made anew and freed");
}

#[test]
fn what_others_than_torch_take_more_and_more_of_is_told() {
    let told = |per_epoch: u64| {
        // The looks lie just after the ends of epochs; torch's part is level.
        let run = with_looks(|pid| {
            let look = |epoch: u64| {
                let time_ns = (epoch + 1) * 10_000_000_000 + 1;
                [part(time_ns, 0, pid, 4 * GB + per_epoch * epoch), device(time_ns, 0, 9 * GB)]
            };
            (0..8).flat_map(look).collect()
        });
        run.note(&NoteCode::GpuRest)
    };
    assert_eq!(told(0), None);
    let note = told(100 * MB).expect("it grows");
    assert!(note.contains("1.29 GB of process 7 early on, 1.59 GB at the end"), "{note}");
}
