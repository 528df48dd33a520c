//! CUDA memory as torch's caching allocator counts it, where the program uses a GPU.

use pyo3::prelude::*;

use crate::heap::{loaded, member};

/// Bytes allocated to tensors and reserved from the driver, over all devices; zeros without CUDA.
///
/// Never initialises CUDA: a context would cost the program hundreds of megabytes.
pub(crate) fn memory(py: Python<'_>) -> (u64, u64) {
    let read = || -> Option<(u64, u64)> {
        let cuda = loaded(py, "torch.cuda")?;
        if !member(&cuda, "is_initialized")?.call0().ok()?.extract::<bool>().ok()? {
            return None;
        }
        let devices: u32 = member(&cuda, "device_count")?.call0().ok()?.extract().ok()?;
        let sum = |name: &str| -> Option<u64> {
            let function = member(&cuda, name)?;
            (0..devices).map(|device| function.call1((device,)).ok()?.extract::<u64>().ok()).sum()
        };
        Some((sum("memory_allocated")?, sum("memory_reserved")?))
    };
    read().unwrap_or_default()
}
