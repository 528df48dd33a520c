//! What is seen of memory on a GPU, tested on one: a folder that such a machine needs nothing beside, and what came back.

pub(crate) mod pack;
pub(crate) mod record;
pub(crate) mod results;

use std::path::Path;

use crate::console::{self, failure};

/// Exit code where everything is packed, and there is no GPU to run it on.
pub(crate) const NO_GPU: u8 = 3;

/// Device of a driver of NVIDIA's.
const DRIVER: &str = "/dev/nvidiactl";

/// There is none on this machine. The message has the remedy.
#[derive(Debug, thiserror::Error)]
#[error("no GPU of NVIDIA's on this machine: nothing was run on one")]
pub(crate) struct NoGpu {
    #[source]
    remedy: anyhow::Error,
}

/// Whether there is one.
pub(crate) fn is_here() -> bool {
    Path::new(DRIVER).exists()
}

/// Prints what to do if there is none.
pub(crate) fn missing(packed: &Path) -> anyhow::Error {
    let packed = packed.display();
    console::note(format!("`{packed}` holds all that a machine with one needs, beside Python with torch"));
    let hint = format!(
        "copy `{packed}` there, run `python check.py` in it, bring its folder `results` back, and judge it with \
         `cargo xtask gpu-check --results FOLDER`"
    );
    NoGpu { remedy: failure("it was packed and not run", hint) }.into()
}
