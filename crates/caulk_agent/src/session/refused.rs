//! A GPU has no memory for an allocation.
//!
//! Torch calls its observers of that before it raises `torch.OutOfMemoryError`, on the thread that allocates, and without its
//! own lock (`c10/cuda/CUDACachingAllocator.cpp`). So it is seen whether or not anybody catches the error.

use caulk_wire::{CodePlace, GpuRefusal};
use pyo3::prelude::*;

use super::guard::guarded;
use super::last::look_soon;
use crate::frames::{self, Place};
use crate::{cuda, cuda_blocks};

/// Refusals that are all reported; later ones are if their number is a power of two.
const ALL: u64 = 32;

/// Arguments of torch's observers: the device, the requested bytes, the most that the process may have of the device, and the bytes that
/// the driver has left.
///
/// # Errors
/// What the program itself must see, such as Ctrl-C.
#[pyfunction]
fn gpu_refused(py: Python<'_>, device: u32, asked: u64, limit: u64, free: u64) -> PyResult<()> {
    let times = guarded(|session| {
        session.refusals += 1;
        session.refusals
    });
    let Some(times) = times.filter(|times| *times <= ALL || times.is_power_of_two()) else { return Ok(()) };
    // Asked without the session: torch's functions may let another thread run.
    let known = cuda::device(py, device)?.unwrap_or_default();
    let blocks = cuda_blocks::blocks(py, device, &known.figures)?.unwrap_or_default();
    let total_bytes = known.driver.map_or(0, |(_, total)| total);
    let refusal = GpuRefusal {
        device,
        asked_bytes: asked,
        allocated_bytes: known.figures.allocated,
        reserved_bytes: known.figures.reserved,
        largest_free_bytes: blocks.largest_free,
        free_bytes: free,
        total_bytes,
        allowed_bytes: if limit < total_bytes { limit } else { known.allowed.unwrap_or(0) },
        settings: blocks.settings,
        times,
        place: place(py),
    };
    guarded(|session| session.channel.send(&refusal.into()));
    if times.is_power_of_two() {
        look_soon();
    }
    Ok(())
}

/// The line that asked. Torch's own threads have none, and work for one that has.
fn place(py: Python<'_>) -> CodePlace {
    let elsewhere = || {
        let threads = frames::all_frames(py);
        threads.into_iter().find_map(|(_, stack)| frames::user_places(stack.into_iter().next()).next())
    };
    let found = frames::user_frame(py).or_else(elsewhere);
    found.map_or_else(CodePlace::default, |Place { file, line, function }| CodePlace { file, line, function })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gpu_refused, module)?)
}
