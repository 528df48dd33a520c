//! From what a program has held for some steps to how many workers it can have, and whether it fits a GPU.

use serde::Serialize;

use crate::memory::context;
use crate::{Estimate, Machine, Memory, Part};

/// What was seen of a program, in bytes where nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Optimizer steps that it was seen for.
    pub steps: u64,
    /// Resident memory of the training processes, at their highest.
    pub training: f64,
    /// Workers that lived at once.
    pub workers: u64,
    /// Does a `DataLoader` of the program have workers? Those of a pool are nobody's to plan for.
    pub loaders: bool,
    /// What the largest of them had for itself.
    pub worker: Estimate,
    /// What torch had reserved on the GPU.
    pub gpu_reserved: f64,
}

/// What follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredPlan {
    /// Memory as it was seen.
    pub before: Memory,
    /// Memory with so many workers as fit.
    pub after: Memory,
    /// Workers that fit.
    pub workers: u64,
    /// Does it fit on the GPU? `None` where one was asked about and none was used.
    pub fits_gpu: Option<bool>,
    /// Does it fit on the host?
    pub fits_host: bool,
    /// By what factor the batch must shrink at least to fit on the GPU; 1 where it fits.
    pub shrink: f64,
}

/// Plans with what was measured: fewer workers where the host is small.
pub fn plan_measured(seen: &Measured, machine: &Machine) -> MeasuredPlan {
    let fits = |workers: u64| machine.host_takes(memory_with(seen, workers, machine).on_host());
    let fewest = if seen.loaders { 0 } else { seen.workers };
    let workers = (fewest..=seen.workers).rev().find(|workers| fits(*workers)).unwrap_or(fewest);
    let after = memory_with(seen, workers, machine);
    let is_known = machine.gpu.is_none() || seen.gpu_reserved > 0.0;
    let fits_gpu = is_known.then(|| machine.gpu_takes(after.on_gpu()));
    let over = machine.gpu_room().map_or(1.0, |room| after.on_gpu().high / room);
    MeasuredPlan {
        before: memory_with(seen, seen.workers, machine),
        workers,
        fits_gpu,
        fits_host: machine.host_takes(after.on_host()),
        shrink: if fits_gpu == Some(false) { over } else { 1.0 },
        after,
    }
}

fn memory_with(seen: &Measured, workers: u64, machine: &Machine) -> Memory {
    // Some steps are not an epoch: validation, checkpoints and fragmentation come later.
    let later = |bytes: f64| Estimate::between(1.0, 1.05, 1.25) * bytes;
    let part = |name, bytes| Part {
        name,
        bytes,
        source: "measured; up to a quarter more for what comes later in an epoch",
    };
    let mut memory = Memory {
        host: vec![
            part("training process", later(seen.training)),
            part("workers", seen.worker.times(1.0, 1.05, 1.25) * workers as f64),
        ],
        gpu: Vec::new(),
    };
    if let Some(card) = machine.gpu.as_ref().filter(|_| seen.gpu_reserved > 0.0) {
        memory.gpu = vec![part("reserved by torch", later(seen.gpu_reserved)), context(card)];
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Card;

    const GB: f64 = 1024.0 * 1024.0 * 1024.0;

    fn machine(ram: f64, vram: f64) -> Machine {
        let gpu = Card { name: String::new(), memory: vram * GB, bfloat16: None, capability: None };
        Machine { ram: Some(ram * GB), gpu: Some(gpu), ..Machine::default() }
    }

    #[test]
    fn as_many_workers_as_fit() {
        let seen = Measured {
            steps: 20,
            training: 2.0 * GB,
            workers: 8,
            loaders: true,
            worker: Estimate::exact(GB),
            gpu_reserved: 3.0 * GB,
        };
        let check = |ram: f64, workers: u64, fits: bool| {
            let plan = plan_measured(&seen, &machine(ram, 8.0));
            assert_eq!((plan.workers, plan.fits_host, plan.fits_gpu), (workers, fits, Some(true)), "{ram}");
        };
        check(64.0, 8, true);
        check(8.0, 3, true);
        check(2.0, 0, false);
    }

    #[test]
    fn workers_of_no_loader_stay() {
        let seen = Measured { workers: 8, worker: Estimate::exact(GB), ..Measured::default() };
        let plan = plan_measured(&seen, &machine(4.0, 8.0));
        assert_eq!((plan.workers, plan.fits_host), (8, false));
        assert_eq!(plan.before, plan.after);
    }

    #[test]
    fn of_a_gpu_that_was_not_used_nothing_is_known() {
        let seen = Measured { training: GB, ..Measured::default() };
        assert_eq!(plan_measured(&seen, &machine(64.0, 4.0)).fits_gpu, None);
        let none = Machine { gpu: None, ..machine(64.0, 4.0) };
        assert_eq!(plan_measured(&seen, &none).fits_gpu, Some(true));
    }

    #[test]
    fn a_gpu_that_is_too_small_says_by_how_much() {
        let seen = Measured { gpu_reserved: 8.0 * GB, ..Measured::default() };
        let plan = plan_measured(&seen, &machine(64.0, 4.0));
        assert!(plan.fits_gpu == Some(false) && plan.shrink > 2.5 && plan.shrink < 3.0, "{plan:?}");
    }
}
