//! Steps of a training, replayed through a model of torch's allocator: what is allocated and what is reserved at the peak.
//!
//! The trace has the allocations of one forward and backward pass in order. The optimizer's are added here: states with the
//! first step, temporaries with each. The interval is that of what a trace cannot show: whether gradients are freed before the
//! forward pass (`zero_grad` at its usual places), and how much cuDNN takes for its workspaces.

use caulk_cuda::{Allocator, AllocatorOptions, Handle};

use crate::trace::{Trace, TraceRun};
use crate::{Estimate, Optimizer, Settings};

/// Steps until the allocator has what it needs: the first makes the states, the second runs beside them.
const STEPS: usize = 3;
/// Workspace of one cuBLAS handle on Hopper and later (`getChosenWorkspaceSize` in `CUDABlas.cpp`), in bytes. The thread of the
/// backward pass has a separate handle.
const CUBLAS: u64 = 32 << 20;

/// Reserved for what operations allocate inside, which no trace shows, as a share of what is allocated: the median of ten
/// trainings on an H100 (`tests/card.rs`).
const HIDDEN: f64 = 0.07;
/// The most that was reserved for what was allocated, in replays of five networks' steps.
const WIDEST: f64 = 1.19;

/// What the steps take at their peak, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Replayed {
    /// In tensors and workspaces: `requested_bytes.all.peak` of `torch.cuda.memory_stats`.
    pub(crate) requested: Estimate,
    /// `torch.cuda.max_memory_allocated`.
    pub(crate) allocated: Estimate,
    /// `torch.cuda.max_memory_reserved`.
    pub(crate) reserved: Estimate,
    /// Of that, workspaces of cuBLAS.
    pub(crate) cublas: f64,
}

/// What a replay assumes.
#[derive(Clone, Copy)]
struct Case {
    gradients: Gradients,
    /// Share of the workspaces that cuDNN takes.
    workspaces: f64,
}

/// When the gradients of the step before are freed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gradients {
    /// Before the forward pass.
    Early,
    /// Between forward and backward pass.
    Between,
    /// Not at all: those of several passes are added up.
    Never,
}

/// Replays the steps of a traced run with an optimizer.
pub(crate) fn replay(trace: &Trace, run: &TraceRun, settings: &Settings) -> Replayed {
    let usual = if settings.accumulation > 1 { Gradients::Never } else { Gradients::Between };
    let early = if settings.accumulation > 1 { Gradients::Never } else { Gradients::Early };
    let cases = [
        Case { gradients: early, workspaces: 0.0 },
        Case { gradients: usual, workspaces: 1.0 },
        Case { gradients: Gradients::Never, workspaces: 2.0 },
    ];
    let [low, likely, high] = cases.map(|case| steps(trace, run, settings.optimizer, case));
    let estimate = |of: fn(&Allocator) -> u64| {
        let all = [&low, &likely, &high].map(|each| of(each) as f64);
        Estimate::between(
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all[1],
            all.iter().copied().fold(0.0, f64::max),
        )
    };
    let requested = estimate(Allocator::peak_requested);
    let (allocated, reserved) = (estimate(Allocator::peak_allocated), estimate(Allocator::peak_reserved));
    let likely = reserved.likely + HIDDEN * allocated.likely;
    let high = reserved.high.max(WIDEST * allocated.high).max(likely);
    Replayed {
        requested,
        allocated,
        reserved: Estimate::between(reserved.low, likely, high),
        cublas: cublas(run) as f64,
    }
}

/// Workspaces of both handles, if the model multiplies matrices.
const fn cublas(run: &TraceRun) -> u64 {
    if run.products { 2 * CUBLAS } else { 0 }
}

fn steps(trace: &Trace, run: &TraceRun, optimizer: Optimizer, case: Case) -> Allocator {
    let mut card = Card { allocator: Allocator::new(AllocatorOptions::default()), gradients: Vec::new() };
    for bytes in &trace.tensors {
        card.keep(*bytes);
    }
    card.keep(cublas(run) / 2);
    card.keep(cublas(run) / 2);
    for step in 0..STEPS {
        if case.gradients == Gradients::Early {
            card.free_gradients();
        }
        card.pass(run, case);
        if step == 0 {
            for bytes in &trace.trained {
                optimizer.states(*bytes).into_iter().for_each(|state| card.keep(state));
            }
        }
        let temporaries = trace.trained.iter().map(|bytes| optimizer.temporary(*bytes));
        let temporaries: Vec<Handle> = temporaries.filter_map(|bytes| card.take(bytes)).collect();
        for temporary in temporaries {
            card.allocator.free(temporary);
        }
    }
    card.allocator
}

/// A card without a limit, and the gradients on it.
struct Card {
    allocator: Allocator,
    gradients: Vec<Handle>,
}

impl Card {
    /// `None` for nothing.
    fn take(&mut self, bytes: u64) -> Option<Handle> {
        // Without a limit nothing fails.
        if bytes == 0 { None } else { self.allocator.allocate(bytes, 0).ok() }
    }

    fn keep(&mut self, bytes: u64) {
        self.take(bytes);
    }

    fn free_gradients(&mut self) {
        for gradient in std::mem::take(&mut self.gradients) {
            self.allocator.free(gradient);
        }
    }

    /// One forward and backward pass. What has no end in the events is a gradient.
    fn pass(&mut self, run: &TraceRun, case: Case) {
        let mut live: Vec<Option<Handle>> = Vec::new();
        let mut workspaces = run.workspaces.iter().peekable();
        for (place, event) in run.events.iter().enumerate() {
            if place == run.forward && case.gradients == Gradients::Between {
                self.free_gradients();
            }
            while let Some((_, bytes)) = workspaces.next_if(|(at, _)| *at <= place) {
                if let Some(workspace) = self.take((*bytes as f64 * case.workspaces) as u64) {
                    self.allocator.free(workspace);
                }
            }
            if let Ok(bytes) = u64::try_from(*event) {
                live.push(self.take(bytes));
                continue;
            }
            let number = event.unsigned_abs() as usize - 1;
            if let Some(freed) = live.get_mut(number).and_then(Option::take) {
                self.allocator.free(freed);
            }
        }
        let new: Vec<Handle> = live.into_iter().flatten().collect();
        if self.gradients.is_empty() {
            self.gradients = new;
        } else {
            // Added to those that are there.
            for gradient in new {
                self.allocator.free(gradient);
            }
        }
    }
}
