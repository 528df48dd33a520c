//! Python, torch and the GPU.

use caulk_core::Bytes;

use crate::{Check, CheckState, GpuFacts, HostFacts, Python};

/// Share of a GPU's memory that others may hold without being told.
const TAKEN: f64 = 0.1;

pub(crate) fn checks(machine: &HostFacts) -> Vec<Check> {
    let python = match &machine.python {
        None => return Vec::new(),
        Some(Err(cause)) => {
            let advice = "name the interpreter of your environment with `--python`";
            return vec![Check::new("python", CheckState::Unknown, cause.clone(), advice)];
        }
        Some(Ok(python)) => python,
    };
    let mut checks = vec![interpreter(python)];
    let Some(torch) = &python.torch else {
        let text = format!("not installed for {}", python.executable);
        checks.push(Check::new(
            "torch",
            CheckState::Unknown,
            text,
            "name another interpreter with `--python`",
        ));
        return checks;
    };
    checks.push(match (&python.torch_error, &python.cuda) {
        (Some(cause), _) => {
            let text = format!("{torch} is installed and cannot be imported: {cause}");
            Check::new(
                "torch",
                CheckState::Problem,
                text,
                "mend the installation: `python -c 'import torch'`",
            )
        }
        (None, Some(cuda)) => Check::good("torch", format!("{torch}, built for CUDA {cuda}")),
        (None, None) => Check::good("torch", format!("{torch}, built for the CPU alone")),
    });
    checks.extend(threads(python, machine));
    checks.push(availability(python));
    checks.extend(python.gpus.iter().map(gpu));
    checks
}

fn interpreter(python: &Python) -> Check {
    let text = format!("{} at {}", python.version, python.executable);
    let mut numbers = python.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < (3, 10) {
        return Check::new(
            "python",
            CheckState::Advice,
            text,
            "caulk looks into CPython 3.10 and later only",
        );
    }
    Check::good("python", text)
}

fn threads(python: &Python, machine: &HostFacts) -> Option<Check> {
    let threads = python.threads?;
    let granted = machine.quota.map_or(machine.processors, |quota| quota.ceil() as usize).max(1);
    (threads > granted).then(|| {
        Check::new(
            "threads",
            CheckState::Advice,
            format!("torch would use {threads} threads on {granted} processors"),
            format!("they would wait for each other: `OMP_NUM_THREADS={granted}` or `torch.set_num_threads({granted})`"),
        )
    })
}

fn availability(python: &Python) -> Check {
    match (&python.cuda, python.cuda_available) {
        (_, true) => Check::good("gpu", format!("{} to be used", python.gpus.len())),
        (Some(_), false) => Check::new(
            "gpu",
            CheckState::Advice,
            "torch is built for CUDA and finds no GPU",
            "`nvidia-smi` says whether the driver sees one; in a container it needs `--gpus all`; a CPU build of torch is \
             gigabytes smaller",
        ),
        (None, false) => Check::good("gpu", "none used: torch is built for the CPU"),
    }
}

fn gpu(gpu: &GpuFacts) -> Check {
    let (major, minor) = gpu.capability;
    let text = format!(
        "{}: {} of {} free, compute capability {major}.{minor}",
        gpu.name,
        Bytes(gpu.free),
        Bytes(gpu.total)
    );
    if (gpu.total - gpu.free.min(gpu.total)) as f64 > TAKEN * gpu.total as f64 {
        return Check::new(
            "gpu-memory",
            CheckState::Advice,
            text,
            "something else holds memory on it: `nvidia-smi` names the processes",
        );
    }
    Check::good("gpu-memory", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(python: Python) -> Vec<(&'static str, CheckState)> {
        let machine = HostFacts { python: Some(Ok(python)), processors: 4, ..HostFacts::default() };
        checks(&machine).iter().map(|check| (check.name, check.state)).collect()
    }

    fn python() -> Python {
        Python {
            version: "3.11.7".into(),
            torch: Some("2.11.0".into()),
            cuda: Some("13.0".into()),
            ..Python::default()
        }
    }

    #[test]
    fn a_gpu_that_cannot_be_used_or_that_others_use() {
        assert_eq!(found(python())[2], ("gpu", CheckState::Advice));
        let held = GpuFacts { name: "GTX 1650".into(), total: 4 << 30, free: 1 << 30, capability: (7, 5) };
        let gpus = vec![GpuFacts { free: 4 << 30, ..held.clone() }, held];
        let found = found(Python { cuda_available: true, gpus, ..python() });
        assert_eq!(
            found[2..],
            [("gpu", CheckState::Good), ("gpu-memory", CheckState::Good), ("gpu-memory", CheckState::Advice)]
        );
    }

    #[test]
    fn an_old_interpreter_a_broken_torch_and_too_many_threads() {
        let broken = Python {
            version: "3.9.2".into(),
            torch_error: Some("libcudnn.so.9 is missing".into()),
            threads: Some(64),
            ..python()
        };
        assert_eq!(
            found(broken)[..3],
            [("python", CheckState::Advice), ("torch", CheckState::Problem), ("threads", CheckState::Advice)]
        );
        assert_eq!(
            found(Python { version: "3.11.7".into(), ..Python::default() })[1],
            ("torch", CheckState::Unknown)
        );
        let unknown = HostFacts { python: Some(Err("no such file".into())), ..HostFacts::default() };
        assert_eq!(checks(&unknown)[0].state, CheckState::Unknown);
    }
}
