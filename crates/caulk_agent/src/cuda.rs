//! CUDA memory as torch's caching allocator counts it, where the program uses a GPU.

use pyo3::prelude::*;

use crate::handlers::own_failure;
use crate::heap::{loaded, member};

/// The allocator's figures over all devices; zeros without CUDA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cuda {
    /// Bytes of tensors.
    pub(crate) allocated: u64,
    /// Bytes that the allocator has from the driver.
    pub(crate) reserved: u64,
    /// Bytes of free blocks beside used ones in the same segment: they cannot be given back.
    pub(crate) inactive: u64,
    /// Times that the driver had no more memory and caches were emptied for another attempt.
    pub(crate) retries: u64,
    /// Blocks with a tensor in them.
    pub(crate) blocks: u64,
}

/// Asks torch. Never initialises CUDA: a context would cost the program hundreds of megabytes.
///
/// # Errors
/// What the program itself must see, such as Ctrl-C: torch's functions are Python.
pub(crate) fn memory(py: Python<'_>) -> PyResult<Cuda> {
    let Some(cuda) = loaded(py, "torch.cuda") else { return Ok(Cuda::default()) };
    // A plain variable of the module: nothing is called in a program without a GPU.
    if !member(&cuda, "_initialized").is_some_and(|flag| flag.is_truthy().unwrap_or(false)) {
        return Ok(Cuda::default());
    }
    let read = || -> PyResult<Cuda> {
        let devices: u32 = cuda.call_method0("device_count")?.extract()?;
        let mut sum = Cuda::default();
        for device in 0..devices {
            sum.add(&cuda.call_method1("memory_stats_as_nested_dict", (device,))?);
        }
        Ok(sum)
    };
    read().or_else(|error| own_failure(py, error).map(|_| Cuda::default()))
}

impl Cuda {
    /// Adds one device. What a version of torch does not tell, or a device that was never used, is 0.
    fn add(&mut self, stats: &Bound<'_, PyAny>) {
        let count = |name: &str| -> PyResult<u64> { stats.get_item(name)?.extract() };
        let current = |name: &str| -> PyResult<u64> {
            stats.get_item(name)?.get_item("all")?.get_item("current")?.extract()
        };
        self.allocated += current("allocated_bytes").unwrap_or(0);
        self.reserved += current("reserved_bytes").unwrap_or(0);
        self.inactive += current("inactive_split_bytes").unwrap_or(0);
        self.blocks += current("allocation").unwrap_or(0);
        self.retries += count("num_alloc_retries").unwrap_or(0);
    }
}
