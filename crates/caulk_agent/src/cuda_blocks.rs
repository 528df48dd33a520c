//! The blocks of torch's CUDA allocator, one by one: the largest free one, and the pools of captured graphs.
//!
//! Torch makes an object of each block for that, so they are read only if they are few.

use pyo3::prelude::*;

use crate::cuda::{Figures, ask};
use crate::heap::loaded;

/// To go through more blocks than these takes too long for one pause.
pub(crate) const MOST: u64 = 10_000;

/// What the blocks of one device come to, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// The largest free block outside the pools of graphs.
    pub(crate) largest_free: u64,
    /// The largest block with a tensor in it.
    pub(crate) largest_used: u64,
    /// Segments in pools of captured graphs, or of the program's own (`torch.cuda.MemPool`).
    pub(crate) pools: u64,
    /// ... their blocks with a tensor in them,
    pub(crate) pools_used: u64,
    /// ... and free blocks beside these.
    pub(crate) pools_gaps: u64,
    /// Settings of the allocator that are not its defaults.
    pub(crate) settings: Vec<String>,
}

/// The blocks of one device; `None` if there are too many, or torch does not answer.
///
/// # Errors
/// What the program itself must see, such as Ctrl-C.
pub(crate) fn blocks(py: Python<'_>, device: u32, figures: &Figures) -> PyResult<Option<Blocks>> {
    let Some(memory) = loaded(py, "torch.cuda.memory") else { return Ok(None) };
    if figures.blocks + figures.segments > MOST {
        return Ok(None);
    }
    let snapshot = ask(&memory, "_snapshot", None)?;
    Ok(snapshot.and_then(|snapshot| Blocks::of(&snapshot, device).ok()))
}

impl Blocks {
    fn of(snapshot: &Bound<'_, PyAny>, device: u32) -> PyResult<Self> {
        let settings =
            snapshot.get_item("allocator_settings").map(|settings| changed(&settings)).unwrap_or_default();
        let mut found = Self { settings, ..Self::default() };
        for segment in snapshot.get_item("segments")?.try_iter()? {
            let segment = segment?;
            let on = segment.get_item("device").and_then(|number| number.extract::<u32>());
            if on.unwrap_or(device) == device {
                found.add(&segment)?;
            }
        }
        Ok(found)
    }

    fn add(&mut self, segment: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut sizes = Vec::new();
        for block in segment.get_item("blocks")?.try_iter()? {
            let block = block?;
            let free = block.get_item("state")?.extract::<String>()? == "inactive";
            sizes.push((free, block.get_item("size")?.extract::<u64>()?));
        }
        let of = |wanted: bool| sizes.iter().filter(move |(free, _)| *free == wanted).map(|(_, size)| *size);
        self.largest_used = of(false).max().unwrap_or(0).max(self.largest_used);
        if is_of_pool(segment) {
            let (used, free): (u64, u64) = (of(false).sum(), of(true).sum());
            self.pools += used + free;
            self.pools_used += used;
            self.pools_gaps += if used > 0 { free } else { 0 };
        } else {
            self.largest_free = of(true).max().unwrap_or(0).max(self.largest_free);
        }
        Ok(())
    }
}

/// The pool that everything else is allocated from has the number (0, 0).
fn is_of_pool(segment: &Bound<'_, PyAny>) -> bool {
    let pool = segment.get_item("segment_pool_id").and_then(|pool| pool.extract::<(u64, u64)>());
    pool.is_ok_and(|pool| pool != (0, 0))
}

/// Names of the settings that `PYTORCH_CUDA_ALLOC_CONF` has changed (`torch.cuda.memory._snapshot`, `allocator_settings`).
fn changed(settings: &Bound<'_, PyAny>) -> Vec<String> {
    let number = |name: &str| settings.get_item(name).and_then(|value| value.extract::<f64>()).unwrap_or(0.0);
    let expandable = settings.get_item("expandable_segments").and_then(|flag| flag.is_truthy());
    let changed = [
        ("expandable_segments", expandable.unwrap_or(false)),
        // The largest number, which stands for no limit, arrives as -1.
        ("max_split_size_mb", number("max_split_size") > 0.0),
        ("garbage_collection_threshold", number("garbage_collection_threshold") > 0.0),
    ];
    changed.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned()).collect()
}
