//! CUDA memory as torch's caching allocators and the driver count it, where the program uses a GPU.
//!
//! Nothing is asked before the program itself has initialised CUDA: a context would cost it hundreds of megabytes. The driver is asked
//! for devices alone that torch has taken memory of, which have a context, and never while a graph is captured: what
//! reaches the driver then may end the capture.

use pyo3::prelude::*;

use crate::handlers::own_failure;
use crate::heap::{loaded, member};

/// An allocator's figures on one device or over several; zeros without CUDA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
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
    /// Segments that the allocator has from the driver.
    pub(crate) segments: u64,
}

/// One device that torch has memory of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Device {
    /// As torch counts.
    pub(crate) number: u32,
    pub(crate) figures: Figures,
    /// Free and all bytes of the device by the driver; `None` if it was not asked.
    pub(crate) driver: Option<(u64, u64)>,
    /// The most that the process may take, in bytes, if the program has set a limit for itself.
    pub(crate) allowed: Option<u64>,
}

/// What the process has on GPUs, and in host memory for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cuda {
    /// Over all devices.
    pub(crate) sum: Figures,
    pub(crate) devices: Vec<Device>,
    /// Bytes of pinned host memory that torch keeps, and of those in use.
    pub(crate) pinned: (u64, u64),
}

/// Asks torch and, through it, the driver.
///
/// # Errors
/// What the program itself must see, such as Ctrl-C: torch's functions are Python.
pub(crate) fn memory(py: Python<'_>) -> PyResult<Cuda> {
    let Some(cuda) = initialized(py) else { return Ok(Cuda::default()) };
    let mut found = Cuda::default();
    let captures = is_capturing(py)?;
    let count = ask(&cuda, "device_count", None)?.and_then(|count| count.extract().ok());
    for number in 0..count.unwrap_or(0) {
        let Some(figures) = figures(&cuda, number)? else { return Ok(Cuda::default()) };
        found.sum.add(figures);
        if figures.reserved > 0 {
            let driver = if captures { None } else { driver(&cuda, number)? };
            let allowed = allowed(py, number, driver)?;
            found.devices.push(Device { number, figures, driver, allowed });
        }
    }
    found.pinned = pinned(&cuda)?;
    Ok(found)
}

/// The module, if the program has initialised CUDA.
fn initialized(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // A plain variable of the module: nothing is called in a program without a GPU.
    let cuda = loaded(py, "torch.cuda")?;
    member(&cuda, "_initialized")?.is_truthy().unwrap_or(false).then_some(cuda)
}

/// One device, as the allocator counts; `None` if torch does not answer.
///
/// # Errors
/// As [`memory`].
pub(crate) fn device(py: Python<'_>, number: u32) -> PyResult<Option<Device>> {
    let Some(cuda) = initialized(py) else { return Ok(None) };
    let Some(figures) = figures(&cuda, number)? else { return Ok(None) };
    let driver = if is_capturing(py)? { None } else { driver(&cuda, number)? };
    Ok(Some(Device { number, figures, driver, allowed: allowed(py, number, driver)? }))
}

/// Calls a function of a module with the number of a device, if there is one; `None` if the module has no such function, or it fails.
///
/// # Errors
/// As [`memory`].
pub(crate) fn ask<'py>(
    module: &Bound<'py, PyAny>,
    name: &str,
    device: Option<u32>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(function) = member(module, name) else { return Ok(None) };
    let answer = device.map_or_else(|| function.call0(), |device| function.call1((device,)));
    answer.map(Some).or_else(|error| own_failure(module.py(), error).map(|_| None))
}

/// Is the current stream being captured into a graph?
fn is_capturing(py: Python<'_>) -> PyResult<bool> {
    let Some(core) = loaded(py, "torch._C") else { return Ok(false) };
    let captured = ask(&core, "_cuda_isCurrentStreamCapturing", None)?;
    Ok(captured.is_some_and(|captured| captured.is_truthy().unwrap_or(false)))
}

fn figures(cuda: &Bound<'_, PyAny>, device: u32) -> PyResult<Option<Figures>> {
    Ok(ask(cuda, "memory_stats_as_nested_dict", Some(device))?.map(|stats| Figures::of(&stats)))
}

/// `cudaMemGetInfo`: free and all bytes.
fn driver(cuda: &Bound<'_, PyAny>, device: u32) -> PyResult<Option<(u64, u64)>> {
    Ok(ask(cuda, "mem_get_info", Some(device))?.and_then(|pair| pair.extract().ok()))
}

/// The limit of `set_per_process_memory_fraction`, in bytes.
fn allowed(py: Python<'_>, device: u32, driver: Option<(u64, u64)>) -> PyResult<Option<u64>> {
    let (Some((_, total)), Some(core)) = (driver, loaded(py, "torch._C")) else { return Ok(None) };
    let fraction = ask(&core, "_cuda_getMemoryFraction", Some(device))?;
    let fraction: Option<f64> = fraction.and_then(|fraction| fraction.extract().ok());
    Ok(fraction.filter(|fraction| *fraction < 1.0).map(|fraction| (fraction * total as f64) as u64))
}

/// Bytes that the caching allocator of pinned host memory has, and those in use.
fn pinned(cuda: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
    let stats = ask(cuda, "host_memory_stats_as_nested_dict", None)?;
    let current = |name: &str| -> PyResult<u64> {
        stats.as_ref().map_or(Ok(0), |stats| stats.get_item(name)?.get_item("current")?.extract())
    };
    Ok((current("allocated_bytes").unwrap_or(0), current("active_bytes").unwrap_or(0)))
}

impl Figures {
    /// Of one device. A figure that a version of torch lacks, or of a device that was never used, is 0.
    fn of(stats: &Bound<'_, PyAny>) -> Self {
        let count = |name: &str| -> PyResult<u64> { stats.get_item(name)?.extract() };
        let current = |name: &str| -> PyResult<u64> {
            stats.get_item(name)?.get_item("all")?.get_item("current")?.extract()
        };
        Self {
            allocated: current("allocated_bytes").unwrap_or(0),
            reserved: current("reserved_bytes").unwrap_or(0),
            inactive: current("inactive_split_bytes").unwrap_or(0),
            blocks: current("allocation").unwrap_or(0),
            segments: current("segment").unwrap_or(0),
            retries: count("num_alloc_retries").unwrap_or(0),
        }
    }

    fn add(&mut self, other: Self) {
        self.allocated += other.allocated;
        self.reserved += other.reserved;
        self.inactive += other.inactive;
        self.blocks += other.blocks;
        self.segments += other.segments;
        self.retries += other.retries;
    }
}
