//! What is run: its name, and where and under what it runs, for the recording's head.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use caulk_core::Target;

/// Environment variables that decide how memory behaves, or tell one process of a job from another. By beginning.
const VARIABLES: [&str; 24] = [
    "CONDA_DEFAULT_ENV",
    "CUDA_",
    "GLIBC_TUNABLES",
    "GROUP_RANK",
    "HF_HOME",
    "KUBERNETES_SERVICE_HOST",
    "LD_PRELOAD",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MALLOC_",
    "MKL_NUM_THREADS",
    "NCCL_",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHON",
    "PYTORCH_",
    "RANK",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "TORCH",
    "VIRTUAL_ENV",
    "WORLD_SIZE",
    "XDG_RUNTIME_DIR",
];

/// A short name for the run: the script, the module, or the program.
pub(crate) fn name(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let stem = |word: &str| {
        let path = Path::new(word);
        path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    };
    let module = words.iter().position(|word| word == "-m").and_then(|at| words.get(at + 1));
    let script =
        words.iter().find(|word| Path::new(word.as_ref()).extension().is_some_and(|kind| kind == "py"));
    let name = match (script, module) {
        (Some(script), _) => stem(script),
        (None, Some(module)) => module.to_string(),
        (None, None) => words.first().map_or_else(|| "run".into(), |program| stem(program)),
    };
    // `main.py` is what half of all programs are called; its folder says more.
    match (name.as_str(), script.and_then(|script| Path::new(script.as_ref()).parent())) {
        ("main" | "__main__" | "train", Some(parent)) if parent.file_name().is_some() => {
            format!("{}-{name}", stem(&parent.to_string_lossy()))
        }
        _ => name,
    }
}

/// The working directory; of one that was removed, where it was.
pub(crate) fn directory() -> PathBuf {
    env::current_dir()
        .or_else(|_| fs::read_link("/proc/self/cwd"))
        .map_or_else(|_| PathBuf::new(), without_mark)
}

/// The working directory was removed.
pub(crate) fn is_gone() -> bool {
    env::current_dir().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The kernel says so behind the name.
fn without_mark(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(name) if !path.exists() => OsString::from_vec(name.to_vec()).into(),
        _ => path,
    }
}

/// What the recording's head says of the command. Secrets are redacted where it is written.
pub(crate) fn describe(command: &[OsString]) -> Target {
    let directory = directory();
    let environment = env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let wanted = VARIABLES.iter().any(|variable| name.starts_with(variable));
        wanted.then(|| (name, value.to_string_lossy().into_owned()))
    });
    let mut environment: Vec<_> = environment.collect();
    environment.sort();
    Target {
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        directory: directory.to_string_lossy().into_owned(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        environment,
    }
}

/// Physical memory, in bytes.
pub(crate) fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &[&str], expected: &str) {
        let command: Vec<_> = command.iter().map(OsString::from).collect();
        assert_eq!(name(&command), expected);
    }

    #[test]
    fn runs_are_named_for_what_a_person_would_call_them() {
        check(&["python", "-u", "fit.py", "--lr", "3"], "fit");
        check(&["python3", "experiments/unet/train.py"], "unet-train");
        check(&["python3", "./train.py"], "train");
        check(&["python", "-m", "lightning.fabric", "x"], "lightning.fabric");
        check(&["torchrun", "--nproc-per-node", "2", "fit.py"], "fit");
        check(&["/usr/bin/env"], "env");
        check(&["./run.sh"], "run");
    }
}
