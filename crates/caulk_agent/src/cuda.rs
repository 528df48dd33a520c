//! CUDA memory as torch's caching allocator counts it, where the program uses a GPU.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::heap::{loaded, member};

/// Bytes allocated to tensors and reserved from the driver, over all devices; zeros without CUDA.
///
/// Never initialises CUDA: a context would cost the program hundreds of megabytes.
///
/// # Errors
/// What the program itself must see, such as Ctrl-C: torch's functions are Python.
pub(crate) fn memory(py: Python<'_>) -> PyResult<(u64, u64)> {
    let Some(cuda) = loaded(py, "torch.cuda") else { return Ok((0, 0)) };
    // A plain variable of the module: nothing is called in a program without a GPU.
    if !member(&cuda, "_initialized").is_some_and(|flag| flag.is_truthy().unwrap_or(false)) {
        return Ok((0, 0));
    }
    let read = || -> PyResult<(u64, u64)> {
        let devices: u32 = cuda.call_method0("device_count")?.extract()?;
        let sum = |name: &str| -> PyResult<u64> {
            (0..devices).map(|device| cuda.call_method1(name, (device,))?.extract::<u64>()).sum()
        };
        Ok((sum("memory_allocated")?, sum("memory_reserved")?))
    };
    match read() {
        Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
        other => Ok(other.unwrap_or_default()),
    }
}
