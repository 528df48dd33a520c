//! Settings of the allocator, and the sizes that follow from them.

/// Smallest block; sizes are multiples of it. `kMinBlockSize` in `CUDACachingAllocator.cpp`, as the others below.
pub(super) const MIN_BLOCK: u64 = 512;
/// Up to this, an allocation is of the pool of small blocks (`kSmallSize`).
pub(super) const SMALL: u64 = 1 << 20;
/// Segments of small blocks (`kSmallBuffer`).
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;
/// Segments of allocations below [`MIN_LARGE`] (`kLargeBuffer`).
pub(super) const LARGE_SEGMENT: u64 = 20 << 20;
/// From this on an allocation has its own segment (`kMinLargeAlloc`),
const MIN_LARGE: u64 = 10 << 20;
/// ... rounded up to this (`kRoundLarge`).
const ROUND_LARGE: u64 = 2 << 20;

/// Settings as `PYTORCH_CUDA_ALLOC_CONF` has them. All sizes are bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocatorOptions {
    /// `expandable_segments`.
    pub expandable: bool,
    /// `max_split_size_mb`: free blocks of this size and above are not split; `u64::MAX` for no such limit.
    pub max_split: u64,
    /// `garbage_collection_threshold`: a share of the limit.
    pub gc_threshold: Option<f64>,
    /// `roundup_power2_divisions`, one for all sizes; 0 for none.
    pub divisions: u64,
    /// The most that may be reserved: what the device has, or a share of it by `set_per_process_memory_fraction`.
    pub limit: Option<u64>,
}

impl Default for AllocatorOptions {
    fn default() -> Self {
        Self { expandable: false, max_split: u64::MAX, gc_threshold: None, divisions: 0, limit: None }
    }
}

impl AllocatorOptions {
    /// Size of the block that serves a request.
    pub(super) fn rounded(&self, size: u64) -> u64 {
        let size = size.max(MIN_BLOCK);
        if self.divisions > 1 && size > MIN_BLOCK * self.divisions && !size.is_power_of_two() {
            let power = 1 << size.ilog2();
            return size.next_multiple_of((power / self.divisions).max(MIN_BLOCK));
        }
        size.next_multiple_of(MIN_BLOCK)
    }

    /// Size of the segment that is taken from the driver for a block.
    pub(super) const fn segment(size: u64) -> u64 {
        if size <= SMALL {
            SMALL_SEGMENT
        } else if size < MIN_LARGE {
            LARGE_SEGMENT
        } else {
            size.next_multiple_of(ROUND_LARGE)
        }
    }
}
